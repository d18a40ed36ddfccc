"""pass@k (any of k attempts succeeds) and pass^k (all k succeed), without bias, for any k >= 1."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from akm_harbor.stats.attempts import Attempts, arrays
from akm_harbor.stats.paired import paired_t
from akm_harbor.stats.results import Estimate, NotEstimable, Result

Kind = Literal["pass@k", "pass^k"]


def pass_at_k(n: int, c: int, k: int) -> float:
    """Chance that k of n attempts, drawn without replacement, hold at least one of the c successes.

    Source: Chen et al. 2021, arXiv 2107.03374.

    Raises:
        ValueError: k > n (undefined, never 1.0), or counts that make no sense.
    """
    _check(n, c, k)
    return (math.comb(n, k) - math.comb(n - c, k)) / math.comb(n, k)


def pass_hat_k(n: int, c: int, k: int) -> float:
    """Chance that k of n attempts, drawn without replacement, are all successes.

    Source: tau-bench, arXiv 2406.12045.

    Raises:
        ValueError: k > n, or counts that make no sense.
    """
    _check(n, c, k)
    return math.comb(c, k) / math.comb(n, k)


def _check(n: int, c: int, k: int) -> None:
    if not (0 <= c <= n and k >= 1):
        raise ValueError(f"{c} successes of {n} attempts at k={k} make no sense")
    if k > n:
        raise ValueError(f"undefined: k={k} of {n} attempts")


def per_task(attempts: Attempts, k: int, kind: Kind) -> list[float] | NotEstimable:
    """The estimator task by task.

    Returns:
        One number a task; not estimable when a reward is neither 0 nor 1, or a task has fewer than k attempts.
    """
    groups = arrays(attempts)
    estimand = f"{kind} at k={k}, mean over tasks"
    if not groups:
        return NotEstimable("no-task", "There is no task with a reward.", kind, estimand, 0)
    if any(not np.isin(g, (0.0, 1.0)).all() for g in groups):
        detail = "A reward is neither 0 nor 1, so success is not defined."
        return NotEstimable("not-binary", detail, kind, estimand, len(groups))
    short = sum(g.size < k for g in groups)
    if short:
        detail = f"{short} of {len(groups)} tasks have fewer than {k} attempts."
        return NotEstimable("too-few-attempts", detail, kind, estimand, len(groups))
    one = pass_at_k if kind == "pass@k" else pass_hat_k
    return [one(g.size, int(g.sum()), k) for g in groups]


def arm_pass_k(attempts: Attempts, k: int, kind: Kind = "pass@k") -> Result:
    """The mean over tasks of one arm; at k=1 both kinds equal the mean reward."""
    values = per_task(attempts, k, kind)
    if isinstance(values, NotEstimable):
        return values
    return Estimate(float(np.mean(values)), f"unbiased {kind}", f"{kind} at k={k}, mean over tasks", len(values))


def paired_pass_k(
    baseline: Attempts, treatment: Attempts, k: int, kind: Kind = "pass@k", level: float = 0.95
) -> Result:
    """Treatment minus baseline, paired by task, with a Student-t interval over tasks."""
    a, b = per_task(baseline, k, kind), per_task(treatment, k, kind)
    if isinstance(a, NotEstimable):
        return a
    if isinstance(b, NotEstimable):
        return b
    return paired_t(np.subtract(b, a), level)


def usable_k(*arms: Attempts) -> Sequence[int]:
    """Every k that all tasks of all arms allow: 1, 2, ... smallest number of attempts."""
    smallest = min((g.size for arm in arms for g in arrays(arm)), default=0)
    return range(1, smallest + 1)
