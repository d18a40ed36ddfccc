"""An ATIF trajectory as a flat list of tool calls, in the order of its steps."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Optional

TRAJECTORY_LIMIT = 64_000_000
TEXT_LIMIT = 100_000


class UnscorableError(Exception):
    """The trajectory cannot be judged, and why."""


@dataclass(frozen=True)
class Call:
    """One tool call.

    Attributes:
        step: the ATIF step it was made in. Calls of one step were decided together.
        index: its place within the step.
        tool: the tool's name.
        arguments: its arguments.
        result: what came back; None when the trajectory holds no result, which for opencode means
            that the tool failed or never ended.
    """

    step: int
    index: int
    tool: str
    arguments: dict[str, Any]
    result: Optional[str]  # noqa: UP045  (evaluated by dataclasses on Python 3.9)


@dataclass(frozen=True)
class Trajectory:
    """What compliance needs of a trajectory.

    Attributes:
        calls: all tool calls, in order.
        last_step: id of the last step.
    """

    calls: tuple[Call, ...]
    last_step: int


def _read_json(path: Path) -> Any:
    try:
        mode = path.lstat()
    except OSError:
        raise UnscorableError("the trial has no trajectory.json") from None
    if not stat.S_ISREG(mode.st_mode):
        raise UnscorableError("trajectory.json is not a regular file")
    if mode.st_size > TRAJECTORY_LIMIT:
        raise UnscorableError(f"trajectory.json is larger than {TRAJECTORY_LIMIT} bytes")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnscorableError(f"trajectory.json cannot be read: {error}") from None
    if not text.strip():
        raise UnscorableError("trajectory.json is empty")
    try:
        return json.loads(text)
    except RecursionError:
        raise UnscorableError("trajectory.json is nested too deeply") from None
    except ValueError as error:
        raise UnscorableError(f"trajectory.json is not valid JSON (cut off?): {error}") from None


def _text(content: Any) -> str:
    """A result's text; ATIF allows a string or a list of parts."""
    if isinstance(content, str):
        return content[:TEXT_LIMIT]
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))[:TEXT_LIMIT]
    return ""


def _results(step: dict[str, Any], step_id: int) -> dict[str, str]:
    observation = step.get("observation")
    if observation is None:
        return {}
    results = observation.get("results") if isinstance(observation, dict) else None
    if not isinstance(results, list):
        raise UnscorableError(f"step {step_id}: observation is not a list of results")
    found: dict[str, str] = {}
    for result in results:
        if isinstance(result, dict) and isinstance(result.get("source_call_id"), str):
            found[result["source_call_id"]] = _text(result.get("content"))
    return found


def _calls(step: dict[str, Any], step_id: int) -> list[Call]:
    given = step.get("tool_calls")
    if given is None:
        return []
    if not isinstance(given, list):
        raise UnscorableError(f"step {step_id}: tool_calls is not a list")
    results = _results(step, step_id)
    calls = []
    for index, call in enumerate(given):
        tool = call.get("function_name") if isinstance(call, dict) else None
        if not isinstance(tool, str):
            raise UnscorableError(f"step {step_id}: call {index} has no function_name")
        arguments = call.get("arguments")
        call_id = call.get("tool_call_id")
        result = results.get(call_id) if isinstance(call_id, str) else None
        calls.append(Call(step_id, index, tool, arguments if isinstance(arguments, dict) else {}, result))
    return calls


def read_trajectory(path: Path) -> Trajectory:
    """Read an ATIF trajectory (v1.0 to v1.8).

    Raises:
        UnscorableError: missing, empty, cut off, of the wrong shape, or without a single agent step.
    """
    document = _read_json(path)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list) or not steps:
        raise UnscorableError("trajectory.json holds no steps")
    calls: list[Call] = []
    last, agent_steps = 0, 0
    for step in steps:
        step_id = step.get("step_id") if isinstance(step, dict) else None
        if not isinstance(step_id, int) or isinstance(step_id, bool) or not last < step_id < 2**53:
            raise UnscorableError(f"step ids do not rise: {str(step_id)[:40]!r} after {last}")
        last = step_id
        agent_steps += step.get("source") == "agent"
        calls += _calls(step, step_id)
    if not agent_steps:
        raise UnscorableError("the agent made no step")
    final = document.get("final_metrics")
    claimed = final.get("total_steps") if isinstance(final, dict) else None
    if isinstance(claimed, int) and claimed > len(steps):
        raise UnscorableError(f"cut off: claims {claimed} steps, holds {len(steps)}")
    return Trajectory(tuple(calls), last)
