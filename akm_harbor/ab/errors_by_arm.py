"""Errors of two arms: how many, of what cause, whether balanced, and what the missing rewards could hide."""

import pandas as pd

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.policies import errored, has_reward
from akm_harbor.ab.result import BoundsRow, CauseRow, Errors
from akm_harbor.stats.binomial import unbalanced
from akm_harbor.stats.bounds import TaskCounts, difference_bounds

_STATUS_CAUSE = {"cancelled": "cancelled", "unfinished": "unfinished", "unreadable": "unreadable result"}


def error_summary(a: Arm, b: Arm) -> Errors:
    """Count errors by arm and cause, with Fisher's test that both arms err equally often."""
    bad = [arm.attempts[errored(arm.attempts)] for arm in (a, b)]
    causes = [_causes(rows) for rows in bad]
    names = sorted(
        set(causes[0]) | set(causes[1]), key=lambda c: -(len(causes[0].get(c, ())) + len(causes[1].get(c, ())))
    )
    rows = tuple(
        CauseRow(
            name,
            tuple(sorted({t for side in causes for t in side.get(name, ()) if t})),
            len(causes[0].get(name, ())),
            len(causes[1].get(name, ())),
        )
        for name in names
    )
    unscored = [int((~has_reward(arm.attempts)).sum()) for arm in (a, b)]
    balance = unbalanced(len(bad[0]), len(a.attempts), len(bad[1]), len(b.attempts))
    return Errors(len(bad[0]), len(bad[1]), unscored[0], unscored[1], balance, rows)


def _causes(rows: pd.DataFrame) -> dict[str, list[str]]:
    """Exception types by cause, one entry an attempt."""
    out: dict[str, list[str]] = {}
    columns = (rows[c] for c in ("exception_cause", "exception_type", "status"))
    for cause, kind, status in zip(*columns, strict=True):
        named = cause if isinstance(cause, str) else _STATUS_CAUSE.get(str(status), "no reward, no exception")
        out.setdefault(named, []).append(kind if isinstance(kind, str) else "")
    return out


def _counts(attempts: pd.DataFrame, known: "pd.Series[bool]", tasks: list[str]) -> list[TaskCounts]:
    total = attempts.groupby("task").size()
    kept = attempts[known]
    sums, counted = kept.groupby("task")["reward"].sum(), kept.groupby("task").size()
    return [
        TaskCounts(float(sums.get(t, 0.0)), int(counted.get(t, 0)), int(total.get(t, 0) - counted.get(t, 0)))
        for t in tasks
    ]


def bounds_rows(a: Arm, b: Arm) -> tuple[BoundsRow, ...]:
    """Bounds of the difference for three readings of what is missing, each wider than the one before."""
    shared = sorted(set(a.tasks) & set(b.tasks))
    rows = []
    readings = (
        ("attempts without a valid reward", [has_reward(arm.attempts) for arm in (a, b)]),
        ("attempts with any error", [~errored(arm.attempts) for arm in (a, b)]),
    )
    for title, known in readings:
        found = difference_bounds(_counts(a.attempts, known[0], shared), _counts(b.attempts, known[1], shared))
        if found is not None:
            rows.append(BoundsRow(title, found))
    union = sorted(set(a.tasks) | set(b.tasks))
    if len(union) > len(shared):
        sides = [_counts(arm.attempts, has_reward(arm.attempts), union) for arm in (a, b)]
        filled = [[c if c.n else TaskCounts(0.0, 0, 1) for c in side] for side in sides]
        found = difference_bounds(filled[0], filled[1])
        if found is not None:
            rows.append(BoundsRow("attempts without a valid reward, and tasks that one arm lacks", found))
    return tuple(rows)
