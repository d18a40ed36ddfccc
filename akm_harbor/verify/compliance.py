"""Score declared workflows on the events of a trial's own trajectory.

A specification is data (YAML at its source, JSON beside the helper in a task):

    id: lookup-before-write
    events: {broken-check: {event: run, matches: "CHECK FAILED"}}
    required:
      - {id: looked, event: lookup, before: write, when: {gold: true}, weight: 2}
      - {id: steps, sequence: [lookup, show, write]}
    forbidden:
      - {id: praised, event: feedback, sentiment: positive, after: broken-check}

An item whose anchor (`before`, `after`) never happened has nothing to be judged by and is left
out. Order is that of ATIF steps; two calls of one step were decided together, so neither came
before the other.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from akm_harbor.verify.events import Event, concept_id, events_of
from akm_harbor.verify.outcome import BrokenVerifierError
from akm_harbor.verify.trajectory import UnscorableError, read_trajectory

PASS = "pass"  # noqa: S105  (a verdict)
PARTIAL = "partial"
FAIL = "fail"
NOT_APPLICABLE = "not_applicable"
UNSCORABLE = "unscorable"

_MATCHER_KEYS = {"event", "ref", "sentiment", "reason", "action", "matches", "ok"}
_ITEM_KEYS = _MATCHER_KEYS | {"id", "sequence", "before", "after", "min", "weight", "when"}
_WHEN_KEYS = {"gold", "abstention", "outcome"}


@dataclass(frozen=True)
class Facts:
    """What is known of the trial besides its trajectory.

    Attributes:
        gold_ref: concept id of the asset that answers the task, "" if none does.
        abstention: nothing in the bundle helps, and the agent should notice.
        right: whether the answer was right; None when the verifier broke.
    """

    gold_ref: str = ""
    abstention: bool = False
    right: bool | None = None


@dataclass(frozen=True)
class Judged:
    """One required or forbidden item: met, not met, or (None) nothing to judge it by."""

    name: str
    weight: float
    met: bool | None
    steps: tuple[int, ...]
    why: str
    forbidden: bool = False


def _as_matcher(value: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    """A matcher from its name or mapping, with the events that the specification declares."""
    given: dict[str, Any] = {"event": value} if isinstance(value, str) else dict(value)
    declared = own.get(given.get("event", ""))
    return {**declared, **{k: v for k, v in given.items() if k != "event"}} if declared else given


def _fits(event: Event, matcher: Mapping[str, Any], facts: Facts, *, need_ok: bool) -> bool:
    if event.kind != matcher.get("event"):
        return False
    if (need_ok or "ok" in matcher) and event.ok is not matcher.get("ok", True):
        return False
    wanted = matcher.get("ref")
    if wanted is not None and event.ref != (facts.gold_ref if wanted == "$gold" else concept_id(wanted)):
        return False
    if any(matcher.get(name) not in (None, getattr(event, name)) for name in ("sentiment", "action")):
        return False
    if "reason" in matcher and bool(event.reason.strip()) is not matcher["reason"]:
        return False
    return "matches" not in matcher or re.search(matcher["matches"], event.text) is not None


def _anchor(events: Sequence[Event], anchor: Any, own: Mapping[str, Any], facts: Facts) -> int | None:
    """The step of an anchor: its first event, or the one that `nth` names (-1 is the last)."""
    matcher = _as_matcher(anchor, own)
    nth = int(matcher.pop("nth", 1))
    steps = [event.step for event in events if _fits(event, matcher, facts, need_ok=False)]
    place = nth - 1 if nth > 0 else nth
    return steps[place] if -len(steps) <= place < len(steps) else None


def _window(
    events: Sequence[Event], item: Mapping[str, Any], own: Mapping[str, Any], facts: Facts
) -> tuple[float, float, str]:
    """The open interval of steps an item is about, and which anchor is absent, if one is."""
    low, high, absent = 0.0, float("inf"), ""
    if "after" in item:
        step = _anchor(events, item["after"], own, facts)
        low, absent = (float(step), absent) if step is not None else (high, "after")
    if "before" in item:
        step = _anchor(events, item["before"], own, facts)
        high, absent = (float(step), absent) if step is not None else (high, absent or "before")
    return low, high, absent


def _sequence_steps(
    events: Sequence[Event], sequence: Sequence[Any], own: Mapping[str, Any], facts: Facts
) -> tuple[list[int], int]:
    """The earliest strictly rising steps that play a sequence, and how much of it was played."""
    steps: list[int] = []
    for value in sequence:
        matcher = _as_matcher(value, own)
        last = steps[-1] if steps else 0
        later = [e.step for e in events if e.step > last and _fits(e, matcher, facts, need_ok=True)]
        if not later:
            break
        steps.append(min(later))
    return steps, len(steps)


def _judge_required(events: Sequence[Event], item: Mapping[str, Any], own: Mapping[str, Any], facts: Facts) -> Judged:
    weight, name = float(item.get("weight", 1)), str(item["id"])
    if "sequence" in item:
        steps, played = _sequence_steps(events, item["sequence"], own, facts)
        wanted = len(item["sequence"])
        return Judged(name, weight, played == wanted, tuple(steps), f"{played} of {wanted} steps, in order")
    low, high, absent = _window(events, item, own, facts)
    matcher = _as_matcher({k: v for k, v in item.items() if k in _MATCHER_KEYS}, own)
    steps = sorted({e.step for e in events if _fits(e, matcher, facts, need_ok=True)})
    inside = [step for step in steps if low < step < high]
    enough = len(inside) >= int(item.get("min", 1))
    if absent == "after" or (absent == "before" and not enough):
        return Judged(name, weight, None, (), f"the `{absent}` event never happened")
    anchors = tuple(int(step) for step in (low, high) if 0 < step < float("inf"))
    why = "happened" if enough else "came at the wrong time" if steps else "never happened"
    return Judged(name, weight, enough, tuple(inside) if enough else (*steps, *anchors), why)


def _judge_forbidden(events: Sequence[Event], item: Mapping[str, Any], own: Mapping[str, Any], facts: Facts) -> Judged:
    weight, name = float(item.get("weight", 1)), str(item["id"])
    low, high, absent = _window(events, item, own, facts)
    if absent == "after":
        return Judged(name, weight, None, (), "the `after` event never happened", forbidden=True)
    matcher = _as_matcher({k: v for k, v in item.items() if k in _MATCHER_KEYS}, own)
    steps = sorted({e.step for e in events if low < e.step < high and _fits(e, matcher, facts, need_ok=False)})
    return Judged(name, weight, not steps, tuple(steps), "happened" if steps else "did not happen", forbidden=True)


def _applies(when: Mapping[str, Any], facts: Facts) -> bool:
    outcome = {True: "right", False: "wrong", None: "broken"}[facts.right]
    known = {"gold": bool(facts.gold_ref), "abstention": facts.abstention, "outcome": outcome}
    return all(known[key] == value for key, value in when.items())


def _verdict(judged: Sequence[Judged]) -> tuple[str, float | None]:
    needed = [item for item in judged if item.met is not None]
    required = [item for item in needed if not item.forbidden]
    broken = [item for item in needed if item.forbidden and not item.met]
    had_required = any(not item.forbidden for item in judged)
    if not needed or (had_required and not required and not broken):
        return NOT_APPLICABLE, None
    total = sum(item.weight for item in needed)
    score = sum(item.weight for item in needed if item.met) / total if total else 0.0
    if all(item.met for item in needed):
        return PASS, score
    if not any(item.met for item in (required or needed)):
        return FAIL, score
    return PARTIAL, score


def check_specification(spec: Any) -> list[str]:
    """What is wrong with a specification, empty if nothing."""
    if not isinstance(spec, dict) or not isinstance(spec.get("id"), str):
        return ["a specification is a mapping with an `id`"]
    name = spec["id"]
    unknown = spec.keys() - {"id", "title", "why", "when", "events", "required", "forbidden"}
    lines = [f"{name}: unknown key `{key}`" for key in sorted(unknown)]
    items = [*(spec.get("required") or []), *(spec.get("forbidden") or [])]
    if not items:
        lines.append(f"{name}: nothing is required or forbidden")
    for item in items:
        if not isinstance(item, dict) or "id" not in item or ("event" in item) == ("sequence" in item):
            lines.append(f"{name}: an item needs an `id` and either `event` or `sequence`")
            continue
        lines += [f"{name}.{item['id']}: unknown key `{key}`" for key in sorted(item.keys() - _ITEM_KEYS)]
        lines += [
            f"{name}.{item['id']}: unknown condition `{k}`" for k in sorted(item.get("when", {}).keys() - _WHEN_KEYS)
        ]
    for matcher in [*(spec.get("events") or {}).values(), *(item for item in items if isinstance(item, dict))]:
        try:
            re.compile(matcher.get("matches", ""))
        except (re.error, TypeError):
            lines.append(f"{name}: not a regular expression: {matcher.get('matches')!r}")
    return lines


def judge_workflow(events: Sequence[Event], spec: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Judge one specification.

    Args:
        events: a trajectory's events, in order.
        spec: the specification.
        facts: what else is known of the trial.

    Returns:
        `id`, `verdict`, `score` (0 to 1, None when there is none) and `items`, each with the
        numbers of the steps that decided it.

    Raises:
        BrokenVerifierError: the specification itself is wrong.
    """
    wrong = check_specification(spec)
    if wrong:
        raise BrokenVerifierError("; ".join(wrong))
    own = spec.get("events") or {}
    judged: list[Judged] = []
    for key, judge in (("required", _judge_required), ("forbidden", _judge_forbidden)):
        for item in spec.get(key) or []:
            one = judge(events, item, own, facts)
            if not _applies({**spec.get("when", {}), **item.get("when", {})}, facts):
                one = replace(one, met=None, steps=(), why="does not apply to this trial")
            judged.append(one)
    verdict, score = _verdict(judged)
    items = [
        {"id": j.name, "forbidden": j.forbidden, "met": j.met, "weight": j.weight, "steps": list(j.steps), "why": j.why}
        for j in judged
    ]
    return {"id": spec["id"], "verdict": verdict, "score": score, "items": items}


def overall(workflows: Sequence[Mapping[str, Any]]) -> tuple[str, float | None]:
    """The worst verdict of several, and their mean score; those that do not apply do not count."""
    verdicts = [workflow["verdict"] for workflow in workflows]
    scores = [workflow["score"] for workflow in workflows if workflow["score"] is not None]
    worst = next((v for v in (FAIL, PARTIAL, PASS) if v in verdicts), NOT_APPLICABLE)
    return worst, sum(scores) / len(scores) if scores else None


def akm_usage(state_db: Path) -> dict[str, int] | None:
    """How often akm itself counted each kind of use; None without a readable state.db.

    Counts only: akm's clock has whole seconds, so nothing here decides an order.
    """
    if state_db.is_symlink() or not state_db.is_file() or state_db.stat().st_size > 256_000_000:
        return None
    try:
        link = sqlite3.connect(f"{state_db.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            rows = link.execute(
                "SELECT event_type, COUNT(*) FROM usage_events WHERE source = 'user' GROUP BY event_type"
            ).fetchall()
        finally:
            link.close()
    except sqlite3.Error:
        return None
    return {str(kind): int(count) for kind, count in rows}


def score(
    plan: Mapping[str, Any], agent_logs: Path, *, akm_expected: bool | None, right: bool | None
) -> dict[str, Any]:
    """Score a task's workflows on a trial's logs.

    Args:
        plan: `tests/compliance.json` of the task: `task` (gold_ref, abstention) and `workflows`.
        agent_logs: the trial's agent folder, with trajectory.json.
        akm_expected: whether the arm had akm; None to tell by the evidence.
        right: whether the answer was right.

    Returns:
        What goes to compliance.json: `verdict`, `score`, `reason`, `workflows`, `akm_usage`.
    """
    task = plan.get("task", {})
    facts = Facts(concept_id(task.get("gold_ref") or ""), bool(task.get("abstention")), right)
    usage = akm_usage(agent_logs / "akm" / "state.db")
    result: dict[str, Any] = {"version": 1, "verdict": NOT_APPLICABLE, "score": None, "reason": "", "workflows": []}
    result["akm_usage"] = usage
    if akm_expected is False:
        return {**result, "reason": "this arm has no akm"}
    try:
        trajectory = read_trajectory(agent_logs / "trajectory.json")
        events = events_of(trajectory)
        called = any(event.kind in ("lookup", "show", "feedback", "remember", "workflow") for event in events)
        if akm_expected is None and usage is None and not called:
            return {**result, "reason": "nothing shows that the agent had akm"}
        workflows = [judge_workflow(events, spec, facts) for spec in plan.get("workflows", [])]
    except (UnscorableError, RecursionError) as error:
        reason = str(error) if isinstance(error, UnscorableError) else "trajectory.json is nested too deeply"
        return {**result, "verdict": UNSCORABLE, "reason": reason}
    verdict, value = overall(workflows)
    result["steps"], result["calls"] = trajectory.last_step, len(trajectory.calls)
    return {**result, "verdict": verdict, "score": value, "workflows": workflows}
