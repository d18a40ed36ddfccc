"""Showing that a difference is small: needs a margin that was set before looking."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.paired import paired_t
from akm_harbor.stats.results import Interval, NotEstimable, clamp_p


@dataclass(frozen=True, slots=True)
class Equivalence:
    """Two one-sided paired t tests against a margin.

    Attributes:
        margin: the largest difference that does not matter.
        p_noninferior: p of "the treatment is worse by the margin or more".
        p_nonsuperior: p of "the treatment is better by the margin or more".
        p_equivalent: the larger of the two (TOST).
        t_low: statistic of the first test.
        t_high: statistic of the second, positive when the estimate lies above the margin.
        interval: the interval whose lying inside the margins is equivalence (90% for alpha 0.05).
        n: tasks.
    """

    margin: float
    p_noninferior: float
    p_nonsuperior: float
    p_equivalent: float
    t_low: float
    t_high: float
    interval: Interval
    n: int


def equivalence(
    differences: Sequence[float] | NDArray[np.float64], margin: float, alpha: float = 0.05
) -> Equivalence | NotEstimable:
    """TOST and one-sided non-inferiority on per-task differences.

    Raises:
        ValueError: the margin is not above zero.
    """
    if margin <= 0:
        raise ValueError("the margin must be above zero")
    paired = paired_t(differences, 1 - 2 * alpha)
    if isinstance(paired, NotEstimable):
        return paired
    if paired.se is None or paired.df is None or paired.interval is None:
        raise AssertionError("a paired t estimate has a standard error and an interval")
    t_low, t_high = (paired.value + margin) / paired.se, (paired.value - margin) / paired.se
    p_low, p_high = clamp_p(stats.t.sf(t_low, paired.df)), clamp_p(stats.t.cdf(t_high, paired.df))
    return Equivalence(margin, p_low, p_high, max(p_low, p_high), t_low, t_high, paired.interval, paired.n)
