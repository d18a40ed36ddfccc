"""Resampling of tasks, attempts attached; a check on the t interval, not the headline."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import TIED
from akm_harbor.stats.paired import TASK_SAMPLING
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result

BootstrapMethod = Literal["percentile", "basic", "BCa"]
BCA_WARNING = "BCa is the worst of the usual intervals on few tasks: at 19 it covers 85-92% instead of 95%."


def bootstrap_mean(
    differences: Sequence[float] | NDArray[np.float64],
    method: BootstrapMethod = "percentile",
    level: float = 0.95,
    *,
    resamples: int = 10_000,
    seed: int = 0,
) -> Result:
    """Mean of per-task differences with a task-bootstrap interval.

    The standard error is the limit for infinitely many resamples, sqrt((n-1)/n) of the t one.
    """
    d = np.asarray(differences, dtype=np.float64)
    label = f"{method} task bootstrap ({resamples:,} resamples, seed {seed})"
    n = d.size
    if n < 2:
        value = float(d[0]) if n else None
        detail = "Fewer than two shared tasks."
        return NotEstimable("one-task" if n else "no-task", detail, label, TASK_SAMPLING, n, value)
    if np.ptp(d) <= TIED:
        reason = "all-tied" if np.abs(d).max() <= TIED else "constant-difference"
        detail = "Every task differs by the same amount, so resampling them shows nothing."
        return NotEstimable(reason, detail, label, TASK_SAMPLING, n, float(d.mean()))
    drawn = stats.bootstrap(
        (d,), np.mean, method=method, confidence_level=level, n_resamples=resamples, batch=1_000, rng=seed
    ).confidence_interval
    if not (np.isfinite(drawn.low) and np.isfinite(drawn.high)):
        return NotEstimable("degenerate", "The resamples do not vary enough.", label, TASK_SAMPLING, n, float(d.mean()))
    notes = ("The percentile interval covers 88-94% instead of 95% on 19 tasks.",) if n < 40 else ()
    return Estimate(
        float(d.mean()),
        label,
        TASK_SAMPLING,
        n,
        Interval(float(drawn.low), float(drawn.high), level),
        float(np.sqrt(((d - d.mean()) ** 2).sum()) / n),
        notes=(BCA_WARNING,) if method == "BCa" else notes,
    )
