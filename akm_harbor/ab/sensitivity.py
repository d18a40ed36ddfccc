"""The headline's question asked with other methods on the same data: for sensitivity, never instead."""

from collections.abc import Sequence

from akm_harbor.ab.result import OtherMethod
from akm_harbor.stats.bootstrap import bootstrap_mean
from akm_harbor.stats.equivalence import Equivalence, equivalence
from akm_harbor.stats.mcnemar import mcnemar
from akm_harbor.stats.models import gee_log_odds, mixed_logit
from akm_harbor.stats.paired import task_differences
from akm_harbor.stats.results import NotEstimable

Scores = Sequence[Sequence[float]]


def other_methods(baseline: Scores, treatment: Scores, level: float) -> tuple[OtherMethod, ...]:
    """Bootstrap over tasks, McNemar at one attempt a task, and two regressions on the odds scale."""
    rows = [
        OtherMethod("Percentile bootstrap over tasks", "points", bootstrap_mean(task_differences(baseline, treatment))),
        OtherMethod("GEE, tasks exchangeable, bias-reduced", "log odds", gee_log_odds(baseline, treatment, level)),
        OtherMethod("Mixed logit, task intercepts", "log odds", mixed_logit(baseline, treatment, level)),
    ]
    table = _discordance(baseline, treatment)
    if table is not None:
        rows.insert(1, OtherMethod("McNemar, exact", "points", mcnemar(table)))
    return tuple(rows)


def _discordance(baseline: Scores, treatment: Scores) -> list[list[int]] | None:
    """Tasks by outcome in both arms; None unless every task has one attempt of 0 or 1 in each."""
    if not baseline or any(len(t) != 1 or t[0] not in {0.0, 1.0} for arm in (baseline, treatment) for t in arm):
        return None
    table = [[0, 0], [0, 0]]
    for (a,), (b,) in zip(baseline, treatment, strict=True):
        table[1 - int(a)][1 - int(b)] += 1
    return table


def equivalent(baseline: Scores, treatment: Scores, margin: float, level: float) -> Equivalence | NotEstimable | None:
    """TOST and non-inferiority against the stated margin; None without one."""
    return equivalence(task_differences(baseline, treatment), margin, 1 - level) if margin > 0 else None
