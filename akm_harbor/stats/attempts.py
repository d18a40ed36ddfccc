"""Attempts grouped by task: the shape every estimator of an arm takes."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Attempts = Sequence[Sequence[float] | NDArray[np.float64]]
"""Rewards of one arm: one sequence a task, one number an attempt; lengths may differ."""

TIED = 1e-12
"""Task means closer than this are equal: they are sums of a few rewards divided by a small k."""


def arrays(attempts: Attempts) -> list[NDArray[np.float64]]:
    """Check and convert.

    Raises:
        ValueError: a reward that is not finite, a task that is not one-dimensional or has no attempt.
    """
    out = []
    for index, task in enumerate(attempts):
        values = np.asarray(task, dtype=np.float64)
        if values.ndim != 1 or values.size == 0:
            raise ValueError(f"task {index} must be a non-empty list of rewards")
        if not np.isfinite(values).all():
            raise ValueError(f"task {index} has a reward that is not finite")
        out.append(values)
    return out


def task_means(attempts: Attempts) -> NDArray[np.float64]:
    """Mean reward of each task, shape (tasks,)."""
    return np.array([values.mean() for values in arrays(attempts)], dtype=np.float64)


def attempt_counts(attempts: Attempts) -> NDArray[np.int64]:
    """Attempts of each task, shape (tasks,)."""
    return np.array([values.size for values in arrays(attempts)], dtype=np.int64)


def within_variances(attempts: Attempts) -> NDArray[np.float64]:
    """Unbiased variance of each task's attempts, shape (tasks,); NaN where a task has one attempt."""
    return np.array([v.var(ddof=1) if v.size > 1 else np.nan for v in arrays(attempts)], dtype=np.float64)


def unequal_note(*arms: Attempts) -> tuple[str, ...]:
    """A note when tasks differ in their number of attempts."""
    counts = {int(k) for arm in arms for k in attempt_counts(arm)}
    if len(counts) <= 1:
        return ()
    return (f"Attempts per task range from {min(counts)} to {max(counts)}; every task has the same weight.",)
