"""Ratios of cost, tokens and time between two arms on the same tasks."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import TIED
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result, clamp_p

Numbers = Sequence[float] | NDArray[np.float64]


def _pair(baseline: Numbers, treatment: Numbers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(baseline, dtype=np.float64), np.asarray(treatment, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise ValueError(f"arms of shape {a.shape} and {b.shape} cannot be paired")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("amounts must be finite")
    return a, b


def ratio_of_means(baseline: Numbers, treatment: Numbers, level: float = 0.95) -> Result:
    """Treatment's mean over the baseline's, paired by task, with Fieller's interval.

    This is the ratio of the bills. Fieller's set is unbounded when the baseline's mean is not clearly
    above zero; then it is not estimable, not a long interval.

    Args:
        baseline: mean amount a task, shape (tasks,).
        treatment: the same tasks in the same order.
        level: coverage.
    """
    method, estimand = "Fieller", "ratio of mean amounts, treatment to baseline"
    a, b = _pair(baseline, treatment)
    n = a.size
    if n == 0:
        return NotEstimable("no-task", "No task has an amount in both arms.", method, estimand, 0)
    mean_a, mean_b = float(a.mean()), float(b.mean())
    if abs(mean_a) <= TIED:
        return NotEstimable("zero-baseline", "The baseline's mean is zero.", method, estimand, n)
    value = mean_b / mean_a
    if n == 1:
        return NotEstimable("one-task", "One task says nothing about how tasks differ.", method, estimand, 1, value)
    cov = np.cov(a, b)
    residual = cov[1, 1] - 2 * value * cov[0, 1] + value**2 * cov[0, 0]
    if residual <= TIED * max(mean_b**2, mean_a**2):
        return NotEstimable("constant-ratio", "The ratio is the same on every task.", method, estimand, n, value)
    t2 = float(stats.t.ppf((1 + level) / 2, n - 1)) ** 2
    v_aa, v_bb, v_ab = t2 * cov[0, 0] / n, t2 * cov[1, 1] / n, t2 * cov[0, 1] / n
    lead = mean_a**2 - v_aa
    if lead <= 0:
        detail = "The baseline's mean is too uncertain: the interval is unbounded."
        return NotEstimable("unbounded", detail, method, estimand, n, value)
    middle = mean_a * mean_b - v_ab
    root = float(np.sqrt(max(middle**2 - lead * (mean_b**2 - v_bb), 0.0)))
    interval = Interval(float((middle - root) / lead), float((middle + root) / lead), level)
    se = float(np.sqrt(residual / n) / abs(mean_a))
    return Estimate(value, method, estimand, n, interval, se, n - 1)


def geometric_ratio(baseline: Numbers, treatment: Numbers, level: float = 0.95) -> Result:
    """Geometric mean of the per-task ratios, with a Student-t interval on their logarithms.

    This is the typical task's change; a dear task counts no more than a cheap one, so it can
    differ from `ratio_of_means` in size and in conclusion.
    """
    method, estimand = "Student t on log ratios", "typical ratio on a task, treatment to baseline"
    a, b = _pair(baseline, treatment)
    n = a.size
    if n == 0:
        return NotEstimable("no-task", "No task has an amount in both arms.", method, estimand, 0)
    if min(a.min(), b.min()) <= 0:
        return NotEstimable("not-positive", "An amount is not above zero.", method, estimand, n)
    logs = np.log(b / a)
    value = float(np.exp(logs.mean()))
    if n == 1:
        return NotEstimable("one-task", "One task says nothing about how tasks differ.", method, estimand, 1, value)
    if np.ptp(logs) <= TIED:
        return NotEstimable("constant-ratio", "The ratio is the same on every task.", method, estimand, n, value)
    test = stats.ttest_1samp(logs, 0.0)
    limits = test.confidence_interval(level)
    interval = Interval(float(np.exp(limits.low)), float(np.exp(limits.high)), level)
    return Estimate(value, method, estimand, n, interval, None, n - 1, float(test.statistic), clamp_p(test.pvalue))
