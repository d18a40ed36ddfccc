"""Means over questions whose histories were sampled, when there are only a few histories.

LoCoMo has ten conversations. The usual cluster-robust standard error is biased downwards there
and its t quantile too small, the more so the less equal the conversations are. Used here is the
bias-reduced estimator CR2 with the degrees of freedom of Bell and McCaffrey (2002), which for a
mean has a closed form. `simulate` measures what it covers, beside what else one could use.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import TIED
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result, clamp_p

METHOD = "CR2 clustered by history, Bell-McCaffrey t"
MEAN = "mean over questions of histories like these"
FEW_DF = 4.0
"""Below this the interval rests on the shape of the t distribution more than on the data."""


def degrees_of_freedom(sizes: Sequence[int] | NDArray[np.int64]) -> float:
    """Bell and McCaffrey's degrees of freedom of a mean; clusters - 1 where all are of one size.

    Args:
        sizes: questions of each history, shape (histories,).
    """
    share = np.asarray(sizes, dtype=np.float64) / np.sum(sizes)
    cross = np.outer(share**2 / (1 - share), share**2 / (1 - share))
    np.fill_diagonal(cross, 0.0)
    return float(1 / ((share**2).sum() + cross.sum()))


def standard_error(values: NDArray[np.float64], clusters: NDArray[np.int64], n_clusters: int) -> float:
    """CR2 standard error of the mean of `values`; clusters are numbered from 0."""
    sizes = np.bincount(clusters, minlength=n_clusters)
    sums = np.bincount(clusters, weights=values - values.mean(), minlength=n_clusters)
    return float(np.sqrt((sums**2 / (1 - sizes / values.size)).sum()) / values.size)


def clustered_mean(
    values: Sequence[float] | NDArray[np.float64],
    histories: Sequence[str],
    level: float = 0.95,
    *,
    estimand: str = MEAN,
) -> Result:
    """Mean of one number a question, with an interval that treats the histories as what was sampled.

    With one question a history this is Student's t.

    Args:
        values: one number a question, e.g. a score or a paired difference.
        histories: the history each question is about.
        level: coverage of the interval.
        estimand: what the mean is a number about.

    Returns:
        The mean; not estimable without variation, or with a single history.
    """
    data = np.asarray(values, dtype=np.float64)
    names, clusters = np.unique(np.asarray(histories, dtype=object).astype(str), return_inverse=True)
    n = len(names) if data.size else 0
    if n == 0:
        return NotEstimable("no-question", "No question has a score here.", METHOD, estimand, 0)
    value = float(data.mean())
    if n == 1:
        detail = "All questions are about one history, which says nothing about how histories differ."
        return NotEstimable("one-history", detail, METHOD, estimand, 1, value)
    if np.ptp(data) <= TIED:
        return NotEstimable("all-tied", "Every question has the same value.", METHOD, estimand, n, value)
    se = standard_error(data, clusters, n)
    if se <= TIED:
        return NotEstimable("all-tied", "Every history has the same mean.", METHOD, estimand, n, value)
    df = degrees_of_freedom(np.bincount(clusters))
    half = float(stats.t.ppf((1 + level) / 2, df)) * se
    t = value / se
    few = f"{n} histories, {df:.1f} degrees of freedom: the interval leans on the t distribution's shape."
    return Estimate(
        value,
        METHOD,
        estimand,
        n,
        Interval(value - half, value + half, level),
        se,
        df,
        t,
        clamp_p(2 * stats.t.sf(abs(t), df)),
        (few,) if df < FEW_DF else (),
    )
