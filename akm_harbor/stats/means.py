"""One arm's mean reward: two estimands, the standard errors in use, and the variance components."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from akm_harbor.stats.attempts import TIED, Attempts, arrays, attempt_counts, task_means, unequal_note, within_variances
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result

TASK_SAMPLING = "mean over tasks like these (tasks are a sample)"
FIXED_TASKS = "mean over exactly these tasks (only the attempts are random)"


def arm_mean(attempts: Attempts, level: float = 0.95) -> Result:
    """Mean of task means with a Student-t interval, tasks-1 degrees of freedom.

    Args:
        attempts: rewards by task.
        level: coverage of the interval.

    Returns:
        The mean as a statement about tasks like these; not estimable for fewer than two
        tasks or when every task has the same mean.
    """
    method = "Student t on task means"
    means = task_means(attempts)
    n = len(means)
    if n == 0:
        return NotEstimable("no-task", "There is no task with a reward.", method, TASK_SAMPLING, 0)
    value = float(means.mean())
    if n == 1:
        detail = "One task says nothing about how tasks differ."
        return NotEstimable("one-task", detail, method, TASK_SAMPLING, 1, value)
    if np.ptp(means) <= TIED:
        detail = "Every task has the same mean, so the spread between tasks cannot be estimated."
        return NotEstimable("all-tied", detail, method, TASK_SAMPLING, n, value)
    se = float(means.std(ddof=1) / np.sqrt(n))
    half = float(stats.t.ppf((1 + level) / 2, n - 1)) * se
    interval = Interval(value - half, value + half, level)
    return Estimate(value, method, TASK_SAMPLING, n, interval, se, n - 1, notes=unequal_note(attempts))


def fixed_task_mean(attempts: Attempts, level: float = 0.95) -> Result:
    """Mean of task means with the spread of attempts only, as Terminal-Bench's leaderboard has it.

    SE = sqrt(sum of s_i^2 / k_i) / tasks, a normal interval. Right for exactly these tasks;
    as an interval for other tasks it covers far less than its level.
    """
    method = "normal interval on within-task variance"
    means, counts, variances = task_means(attempts), attempt_counts(attempts), within_variances(attempts)
    n = len(means)
    if n == 0:
        return NotEstimable("no-task", "There is no task with a reward.", method, FIXED_TASKS, 0)
    value = float(means.mean())
    if np.isnan(variances).any():
        detail = f"{int(np.isnan(variances).sum())} of {n} tasks have a single attempt, which has no spread."
        return NotEstimable("one-attempt", detail, method, FIXED_TASKS, n, value)
    se = float(np.sqrt((variances / counts).sum()) / n)
    if se <= TIED:
        detail = "All attempts of every task agree, so the spread between attempts cannot be estimated."
        return NotEstimable("no-within-variation", detail, method, FIXED_TASKS, n, value)
    half = float(stats.norm.ppf((1 + level) / 2)) * se
    interval = Interval(value - half, value + half, level)
    return Estimate(value, method, FIXED_TASKS, n, interval, se, notes=unequal_note(attempts))


@dataclass(frozen=True, slots=True)
class StandardErrors:
    """The standard errors of a mean that one meets in the field, for reconciliation.

    Attributes:
        iid: attempts treated as independent (wrong for k > 1).
        clustered: Miller (2024), arXiv 2411.00640: iid plus the cross terms inside each task.
        clustered_corrected: from the sums by task, times tasks/(tasks-1), as inspect_ai has it.
        design_effect: (clustered_corrected / iid) squared.
    """

    iid: float
    clustered: float
    clustered_corrected: float
    design_effect: float


def standard_errors(attempts: Attempts) -> StandardErrors | NotEstimable:
    """Standard errors of the mean over attempts, clustered by task or not."""
    groups = arrays(attempts)
    method, estimand, n = "clustered standard errors", "mean over attempts", len(groups)
    if n < 2:
        return NotEstimable("one-task" if n else "no-task", "Fewer than two tasks.", method, estimand, n)
    values = np.concatenate(groups)
    centred = [group - values.mean() for group in groups]
    iid = float(values.std(ddof=1) / np.sqrt(values.size))
    cross = sum(float(group.sum() ** 2 - (group**2).sum()) for group in centred)
    clustered = float(np.sqrt(max(iid**2 + cross / values.size**2, 0.0)))
    sums = float(np.sqrt(sum(float(group.sum()) ** 2 for group in centred)) / values.size)
    if min(iid, clustered, sums) <= TIED:
        detail = "Attempts or task sums do not vary."
        return NotEstimable("all-tied", detail, method, estimand, n, float(values.mean()))
    corrected = sums * float(np.sqrt(n / (n - 1)))
    return StandardErrors(iid, clustered, corrected, (corrected / iid) ** 2)


@dataclass(frozen=True, slots=True)
class VarianceComponents:
    """One-way random-effects split of one arm's variance.

    Attributes:
        between: variance of the tasks' true means (omega squared), floored at 0.
        within: variance of attempts inside a task (sigma squared).
        ms_between: mean square between tasks.
        ms_within: mean square within tasks.
        icc: intraclass correlation, (MSB - MSW) / (MSB + (k0 - 1) MSW).
        n_tasks: tasks.
    """

    between: float
    within: float
    ms_between: float
    ms_within: float
    icc: float
    n_tasks: int


def variance_components(attempts: Attempts) -> VarianceComponents | NotEstimable:
    """ANOVA estimator of the between- and within-task variance; unequal k by the usual k0."""
    groups = arrays(attempts)
    method, estimand, n = "one-way ANOVA", "variance components", len(groups)
    counts = np.array([g.size for g in groups], dtype=np.float64)
    total = counts.sum() if n else 0.0
    if n < 2:
        return NotEstimable("one-task" if n else "no-task", "Fewer than two tasks.", method, estimand, n)
    if total == n:
        detail = "One attempt a task cannot tell tasks from attempts."
        return NotEstimable("one-attempt", detail, method, estimand, n)
    grand = float(np.concatenate(groups).mean())
    means = np.array([g.mean() for g in groups])
    msb = float((counts * (means - grand) ** 2).sum() / (n - 1))
    msw = float(sum(((g - g.mean()) ** 2).sum() for g in groups) / (total - n))
    k0 = float((total - (counts**2).sum() / total) / (n - 1))
    if msb + (k0 - 1) * msw <= TIED:
        return NotEstimable("all-tied", "All rewards are equal.", method, estimand, n)
    icc = (msb - msw) / (msb + (k0 - 1) * msw)
    return VarianceComponents(max((msb - msw) / k0, 0.0), msw, msb, msw, icc, n)
