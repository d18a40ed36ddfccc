"""ATIF trajectories (v1.0 to v1.8): the tool calls, read once and fast.

A study has gigabytes of them. Only what the tables need is made into Python values, straight into
parallel lists; of a doubled key the first counts. Steps that a resumed or summarised session copied
from an earlier one (`is_copied_context`) happened already and are not counted again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fastsimdjson import Array, Object, parse

from akm_harbor.trials.values import InvalidJsonError, as_dict, as_float, as_int, as_list, parse_json


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
        arguments: arguments, any JSON value, None when there are none.
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
    arguments: list[Any] = field(default_factory=list)
    outputs: list[str | None] = field(default_factory=list)
    times: list[str | None] = field(default_factory=list)


def parse_trajectory(data: bytes) -> Trajectory:
    """Read a trajectory. A field of another type than ATIF's costs only itself.

    Raises:
        InvalidJsonError: not JSON, or not a trajectory.
    """
    try:
        document = parse(data)
        if isinstance(document, Object):
            return _read(document)
    except (ValueError, TypeError, AttributeError, RecursionError):
        pass  # what is wrong is told, or let through, by those who read it slowly
    return _read(_straightened(parse_json(data)))


def _read(trajectory: Mapping[str, Any]) -> Trajectory:
    """Read what has the structure of a trajectory.

    Raises:
        TypeError, ValueError, AttributeError: it has not.
    """
    n_steps = 0
    prompts, cached, completions = [], [], []
    step_ids, call_ids, tools, arguments, outputs, times = [], [], [], [], [], []
    for step in trajectory.get("steps") or ():
        get = step.get
        if get("source") != "agent" or get("is_copied_context") is True:
            continue
        n_steps += 1
        if metrics := get("metrics"):
            prompts.append(metrics.get("prompt_tokens"))
            cached.append(metrics.get("cached_tokens"))
            completions.append(metrics.get("completion_tokens"))
        if not (calls := get("tool_calls")):
            continue
        observation = get("observation")
        results: Sequence[Any] = (observation.get("results") if observation else None) or ()
        if len(calls) == 1 == len(results):  # as nearly always
            (call,), (result,) = calls, results
            given, source = call.get("tool_call_id"), result.get("source_call_id")
            # An observation without an id belongs to the only call there is.
            outputs.append(result.get("content") if source is None or source == given else None)
        else:
            contents = {
                _text(result.get("source_call_id")): result.get("content") for result in reversed(list(results))
            }
            outputs += [contents.get(_text(call.get("tool_call_id"))) for call in calls]
        number, time = get("step_id"), get("timestamp")
        for call in calls:
            step_ids.append(number)
            times.append(time)
            call_ids.append(call.get("tool_call_id"))
            tools.append(call.get("function_name"))
            arguments.append(call.get("arguments"))
    first, tokens = _sums(_numbers(prompts), _numbers(cached), _numbers(completions))
    return Trajectory(
        _text(trajectory.get("schema_version")),
        n_steps,
        first,
        tokens,
        [as_int(number) for number in step_ids],
        [_text(call_id) for call_id in call_ids],
        [_text(tool) or "unknown" for tool in tools],
        [_value(given) for given in arguments],
        [text_of(content) for content in outputs],
        [_text(time) for time in times],
    )


type _Numbers = list[int] | list[float]


def _numbers(values: list[Any]) -> _Numbers:
    if set(map(type, values)) == {int}:  # the only kind there should be
        return values
    return [number for value in values if (number := as_float(value)) is not None]


def _sums(prompts: _Numbers, cached: _Numbers, completions: _Numbers) -> tuple[int | None, tuple[int, int, int] | None]:
    """Prompt tokens of the first step that has some, and the sums of all steps."""
    first = as_int(next((n // 1 for n in prompts if n > 0), None))
    a, b, c = (as_int(sum(numbers) // 1) for numbers in (prompts, cached, completions))
    known = bool(prompts) and a is not None and b is not None and c is not None and (a or b or c)
    return first, (a, b, c) if known else None  # type: ignore[return-value]


def text_of(content: Any) -> str | None:
    """The text of an observation: a string, or the text parts of a list; None for anything else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, Sequence):
        return None
    parts = [part.get("text") for part in content if isinstance(part, Mapping)]
    return "\n".join(part for part in parts if isinstance(part, str))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _value(view: Any) -> Any:
    """What a view shows, whole."""
    if isinstance(view, Object):
        return view.as_dict()
    return view.as_list() if isinstance(view, Array) else view


def _straightened(value: Any) -> dict[str, Any]:
    """The same trajectory where every container is of its kind: what is not is left out.

    Raises:
        InvalidJsonError: not a trajectory.
    """
    if not isinstance(value, dict):
        raise InvalidJsonError("not-a-trajectory", f"a JSON {type(value).__name__}, not a trajectory object")
    steps = [as_dict(step) for step in as_list(value.get("steps"))]
    return value | {
        "steps": [
            step
            | {
                "metrics": as_dict(step.get("metrics")),
                "tool_calls": _objects(step.get("tool_calls")),
                "observation": {"results": _objects(as_dict(step.get("observation")).get("results"))},
            }
            for step in steps
        ]
    }


def _objects(values: Any) -> list[dict[str, Any]]:
    return [as_dict(value) for value in as_list(values)]
