"""The steps of a trial that a reader wants to see: what was looked up, what was opened, what was written."""

import difflib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.ab.result import FailedTest, Step, TaskRow
from akm_harbor.tables import Table, read_table
from akm_harbor.trials.columns import TESTS, TOOL_CALLS

STEPS_A_TRIAL = 40
STEPS_A_REPORT = 4_000
"""A page that a browser opens at once; tasks with the largest differences come first."""
_DIFF_LINES = 40
_TEXT = 400
_SHELL_WRITE = re.compile(r"(?:^|[^-=>&0-9])>{1,2}\s*[^\s&>]|\btee\b|\bsed\s+-i|\bpatch\b|\bmv\b|\bcp\b")
_WRITES = {"write", "edit", "multiedit", "patch", "apply_patch"}
_OPENS = {"show", "read"}


def with_traces(
    dataset: Path,
    rows: Sequence[TaskRow],
    attempts: pd.DataFrame,
    deciding: Mapping[str, Collection[int]] | None = None,
) -> tuple[TaskRow, ...]:
    """Give the attempts their steps and failed tests, until the report's budget is used up.

    Args:
        dataset: where the tool calls and tests are.
        rows: the task rows, in the order of the page.
        attempts: both arms' trials, for the collected root of each path.
        deciding: places among the tool calls that decided how a trial ended, by trial path; they are kept.
    """
    decided = deciding or {}
    roots = dict(zip(attempts["trial_path"], attempts["root"], strict=True))
    calls, tests = (_of_trials(dataset, table, roots) for table in (TOOL_CALLS, TESTS))
    budget = STEPS_A_REPORT
    order = sorted(rows, key=lambda r: -abs(r.difference or 0.0))
    filled: dict[str, TaskRow] = {}
    for row in order:
        sides = []
        for side in (row.baseline, row.treatment):
            shown = []
            for attempt in side:
                kept = min(STEPS_A_TRIAL, budget)
                path = attempt.trial_path
                steps = trace(calls.get(path, []))
                shown_steps = _most_telling(steps, kept, decided.get(path, ()))
                one = replace(
                    attempt,
                    steps=shown_steps,
                    steps_left_out=len(steps) - len(shown_steps),
                    failed_tests=_failed(tests.get(path, [])),
                )
                budget -= len(one.steps)
                shown.append(one)
            sides.append(tuple(shown))
        filled[row.task] = replace(row, baseline=sides[0], treatment=sides[1])
    return tuple(filled[row.task] for row in rows)


def _of_trials(dataset: Path, table: Table, roots: Mapping[str, str | None]) -> dict[str, list[dict[str, Any]]]:
    """A detail table's rows of these trials, by trial path."""
    whole = read_table(dataset, table)
    mine = whole.filter(pc.is_in(whole["trial_path"], pa.array(sorted(roots), pa.string())))
    out: dict[str, list[dict[str, Any]]] = {}
    for row in mine.to_pylist():
        if row["root"] == roots[row["trial_path"]]:
            out.setdefault(row["trial_path"], []).append(row)
    for found in out.values():
        found.sort(key=lambda r: r["index"])
    return out


def _failed(tests: Sequence[Mapping[str, Any]]) -> tuple[FailedTest, ...]:
    """What did not pass, in the verifier's words."""
    return tuple(
        FailedTest(str(t["name"]), str(t["status"]), _cut(t["message"] or "", 1_000))
        for t in tests
        if t["status"] not in {"passed", "skipped"}
    )[:20]


def _most_telling(steps: tuple[Step, ...], kept: int, deciding: Collection[int]) -> tuple[Step, ...]:
    """Deciding and marked steps first, then those that changed a file, then the earliest; in their own order."""
    if len(steps) <= kept:
        return steps
    chosen = sorted(steps, key=lambda s: (s.index not in deciding, not s.marks, not s.diff, s.index))[:kept]
    return tuple(sorted(chosen, key=lambda s: s.index))


def trace(calls: Sequence[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Turn one trial's tool calls into steps, with the deciding ones marked.

    Args:
        calls: rows of `tool_calls`, in order.
    """
    seen: set[str] = set()
    steps = []
    for call in calls:
        arguments = _arguments(call.get("arguments_json"))
        marks = [m for m in _marks(call, arguments) if m.startswith(("failed", "gold at")) or m not in seen]
        seen.update(marks)
        steps.append(
            Step(
                index=int(call["index"]),
                tool=str(call["tool"]),
                text=_text(call, arguments),
                marks=tuple(marks),
                diff=_diff(str(call["tool"]), arguments),
                output=_cut(call.get("output_head") or "", _TEXT),
            )
        )
    return tuple(steps)


def _arguments(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"": text}  # cut when it was collected: shown as it is
    return found if isinstance(found, dict) else {"": text}


def _marks(call: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    marks = []
    verb, rank = call.get("akm_verb"), call.get("gold_rank")
    if verb:
        marks.append("first look into the bundle")
    if rank is not None and verb in _OPENS:
        marks.append("opened the gold asset")
    elif rank is not None:
        marks.append(f"gold at rank {rank}")
    if writes(str(call["tool"]), arguments):
        marks.append("first write")
    if call.get("error") or call.get("status") == "error":
        marks.append("failed")
    return marks


def writes(tool: str, arguments: Mapping[str, Any]) -> bool:
    """Whether a call changes files, as far as its arguments tell."""
    return tool in _WRITES or (tool == "bash" and bool(_SHELL_WRITE.search(str(arguments.get("command", "")))))


def _text(call: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    for name in ("command", "query", "ref", "filePath", "path", "pattern", "url"):
        if isinstance(arguments.get(name), str):
            return _cut(arguments[name], _TEXT)
    return _cut(str(call.get("arguments_json") or ""), _TEXT)


def _diff(tool: str, arguments: Mapping[str, Any]) -> tuple[str, ...]:
    """What a write or an edit changed, as the lines of a unified diff without its head."""
    if tool == "write" and isinstance(arguments.get("content"), str):
        lines = [f"+{line}" for line in arguments["content"].splitlines()]
    elif tool == "edit" and all(isinstance(arguments.get(n), str) for n in ("oldString", "newString")):
        old, new = (arguments[n].splitlines() for n in ("oldString", "newString"))
        lines = list(difflib.unified_diff(old, new, lineterm="", n=2))[2:]
    elif tool in {"patch", "apply_patch"} and isinstance(arguments.get("patchText"), str):
        lines = arguments["patchText"].splitlines()
    else:
        return ()
    more = [f"… {len(lines) - _DIFF_LINES} more lines"] if len(lines) > _DIFF_LINES else []
    return tuple(_cut(line, _TEXT) for line in [*lines[:_DIFF_LINES], *more])


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
