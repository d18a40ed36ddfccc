"""The per-task table: every attempt of both arms, so that any number can be traced to its trials."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.delivery import reasons_of, verdict_of
from akm_harbor.ab.policies import Policy, errored, scores
from akm_harbor.ab.result import Attempt, FamilyRow, TaskRow
from akm_harbor.stats.binomial import newcombe_difference
from akm_harbor.stats.paired import paired_t
from akm_harbor.stats.results import Result


def _known(value: Any) -> Any:
    """A plain value, or None for every way in which pandas says "missing"."""
    if value is None or value != value:  # noqa: PLR0124  (NaN and NaT differ from themselves)
        return None
    return value.item() if hasattr(value, "item") else value


def _int(value: Any) -> int | None:
    known = _known(value)
    return None if known is None else int(known)


def attempts_by_task(arm: Arm, rule: Policy) -> dict[str, tuple[Attempt, ...]]:
    """All attempts of an arm, by task, oldest first."""
    frame = arm.attempts.assign(score=scores(arm.attempts, rule), bad=errored(arm.attempts))
    out: dict[str, list[Attempt]] = {}
    for row in frame.to_dict("records"):
        out.setdefault(str(row["task"]), []).append(_attempt(row))
    return {task: tuple(found) for task, found in out.items()}


def _attempt(row: dict[Hashable, Any]) -> Attempt:
    return Attempt(
        trial_name=_known(row["trial_name"]) or "?",
        trial_path=_known(row["trial_path"]) or "?",
        status=str(row["status"]),
        score=_known(row["score"]),
        reward=_known(row["reward"]),
        errored=bool(row["bad"]),
        exception_type=_known(row["exception_type"]),
        exception_cause=_known(row["exception_cause"]),
        exception_message=_known(row["exception_message"]),
        delivered=verdict_of(row["treatment_delivered"]),
        delivery_reasons=reasons_of(row["delivery_reasons"]),
        input_tokens=_int(row["n_input_tokens"]),
        output_tokens=_int(row["n_output_tokens"]),
        cost_usd=_known(row["cost_usd"]),
        environment_seconds=_known(row["environment_seconds"]),
        setup_seconds=_known(row["setup_seconds"]),
        agent_seconds=_known(row["agent_seconds"]),
        verifier_seconds=_known(row["verifier_seconds"]),
        n_tool_calls=_int(row["n_tool_calls"]),
        n_akm_calls=_int(row["n_akm_calls"]),
    )


def _mean(attempts: tuple[Attempt, ...]) -> float | None:
    counted = [a.score for a in attempts if a.score is not None]
    return math.fsum(counted) / len(counted) if counted else None


def _interval(a: tuple[Attempt, ...], b: tuple[Attempt, ...], level: float) -> Result | None:
    """Newcombe's interval where every counted score is 0 or 1."""
    sides = [[x.score for x in side if x.score is not None] for side in (a, b)]
    if any(s not in {0.0, 1.0} for side in sides for s in side) or not all(sides):
        return None
    (left, right) = sides
    return newcombe_difference(int(sum(left)), len(left), int(sum(right)), len(right), level)


def family_rows(rows: Sequence[TaskRow], level: float) -> tuple[FamilyRow, ...]:
    """The paired difference by corpus family, largest first; empty unless there are two families."""
    groups: dict[str, list[TaskRow]] = {}
    for row in rows:
        if row.family and row.difference is not None:
            groups.setdefault(row.family, []).append(row)
    if len(groups) < 2:
        return ()
    found = [
        FamilyRow(
            name,
            len(group),
            math.fsum(r.mean_baseline or 0.0 for r in group) / len(group),
            math.fsum(r.mean_treatment or 0.0 for r in group) / len(group),
            paired_t([r.difference or 0.0 for r in group], level),
        )
        for name, group in groups.items()
    ]
    return tuple(sorted(found, key=lambda f: (-(f.difference.value or 0.0), f.family)))


def task_rows(a: Arm, b: Arm, rule: Policy, families: dict[str, str], level: float) -> tuple[TaskRow, ...]:
    """One row a task of either arm, the largest differences first, tasks of one arm last."""
    left, right = attempts_by_task(a, rule), attempts_by_task(b, rule)
    rows = []
    for task in sorted(left.keys() | right.keys()):
        one, two = left.get(task, ()), right.get(task, ())
        mean_a, mean_b = _mean(one), _mean(two)
        difference = None if mean_a is None or mean_b is None else mean_b - mean_a
        rows.append(TaskRow(task, one, two, mean_a, mean_b, difference, _interval(one, two, level), families.get(task)))
    return tuple(sorted(rows, key=lambda r: (r.difference is None, -(r.difference or 0.0), r.task)))
