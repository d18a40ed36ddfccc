"""ATIF trajectories (v1.0 to v1.8): the tool calls, read once and fast.

Only the fields the tables need are decoded, straight into parallel lists: a study has hundreds
of thousands of calls. Steps that a resumed or summarised session copied from an earlier one
(`is_copied_context`) happened already and are not counted again.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any

import msgspec

from akm_harbor.trials.values import InvalidJsonError, as_dict, as_float, as_int, as_list, parse_json

type _Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""What a column of whole numbers holds; beyond it the file is read leniently, and the value is null."""


_NULL = msgspec.Raw(b"null")


class _ToolCall(msgspec.Struct, gc=False):
    tool_call_id: str | None = None
    function_name: str | None = None
    arguments: msgspec.Raw = _NULL


class _Result(msgspec.Struct, gc=False):
    source_call_id: str | None = None
    content: str | list[Any] | None = None


class _Observation(msgspec.Struct, gc=False):
    results: list[_Result] | None = None


class _Metrics(msgspec.Struct, gc=False):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    cached_tokens: float | None = None


class _Step(msgspec.Struct, gc=False):
    step_id: _Int64 | None = None
    timestamp: str | None = None
    source: str | None = None
    tool_calls: list[_ToolCall] | None = None
    observation: _Observation | None = None
    metrics: _Metrics | None = None
    is_copied_context: bool | None = None


class _Atif(msgspec.Struct, gc=False):
    schema_version: str | None = None
    steps: list[_Step] | None = None


type _Content = str | list[Any] | None

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
        arguments: arguments, as JSON, `null` when there are none.
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
    arguments: list[msgspec.Raw] = field(default_factory=list)
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
    steps = [step for step in atif.steps or () if step.source == "agent" and not step.is_copied_context]
    result = Trajectory(atif.schema_version, len(steps))
    _take_metrics([step.metrics for step in steps if step.metrics is not None], result)
    _take_calls(steps, result)
    return result


def _take_metrics(metrics: list[_Metrics], into: Trajectory) -> None:
    prompts = [m.prompt_tokens for m in metrics if m.prompt_tokens is not None]
    into.first_prompt_tokens = as_int(next((n // 1 for n in prompts if n > 0), None))
    # Lists rather than generators: there is a row for every step of a study.
    prompt = sum(prompts)
    cached, completion = sum([m.cached_tokens or 0 for m in metrics]), sum([m.completion_tokens or 0 for m in metrics])
    if prompts and (prompt or cached or completion) and max(prompt, cached, completion) < 2**63:
        into.tokens = (int(prompt), int(cached), int(completion))


def _take_calls(steps: list[_Step], into: Trajectory) -> None:
    acting = [step for step in steps if step.tool_calls]
    try:
        calls, contents = _one_each(acting)
    except (TypeError, ValueError, AttributeError):
        calls, contents = _matched(acting)
        acting = [step for step in acting for _ in step.tool_calls or ()]
    into.step_ids = [step.step_id for step in acting]
    into.times = [step.timestamp for step in acting]
    into.call_ids = [call.tool_call_id for call in calls]
    into.tools = [call.function_name or "unknown" for call in calls]
    into.arguments = [call.arguments for call in calls]
    into.outputs = [text_of(content) if isinstance(content, list) else content for content in contents]


def _one_each(steps: list[_Step]) -> tuple[list[_ToolCall], list[_Content]]:
    """The calls and what they gave, where each step has one of each, as nearly always.

    Raises:
        TypeError, ValueError, AttributeError: some step has not.
    """
    calls = [call for step in steps for (call,) in (step.tool_calls,)]  # type: ignore[misc]
    results = [result for step in steps for (result,) in (step.observation.results,)]  # type: ignore[union-attr,misc]
    # An observation without ids belongs to the only call there is.
    sources = [result.source_call_id for result in results]
    ids = [call.tool_call_id for call in calls]
    if sources != ids and any(s not in (None, i) for s, i in zip(sources, ids, strict=True)):
        raise ValueError("an observation of another call")
    return calls, [result.content for result in results]


def _matched(steps: list[_Step]) -> tuple[list[_ToolCall], list[_Content]]:
    """The calls and what they gave, found by the calls' ids."""
    calls: list[_ToolCall] = []
    contents: list[_Content] = []
    for step in steps:
        own = step.tool_calls or []
        results = (step.observation.results if step.observation is not None else None) or ()
        given = {result.source_call_id: result.content for result in reversed(results)}
        only = len(own) == len(results) == 1 and None in given
        calls += own
        contents += [given.get(None if only else call.tool_call_id) for call in own]
    return calls, contents


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
        return _NULL
    try:
        return msgspec.Raw(msgspec.json.encode(call["arguments"]))
    except (msgspec.MsgspecError, OverflowError, RecursionError):
        return msgspec.Raw(b'"[arguments that are no JSON]"')
