"""The paired difference between two arms on the same tasks: the headline and its relatives."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import TIED, Attempts, attempt_counts, task_means, unequal_note, within_variances
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result, clamp_p

TASK_SAMPLING = "mean difference over tasks like these (tasks are a sample)"
FIXED_TASKS = "mean difference over exactly these tasks (only the attempts are random)"


def task_differences(baseline: Attempts, treatment: Attempts) -> NDArray[np.float64]:
    """Treatment minus baseline of the task means, shape (tasks,).

    Raises:
        ValueError: the arms do not have the same number of tasks.
    """
    if len(baseline) != len(treatment):
        raise ValueError(f"arms of {len(baseline)} and {len(treatment)} tasks cannot be paired")
    return task_means(treatment) - task_means(baseline)


def paired_t(differences: Sequence[float] | NDArray[np.float64], level: float = 0.95) -> Result:
    """Student-t interval and test on per-task differences, tasks-1 degrees of freedom.

    Args:
        differences: one number a task, shape (tasks,).
        level: coverage of the interval.

    Returns:
        The mean difference. Not estimable with fewer than two tasks, with all tasks tied, or
        with the same difference on every task (where the textbook formula answers p = 0).
    """
    method = "paired Student t on task means"
    d = np.asarray(differences, dtype=np.float64)
    if d.ndim != 1 or not np.isfinite(d).all():
        raise ValueError("differences must be a list of finite numbers")
    n = d.size
    if n == 0:
        return NotEstimable("no-task", "The arms share no task.", method, TASK_SAMPLING, 0)
    value = float(d.mean())
    if n == 1:
        detail = "One shared task says nothing about how tasks differ."
        return NotEstimable("one-task", detail, method, TASK_SAMPLING, 1, value)
    if np.abs(d).max() <= TIED:
        return NotEstimable("all-tied", "The arms tie on every task.", method, TASK_SAMPLING, n, 0.0)
    if np.ptp(d) <= TIED:
        detail = "Every task differs by the same amount, so the spread cannot be estimated."
        return NotEstimable("constant-difference", detail, method, TASK_SAMPLING, n, value)
    test = stats.ttest_1samp(d, 0.0)
    interval = test.confidence_interval(level)
    return Estimate(
        value,
        method,
        TASK_SAMPLING,
        n,
        Interval(float(interval.low), float(interval.high), level),
        float(d.std(ddof=1) / np.sqrt(n)),
        n - 1,
        float(test.statistic),
        clamp_p(test.pvalue),
        ("Few tasks: the interval leans on the t distribution's shape.",) if n < 6 else (),
    )


def paired_difference(baseline: Attempts, treatment: Attempts, level: float = 0.95) -> Result:
    """The headline: `paired_t` on the task means of two arms, as a statement about tasks like these."""
    result = paired_t(task_differences(baseline, treatment), level)
    if isinstance(result, NotEstimable):
        return result
    notes = (*result.notes, *unequal_note(baseline, treatment))
    return Estimate(
        result.value,
        result.method,
        result.estimand,
        result.n,
        result.interval,
        result.se,
        result.df,
        result.statistic,
        result.p,
        notes,
    )


def fixed_task_difference(baseline: Attempts, treatment: Attempts, level: float = 0.95) -> Result:
    """The same difference with the spread of attempts only, as a statement about exactly these tasks.

    SE = sqrt(sum of s_A^2/k_A + s_B^2/k_B) / tasks; normal interval and test.
    """
    method = "normal interval on within-task variance"
    d = task_differences(baseline, treatment)
    n = d.size
    if n == 0:
        return NotEstimable("no-task", "The arms share no task.", method, FIXED_TASKS, 0)
    value = float(d.mean())
    per_arm = [within_variances(arm) / attempt_counts(arm) for arm in (baseline, treatment)]
    variances = per_arm[0] + per_arm[1]
    if np.isnan(variances).any():
        detail = f"{int(np.isnan(variances).sum())} of {n} tasks have a single attempt in an arm, which has no spread."
        return NotEstimable("one-attempt", detail, method, FIXED_TASKS, n, value)
    se = float(np.sqrt(variances.sum()) / n)
    if se <= TIED:
        detail = "All attempts of every task agree, so the spread between attempts cannot be estimated."
        return NotEstimable("no-within-variation", detail, method, FIXED_TASKS, n, value)
    half = float(stats.norm.ppf((1 + level) / 2)) * se
    z = value / se
    return Estimate(
        value,
        method,
        FIXED_TASKS,
        n,
        Interval(value - half, value + half, level),
        se,
        None,
        z,
        clamp_p(2 * stats.norm.sf(abs(z))),
        (
            "Tasks whose attempts all agree add no variance here, so this interval is rather too short.",
            *unequal_note(baseline, treatment),
        ),
    )


@dataclass(frozen=True, slots=True)
class PairingGain:
    """What pairing is worth on these data.

    Attributes:
        correlation: Pearson correlation of the arms' task means.
        se_paired: standard error of the difference with pairing.
        se_unpaired: what it would be with two independent sets of tasks.
        task_factor: how many times more tasks an unpaired design would need.
    """

    correlation: float
    se_paired: float
    se_unpaired: float
    task_factor: float


def pairing_gain(baseline: Attempts, treatment: Attempts) -> PairingGain | NotEstimable:
    """Correlation between the arms and the unpaired standard error for comparison."""
    method, estimand = "comparison of standard errors", "worth of pairing"
    d = task_differences(baseline, treatment)
    a, b = task_means(baseline), task_means(treatment)
    n = d.size
    if n < 2:
        return NotEstimable("one-task" if n else "no-task", "Fewer than two shared tasks.", method, estimand, n)
    if min(np.ptp(a), np.ptp(b), np.ptp(d)) <= TIED:
        detail = "An arm, or the difference, is the same on every task."
        return NotEstimable("all-tied", detail, method, estimand, n)
    paired = float(d.std(ddof=1) / np.sqrt(n))
    unpaired = float(np.sqrt(a.var(ddof=1) / n + b.var(ddof=1) / n))
    return PairingGain(float(np.corrcoef(a, b)[0, 1]), paired, unpaired, (unpaired / paired) ** 2)
