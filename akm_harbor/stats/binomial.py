"""Intervals for proportions: one attempt a task, one task alone, or an effective sample size."""

from typing import Literal

import numpy as np
from scipy import stats
from statsmodels.stats.proportion import confint_proportions_2indep, proportion_confint

from akm_harbor.stats.attempts import Attempts, attempt_counts, task_means
from akm_harbor.stats.means import standard_errors
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result

Method = Literal["wilson", "clopper-pearson", "jeffreys", "agresti-coull", "normal"]
_STATSMODELS: dict[Method, str] = {
    "wilson": "wilson",
    "clopper-pearson": "beta",
    "jeffreys": "jeffreys",
    "agresti-coull": "agresti_coull",
    "normal": "normal",
}
ESTIMAND = "success probability of independent attempts"


def proportion(successes: float, trials: float, method: Method = "wilson", level: float = 0.95) -> Result:
    """A binomial proportion with its interval.

    Args:
        successes: how many; may be fractional with an effective sample size (Wilson only).
        trials: of how many independent attempts.
        method: `normal` is there for reconciliation and refuses 0 and n successes, where it has no width.
        level: coverage.
    """
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} successes of {trials} make no sense")
    if trials == 0:
        return NotEstimable("no-attempt", "There is no attempt.", method, ESTIMAND, 0)
    value = successes / trials
    if method == "normal" and value in {0.0, 1.0}:
        detail = "The normal interval has no width at 0 or n successes."
        return NotEstimable("boundary", detail, method, ESTIMAND, int(trials), value)
    low, high = proportion_confint(successes, trials, alpha=1 - level, method=_STATSMODELS[method])
    return Estimate(value, method, ESTIMAND, int(trials), Interval(max(float(low), 0.0), min(float(high), 1.0), level))


def uniform_posterior(successes: int, trials: int, level: float = 0.95) -> Estimate:
    """Posterior mean and equal-tailed interval under a uniform prior; defined for any counts."""
    posterior = stats.beta(successes + 1, trials - successes + 1)
    low, high = posterior.ppf([(1 - level) / 2, (1 + level) / 2])
    interval = Interval(float(low), float(high), level)
    return Estimate(float(posterior.mean()), "uniform prior", ESTIMAND, trials, interval)


def arm_proportion(attempts: Attempts, level: float = 0.95) -> Result:
    """Wilson interval of an arm's success rate on its effective sample size, attempts / design effect."""
    method, estimand = "Wilson on effective sample size", "success rate over tasks like these"
    n = len(attempts)
    errors = standard_errors(attempts)
    if isinstance(errors, NotEstimable):
        return NotEstimable(errors.reason, errors.detail, method, estimand, n, errors.value)
    trials = float(attempt_counts(attempts).sum())
    effective = trials / max(errors.design_effect, 1.0)
    rate = float(np.concatenate([np.asarray(a, dtype=float) for a in attempts]).mean())
    low, high = proportion_confint(rate * effective, effective, alpha=1 - level, method="wilson")
    notes = (f"{trials:.0f} attempts count as {effective:.1f}.",)
    return Estimate(rate, method, estimand, n, Interval(float(low), float(high), level), notes=notes)


def newcombe_difference(
    successes_a: int, trials_a: int, successes_b: int, trials_b: int, level: float = 0.95
) -> Result:
    """B minus A of two independent proportions, Newcombe's hybrid score interval.

    For one task's attempts under two arms, or where arms share no task. Source: Newcombe 1998.
    """
    method, estimand = "Newcombe hybrid score", "difference of two success probabilities"
    if not trials_a or not trials_b:
        return NotEstimable("empty-arm", "An arm has no attempt.", method, estimand, 0)
    low, high = confint_proportions_2indep(
        successes_b, trials_b, successes_a, trials_a, method="newcomb", compare="diff", alpha=1 - level
    )
    value = successes_b / trials_b - successes_a / trials_a
    # the hybrid limits are exact at the boundary, rounding may step over it
    interval = Interval(max(min(float(low), value), -1.0), min(max(float(high), value), 1.0), level)
    return Estimate(value, method, estimand, trials_a + trials_b, interval)


def unbalanced(events_a: int, trials_a: int, events_b: int, trials_b: int) -> Result:
    """Fisher's exact test that an event (say, an error) is equally likely in two arms."""
    method, estimand = "Fisher exact test", "difference of event rates between arms"
    if not trials_a or not trials_b:
        return NotEstimable("empty-arm", "An arm has no attempt.", method, estimand, 0)
    value = events_b / trials_b - events_a / trials_a
    if events_a + events_b in {0, trials_a + trials_b}:
        detail = "The event happened never, or always."
        return NotEstimable("no-event", detail, method, estimand, trials_a + trials_b, value)
    p = stats.fisher_exact([[events_a, trials_a - events_a], [events_b, trials_b - events_b]]).pvalue
    return Estimate(value, method, estimand, trials_a + trials_b, p=float(min(max(p, 5e-324), 1.0)))


def task_rate(attempts: Attempts) -> float:
    """Mean of task means, without ceremony.

    Raises:
        ValueError: no task.
    """
    if not len(attempts):
        raise ValueError("no task")
    return float(task_means(attempts).mean())
