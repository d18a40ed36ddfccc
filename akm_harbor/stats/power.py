"""Before the difference: what this design could have seen, and what it would take to see less."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import optimize, stats

from akm_harbor.stats.attempts import TIED, Attempts, attempt_counts, within_variances
from akm_harbor.stats.paired import task_differences
from akm_harbor.stats.results import Estimate, NotEstimable, Result

_QUANTILES = 4_000


@dataclass(frozen=True, slots=True)
class Components:
    """Variance of a paired difference, split by what more of which would reduce.

    Attributes:
        between: variance over tasks of the true difference (omega squared of d); only more tasks help.
        within_baseline: variance of one attempt of the baseline inside a task (sigma squared).
        within_treatment: the same for the treatment.
        source: where the numbers come from.
        notes: what a careful reader must know.
    """

    between: float
    within_baseline: float
    within_treatment: float
    source: str
    notes: tuple[str, ...] = ()

    def variance(self, k_baseline: float, k_treatment: float) -> float:
        """Variance of one task's difference with so many attempts an arm."""
        return self.between + self.within_baseline / k_baseline + self.within_treatment / k_treatment


REFERENCE = Components(
    0.0652,
    0.0753,
    0.0753,
    "72 public Terminal-Bench 2 submissions (89 tasks, at least 5 attempts), pairs of agents on the same model",
    ("Two arms of one agent may be more alike than two agents, so these are on the safe side.",),
)
"""Planning values for a run whose own data cannot give any."""


def difference_components(baseline: Attempts, treatment: Attempts) -> Components | NotEstimable:
    """Estimate the components from paired data, by the method of moments.

    Returns:
        The components, between floored at 0. With single attempts the split is not identified: all
        of the variance is then put between tasks, and a note says so.
    """
    method, estimand = "method of moments", "variance components of the difference"
    d = task_differences(baseline, treatment)
    if d.size < 2:
        reason = "one-task" if d.size else "no-task"
        return NotEstimable(reason, "Fewer than two shared tasks.", method, estimand, int(d.size))
    total = float(d.var(ddof=1))
    if total <= TIED:
        return NotEstimable("all-tied", "The difference is the same on every task.", method, estimand, d.size)
    source = f"this run ({d.size} tasks)"
    within, noise = [], 0.0
    for arm in (baseline, treatment):
        variances, counts = within_variances(arm), attempt_counts(arm)
        if np.isnan(variances).all():
            note = "Single attempts cannot tell tasks from attempts: all variance is put between tasks."
            return Components(total, 0.0, 0.0, source, (note,))
        pooled = float(np.nanmean(variances))
        within.append(pooled)
        noise += float((pooled / counts).mean())
    return Components(max(total - noise, 0.0), within[0], within[1], source)


def sample_size(
    difference: float,
    components: Components,
    k_baseline: float = 1,
    k_treatment: float = 1,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
) -> Estimate:
    """Tasks needed to see a difference, two-sided, normal formula (Miller 2024, section 5).

    n = (z_{1-alpha/2} + z_power)^2 (omega^2 + sigma_A^2/k_A + sigma_B^2/k_B) / difference^2
    """
    if difference == 0:
        raise ValueError("no number of tasks shows a difference of zero")
    z = stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power)
    n = z**2 * components.variance(k_baseline, k_treatment) / difference**2
    estimand = f"tasks needed for a difference of {difference:g} at {power:.0%} power"
    return Estimate(float(n), "normal formula", estimand, 0, notes=(components.source, *components.notes))


def minimum_detectable(
    n_tasks: int,
    components: Components,
    k_baseline: float = 1,
    k_treatment: float = 1,
    *,
    alpha: float = 0.05,
    power: float = 0.8,
    student: bool = True,
) -> Result:
    """The smallest true difference that this design sees with the given power.

    Args:
        n_tasks: shared tasks.
        components: variance components, from data or for planning.
        k_baseline: attempts a task in the baseline.
        k_treatment: attempts a task in the treatment.
        alpha: two-sided level of the test.
        power: wanted power.
        student: use the t distribution (right for the headline's test); False gives the normal formula.
    """
    method = "noncentral t" if student else "normal formula"
    estimand = f"smallest difference seen with {power:.0%} power at a two-sided level of {alpha:g}"
    if n_tasks < 2:
        return NotEstimable("one-task" if n_tasks else "no-task", "Fewer than two tasks.", method, estimand, n_tasks)
    se = float(np.sqrt(components.variance(k_baseline, k_treatment) / n_tasks))
    if se <= TIED:
        return NotEstimable("all-tied", "The planning variance is zero.", method, estimand, n_tasks)
    factor = _student_factor(n_tasks, alpha, power) if student else _normal_factor(alpha, power)
    return Estimate(se * factor, method, estimand, n_tasks, notes=(components.source, *components.notes))


def mde_from_spread(se: float, n_tasks: int, alpha: float = 0.05, power: float = 0.8) -> Estimate:
    """The smallest difference a finished run could see, from the standard error of its own difference.

    It rests on the spread, not on the size, of what was seen.

    Args:
        se: standard error of the paired difference, above zero.
        n_tasks: tasks behind it, at least two.
        alpha: two-sided level of the test.
        power: wanted power.
    """
    estimand = f"smallest difference seen with {power:.0%} power at a two-sided level of {alpha:g}"
    value = se * _student_factor(n_tasks, alpha, power)
    return Estimate(value, "noncentral t", estimand, n_tasks, notes=("From the spread between the tasks of this run.",))


def _normal_factor(alpha: float, power: float) -> float:
    return float(stats.norm.ppf(1 - alpha / 2) + stats.norm.ppf(power))


@lru_cache(maxsize=1024)  # the same for every variance: a table of designs asks again and again
def _student_factor(n: int, alpha: float, power: float) -> float:
    """Noncentrality at which a two-sided one-sample t test of n tasks has the power.

    The noncentral t is averaged over quantiles of its chi-square: scipy's own is NaN at one or two
    degrees of freedom.
    """
    df = n - 1
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    limits = float(stats.t.ppf(1 - alpha / 2, df)) * np.sqrt(stats.chi2.ppf(quantiles, df) / df)

    def missing(shift: float) -> float:
        rejected = stats.norm.sf(limits - shift) + stats.norm.cdf(-limits - shift)
        return float(rejected.mean()) - power

    high = _normal_factor(alpha, power)
    while missing(high) < 0:
        high *= 2
    return float(optimize.brentq(missing, 0.0, high))
