"""Declared workflows as the tasks' verifiers scored them: verdicts by arm, violations with their steps."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from akm_harbor.ab.arms import Arm

VERDICTS = ("pass", "partial", "fail", "not_applicable", "unscorable")


@dataclass(frozen=True, slots=True)
class WorkflowRow:
    """One workflow in one arm.

    Attributes:
        n: attempts whose verifier judged it.
        verdicts: verdict -> attempts, in the order of `VERDICTS`.
        score: mean score of the attempts it applied to; None without any.
    """

    arm: str
    workflow: str
    n: int
    verdicts: dict[str, int]
    score: float | None


@dataclass(frozen=True, slots=True)
class Violation:
    """One item of a workflow that an attempt did not meet.

    Attributes:
        item: the item's id.
        forbidden: it is something that must not happen, and did.
        steps: ATIF steps that decided it; empty where the absence of a step did.
    """

    root: str | None
    trial_path: str
    arm: str
    task: str
    workflow: str
    item: str
    forbidden: bool
    steps: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class Compliance:
    """Workflow compliance of all arms; no part of any reward."""

    rows: tuple[WorkflowRow, ...]
    violations: tuple[Violation, ...]


def compliance(arms: Sequence[Arm]) -> Compliance:
    """Read what the verifiers scored; attempts without a score are not counted."""
    rows: list[WorkflowRow] = []
    violations: list[Violation] = []
    for arm in arms:
        judged: dict[str, list[dict[str, Any]]] = {}
        for trial in arm.attempts.to_dict("records"):
            for workflow in _workflows(trial["compliance_json"]):
                judged.setdefault(workflow["id"], []).append(workflow)
                violations += [
                    Violation(trial["root"], trial["trial_path"], arm.name, trial["task"], workflow["id"], *item)
                    for item in _unmet(workflow)
                ]
        for name, found in sorted(judged.items()):
            counts = Counter(str(w.get("verdict")) for w in found)
            scores = [float(w["score"]) for w in found if isinstance(w.get("score"), int | float)]
            verdicts = {v: counts[v] for v in VERDICTS if counts[v]}
            mean = sum(scores) / len(scores) if scores else None
            rows.append(WorkflowRow(arm.name, name, len(found), verdicts, mean))
    return Compliance(tuple(rows), tuple(violations))


def _workflows(text: Any) -> list[dict[str, Any]]:
    """The judged workflows of one attempt; the file is a verifier's, and may hold anything."""
    try:
        found = json.loads(text).get("workflows") if isinstance(text, str) else None
    except (ValueError, AttributeError, RecursionError):
        return []
    return [w for w in _list(found) if isinstance(w, dict) and isinstance(w.get("id"), str)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _unmet(workflow: dict[str, Any]) -> Iterable[tuple[str, bool, tuple[int, ...], str]]:
    for item in _list(workflow.get("items")):
        if isinstance(item, dict) and item.get("met") is False:
            steps = tuple(s for s in _list(item.get("steps")) if isinstance(s, int))
            yield str(item.get("id")), item.get("forbidden") is True, steps, str(item.get("why") or "")
