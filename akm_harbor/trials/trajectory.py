"""ATIF trajectories (v1.0 to v1.8): the tool calls, read once and fast.

A study has gigabytes of them. Only what the tables need is made into Python values, straight into
parallel lists; of a doubled key the first counts. Steps that a resumed or summarised session copied
from an earlier one (`is_copied_context`) happened already and are not counted again.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    metrics: list[tuple[Any, Any, Any]] = []
    calls: list[tuple[Any, Any, Any, Any, Any, Any]] = []
    for step in trajectory.get("steps") or ():
        get = step.get
        if get("source") != "agent" or get("is_copied_context") is True:
            continue
        n_steps += 1
        if used := get("metrics"):
            metrics.append((used.get("prompt_tokens"), used.get("cached_tokens"), used.get("completion_tokens")))
        if own := get("tool_calls"):
            observed = get("observation")
            results: Sequence[Any] = (observed.get("results") if observed else None) or ()
            if len(own) == 1 == len(results):  # as nearly always
                (call,), (result,) = own, results
                number, source = call.get("tool_call_id"), result.get("source_call_id")
                # An observation without an id belongs to the only call there is.
                content = result.get("content") if source is None or source == number else None
                given = call.get("function_name"), call.get("arguments"), content
                calls.append((get("step_id"), get("timestamp"), number, *given))
            else:
                calls += _matched(step, own, results)
    first, tokens = _sums(*map(_numbers, _columns(metrics, 3)))
    numbers, times, ids, tools, arguments, contents = _columns(calls, 6)
    return Trajectory(
        _text(trajectory.get("schema_version")),
        n_steps,
        first,
        tokens,
        [number if type(number) is int and abs(number) < 2**63 else as_int(number) for number in numbers],
        _texts(ids),
        [tool or "unknown" for tool in _texts(tools)],
        [given.as_dict() if type(given) is Object else _value(given) for given in arguments],
        [content if type(content) is str else text_of(content) for content in contents],
        _texts(times),
    )


def _matched(step: Any, calls: Any, results: Sequence[Any]) -> Iterator[tuple[Any, Any, Any, Any, Any, Any]]:
    """A step's calls, each with the content that its id is given with, None without any."""
    contents = {_text(result.get("source_call_id")): result.get("content") for result in reversed(list(results))}
    for call in calls:
        number = call.get("tool_call_id")
        given = call.get("function_name"), call.get("arguments"), contents.get(_text(number))
        yield step.get("step_id"), step.get("timestamp"), number, *given


def _columns(rows: list[tuple[Any, ...]], n: int) -> Iterable[Sequence[Any]]:
    return zip(*rows, strict=True) if rows else [()] * n


def _texts(values: Sequence[Any]) -> list[str | None]:
    return list(values) if set(map(type, values)) <= {str} else [_text(value) for value in values]


type _Numbers = Sequence[int] | Sequence[float]


def _numbers(values: Sequence[Any]) -> _Numbers:
    if set(map(type, values)) <= {int}:  # the only kind there should be
        return values
    return [number for value in values if (number := as_float(value)) is not None]


def _sums(prompts: _Numbers, cached: _Numbers, completions: _Numbers) -> tuple[int | None, tuple[int, int, int] | None]:
    """Prompt tokens of the first step that has some, and the sums of all steps."""
    first = as_int(next((n // 1 for n in prompts if n > 0), None))
    a, b, c = (as_int(sum(numbers) // 1) for numbers in (prompts, cached, completions))
    known = prompts and a is not None and b is not None and c is not None and (a or b or c)
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
