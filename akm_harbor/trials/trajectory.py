"""ATIF trajectories (v1.0 to v1.8): the tool calls, read once and fast.

Only the fields the tables need are decoded. Steps that a resumed or summarised session
copied from an earlier one (`is_copied_context`) happened already and are not counted again.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from akm_harbor.trials.values import InvalidJsonError, as_dict, as_int, as_list, as_text, micros, parse_json


class _ToolCall(msgspec.Struct):
    tool_call_id: Any = None
    function_name: Any = None
    arguments: Any = None


class _Result(msgspec.Struct):
    source_call_id: Any = None
    content: Any = None


class _Observation(msgspec.Struct):
    results: list[_Result] | None = None


class _Metrics(msgspec.Struct):
    prompt_tokens: Any = None
    completion_tokens: Any = None
    cached_tokens: Any = None


class _Step(msgspec.Struct):
    step_id: Any = None
    timestamp: Any = None
    source: Any = None
    tool_calls: list[_ToolCall] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: Any = None


class _Atif(msgspec.Struct):
    schema_version: Any = None
    steps: list[_Step] | None = None


_typed = msgspec.json.Decoder(_Atif).decode


@dataclass(slots=True)
class AtifCall:
    """One tool call of a trajectory."""

    step_id: int | None
    call_id: str | None
    tool: str
    arguments: Any
    output: str | None
    at: int | None


@dataclass(slots=True)
class Trajectory:
    """What a trajectory tells.

    Attributes:
        calls: tool calls in order.
        n_steps: agent steps, copied context left out.
        first_prompt_tokens: prompt tokens of the first agent step that has them.
        tokens: (input, cache, output) summed over the agent steps, None without metrics.
        version: `schema_version` as written.
    """

    calls: list[AtifCall] = field(default_factory=list)
    n_steps: int = 0
    first_prompt_tokens: int | None = None
    tokens: tuple[int, int, int] | None = None
    version: str | None = None


def parse_trajectory(data: bytes) -> Trajectory:
    """Read a trajectory.

    Raises:
        InvalidJsonError: not JSON, or not a trajectory.
    """
    try:
        atif = _typed(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        atif = _leniently(parse_json(data))
    result = Trajectory(version=as_text(atif.schema_version, 50))
    totals = [0, 0, 0]
    measured = False
    for step in atif.steps or ():
        if step.source != "agent" or step.is_copied_context is True:
            continue
        result.n_steps += 1
        if step.metrics is not None:
            m = step.metrics
            prompt = as_int(m.prompt_tokens)
            if prompt is not None:
                measured = True
                if result.first_prompt_tokens is None and prompt > 0:
                    result.first_prompt_tokens = prompt
            for i, value in enumerate((prompt, as_int(m.cached_tokens), as_int(m.completion_tokens))):
                totals[i] += value or 0
        if step.tool_calls:
            _take_calls(step, result.calls)
    if measured and any(totals):
        result.tokens = (totals[0], totals[1], totals[2])
    return result


def _take_calls(step: _Step, calls: list[AtifCall]) -> None:
    outputs: dict[str, str] = {}
    results = (step.observation.results if step.observation else None) or []
    for item in results:
        if isinstance(item.source_call_id, str):
            outputs[item.source_call_id] = text_of(item.content)
    at = micros(step.timestamp)[0]
    tool_calls = step.tool_calls or []
    # An observation without ids belongs to the only call there is.
    only = text_of(results[0].content) if len(tool_calls) == 1 and len(results) == 1 and not outputs else None
    for call in tool_calls:
        call_id = as_text(call.tool_call_id, 200)
        output = outputs.get(call_id) if call_id is not None else None
        calls.append(
            AtifCall(
                as_int(step.step_id),
                call_id,
                as_text(call.function_name, 200) or "unknown",
                call.arguments,
                output if output is not None else only,
                at,
            )
        )


def text_of(content: Any) -> str:
    """The text of an observation: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return ""


def _leniently(value: Any) -> _Atif:
    """The same structure from a file whose field types are off: what fits is kept."""
    if not isinstance(value, dict):
        raise InvalidJsonError("not-a-trajectory", f"a JSON {type(value).__name__}, not a trajectory object")
    steps = []
    for raw in as_list(value.get("steps")):
        step = as_dict(raw)
        calls = [as_dict(c) for c in as_list(step.get("tool_calls"))]
        results = [as_dict(r) for r in as_list(as_dict(step.get("observation")).get("results"))]
        metrics = as_dict(step.get("metrics"))
        steps.append(
            _Step(
                step.get("step_id"),
                step.get("timestamp"),
                step.get("source"),
                [_ToolCall(c.get("tool_call_id"), c.get("function_name"), c.get("arguments")) for c in calls],
                _Observation([_Result(r.get("source_call_id"), r.get("content")) for r in results]),
                _Metrics(metrics.get("prompt_tokens"), metrics.get("completion_tokens"), metrics.get("cached_tokens")),
                step.get("is_copied_context"),
            )
        )
    return _Atif(value.get("schema_version"), steps)
