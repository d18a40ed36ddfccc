"""ATIF trajectories (v1.0 to v1.8): the tool calls, read once and fast.

Only the fields the tables need are decoded, straight into parallel lists: a study has hundreds
of thousands of calls. Steps that a resumed or summarised session copied from an earlier one
(`is_copied_context`) happened already and are not counted again.
"""

from dataclasses import dataclass, field
from typing import Any

import msgspec

from akm_harbor.trials.values import InvalidJsonError, as_dict, as_float, as_int, as_list, parse_json


class _ToolCall(msgspec.Struct):
    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: msgspec.Raw = msgspec.Raw()


class _Result(msgspec.Struct):
    source_call_id: str | None = None
    content: str | list[Any] | None = None


class _Observation(msgspec.Struct):
    results: list[_Result] | None = None


class _Metrics(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cached_tokens: float | None = None


class _Step(msgspec.Struct):
    step_id: int | None = None
    timestamp: str | None = None
    source: str | None = None
    tool_calls: list[_ToolCall] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None


class _Atif(msgspec.Struct):
    schema_version: str | None = None
    steps: list[_Step] | None = None


_typed = msgspec.json.Decoder(_Atif).decode


@dataclass(slots=True)
class Trajectory:
    """What a trajectory tells. The lists are parallel, one element a tool call.

    Attributes:
        version: `schema_version` as written.
        n_steps: agent steps, copied context left out.
        first_prompt_tokens: prompt tokens of the first agent step that has them.
        tokens: (input, cache, output) summed over the agent steps, None without metrics.
        step_ids: ATIF step ids.
        call_ids: the calls' ids.
        tools: tool names.
        arguments: arguments as JSON bytes, empty when there are none.
        outputs: observed output text, None when there is none.
        times: the step's time, as written.
    """

    version: str | None = None
    n_steps: int = 0
    first_prompt_tokens: int | None = None
    tokens: tuple[int, int, int] | None = None
    step_ids: list[int | None] = field(default_factory=list)
    call_ids: list[str | None] = field(default_factory=list)
    tools: list[str] = field(default_factory=list)
    arguments: list[bytes] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    times: list[str | None] = field(default_factory=list)


def parse_trajectory(data: bytes) -> Trajectory:
    """Read a trajectory.

    Raises:
        InvalidJsonError: not JSON, or not a trajectory.
    """
    try:
        atif = _typed(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        atif = _leniently(parse_json(data))
    result = Trajectory(version=atif.schema_version)
    prompt = cached = completion = 0.0
    measured = False
    for step in atif.steps or ():
        if step.source != "agent" or step.is_copied_context:
            continue
        result.n_steps += 1
        metrics = step.metrics
        if metrics is not None:
            if metrics.prompt_tokens is not None:
                measured = True
                prompt += metrics.prompt_tokens
                if result.first_prompt_tokens is None and metrics.prompt_tokens > 0:
                    result.first_prompt_tokens = int(metrics.prompt_tokens)
            cached += metrics.cached_tokens or 0
            completion += metrics.completion_tokens or 0
        if step.tool_calls:
            _take_calls(step, step.tool_calls, result)
    if measured and (prompt or cached or completion):
        result.tokens = (int(prompt), int(cached), int(completion))
    return result


def _take_calls(step: _Step, calls: list[_ToolCall], into: Trajectory) -> None:
    results = (step.observation.results if step.observation is not None else None) or ()
    # An observation without ids belongs to the only call there is.
    only = len(calls) == len(results) == 1 and results[0].source_call_id is None
    for call in calls:
        into.step_ids.append(step.step_id)
        into.call_ids.append(call.tool_call_id)
        into.tools.append(call.function_name or "unknown")
        into.arguments.append(bytes(call.arguments))
        into.times.append(step.timestamp)
        content = None
        for item in results:
            if only or item.source_call_id == call.tool_call_id:
                content = item.content
                break
        into.outputs.append(text_of(content) if isinstance(content, list) else content)


def text_of(content: Any) -> str:
    """The text of an observation: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    parts = [as_dict(part).get("text") for part in as_list(content)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _leniently(value: Any) -> _Atif:
    """The same structure from a file whose field types are off: what fits is kept."""
    if not isinstance(value, dict):
        raise InvalidJsonError("not-a-trajectory", f"a JSON {type(value).__name__}, not a trajectory object")
    return _Atif(
        _text(value.get("schema_version")), [_lenient_step(as_dict(raw)) for raw in as_list(value.get("steps"))]
    )


def _lenient_step(step: dict[str, Any]) -> _Step:
    calls = [as_dict(c) for c in as_list(step.get("tool_calls"))]
    results = [as_dict(r) for r in as_list(as_dict(step.get("observation")).get("results"))]
    metrics = as_dict(step.get("metrics"))
    return _Step(
        as_int(step.get("step_id")),
        _text(step.get("timestamp")),
        _text(step.get("source")),
        [_ToolCall(_text(c.get("tool_call_id")), _text(c.get("function_name")), _raw(c)) for c in calls],
        _Observation([_Result(_text(r.get("source_call_id")), text_of(r.get("content"))) for r in results]),
        _Metrics(*(as_float(metrics.get(f"{name}_tokens")) for name in ("prompt", "completion", "cached"))),
        step.get("is_copied_context") is True,
    )


def _raw(call: dict[str, Any]) -> msgspec.Raw:
    if "arguments" not in call:
        return msgspec.Raw()
    try:
        return msgspec.Raw(msgspec.json.encode(call["arguments"]))
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return msgspec.Raw(b'"[arguments that are no JSON]"')
