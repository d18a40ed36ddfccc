"""The effect of a treatment on those who take it up, with assignment as the instrument."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from akm_harbor.stats.attempts import TIED, Attempts
from akm_harbor.stats.paired import paired_t, task_differences
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result, clamp_p

WEAK = 10.0
"""First-stage F below which an instrument counts as weak (Staiger and Stock 1997)."""

ESTIMAND = "mean effect on attempts that take the treatment up because it is assigned (compliers)"
_METHOD = "Wald ratio on paired task means, Anderson-Rubin interval by task"


@dataclass(frozen=True, slots=True)
class FirstStage:
    """How much assignment moves uptake.

    Attributes:
        baseline: mean of task means of the uptake in the baseline.
        treatment: the same in the treatment.
        f: squared t of the mean difference over tasks; None where uptake differs by the same amount everywhere.
        n_tasks: shared tasks.
    """

    baseline: float
    treatment: float
    f: float | None
    n_tasks: int

    @property
    def weak(self) -> bool:
        """Too little difference in uptake to divide by."""
        return self.baseline == self.treatment if self.f is None else self.f < WEAK


def first_stage(uptake_baseline: Attempts, uptake_treatment: Attempts) -> FirstStage | NotEstimable:
    """The instrument's strength; tasks are the independent units."""
    moved = task_differences(uptake_baseline, uptake_treatment)
    if not moved.size:
        return NotEstimable("no-task", "The arms share no task.", "first stage", "difference in uptake", 0)
    rates = [float(np.mean([np.mean(task) for task in arm])) for arm in (uptake_baseline, uptake_treatment)]
    test = paired_t(moved)
    f = None if isinstance(test, NotEstimable) or test.statistic is None else test.statistic**2
    return FirstStage(rates[0], rates[1], f, moved.size)


def complier_effect(
    baseline: Attempts,
    treatment: Attempts,
    uptake_baseline: Attempts,
    uptake_treatment: Attempts,
    *,
    level: float = 0.95,
) -> Result:
    """Average effect on compliers: difference in outcome over difference in uptake.

    The point estimate is two-stage least squares with task effects and assignment as the only instrument.
    The interval inverts the Anderson-Rubin test on task differences with Student's t, which is Fieller's set:
    its coverage does not hang on a strong instrument. With a weak one it is unbounded or useless, and the
    effect is refused rather than printed.

    Args:
        baseline: scores by task, attempts inside; as for `paired_difference`.
        treatment: the same tasks in the same order.
        uptake_baseline: 1 where the attempt took the treatment up, else 0; the same shape as `baseline`.
        uptake_treatment: the same for `treatment`.
        level: coverage.

    Returns:
        The effect in units of the score. Not estimable with fewer than two tasks, without any difference in
        uptake, with a weak instrument (first-stage F below 10), or where every task says the same.
    """
    outcome, uptake = task_differences(baseline, treatment), task_differences(uptake_baseline, uptake_treatment)
    if outcome.size != uptake.size:
        raise ValueError(f"{outcome.size} tasks with outcomes and {uptake.size} with uptake")
    n = outcome.size
    stage = first_stage(uptake_baseline, uptake_treatment)
    if isinstance(stage, NotEstimable):
        return NotEstimable(stage.reason, stage.detail, _METHOD, ESTIMAND, 0)
    if n == 1:
        return NotEstimable("one-task", "One task says nothing about how tasks differ.", _METHOD, ESTIMAND, 1)
    shift = float(uptake.mean())
    if abs(shift) <= TIED:
        detail = "Both arms took the treatment up equally often, so assignment moves nothing."
        return NotEstimable("no-uptake", detail, _METHOD, ESTIMAND, n)
    if stage.weak:
        detail = f"Assignment moves uptake too little: first-stage F is {stage.f:.1f}, below {WEAK:g}."
        return NotEstimable("weak-instrument", detail, _METHOD, ESTIMAND, n)
    value = float(outcome.mean()) / shift
    residual = outcome - value * uptake
    if np.ptp(residual) <= TIED:
        detail = "Every task says the same, so the spread cannot be estimated."
        return NotEstimable("constant-difference", detail, _METHOD, ESTIMAND, n, value)
    return _inverted(outcome, uptake, value, level)


def _inverted(outcome: np.ndarray, uptake: np.ndarray, value: float, level: float) -> Result:
    """All effects b that a t test of mean(outcome - b uptake) = 0 does not reject: a quadratic in b."""
    n = outcome.size
    t2 = float(stats.t.ppf((1 + level) / 2, n - 1)) ** 2 / n
    cov = np.cov(uptake, outcome)
    lead = float(uptake.mean()) ** 2 - t2 * cov[0, 0]
    if lead <= 0:
        detail = "The difference in uptake is not clearly different from zero: the interval is unbounded."
        return NotEstimable("weak-instrument", detail, _METHOD, ESTIMAND, n)
    middle = float(uptake.mean() * outcome.mean()) - t2 * cov[0, 1]
    last = float(outcome.mean()) ** 2 - t2 * cov[1, 1]
    half = float(np.sqrt(max(middle**2 - lead * last, 0.0)))
    interval = Interval((middle - half) / lead, (middle + half) / lead, level)
    se = float((outcome - value * uptake).std(ddof=1) / np.sqrt(n) / abs(uptake.mean()))
    # under a zero effect the test is that of the outcome alone: assignment has no effect without uptake's
    null = paired_t(outcome, level)
    statistic, p = (None, None) if isinstance(null, NotEstimable) else (null.statistic, null.p)
    return Estimate(value, _METHOD, ESTIMAND, n, interval, se, n - 1, statistic, None if p is None else clamp_p(p))
