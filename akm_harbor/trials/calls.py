"""The tool calls of a trial, from its trajectory joined with the printed stream, column by column."""

import json
from dataclasses import dataclass, field
from typing import Any

import msgspec

from akm_harbor.tables.redact import MARGIN
from akm_harbor.trials.akm_calls import AkmCall, akm_call, worth_a_look
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.opencode import Stream, StreamCall, parse_stream
from akm_harbor.trials.trajectory import Trajectory, parse_trajectory
from akm_harbor.trials.values import InvalidJsonError, to_json

ARGUMENT_CHARS = 8000
HEAD_CHARS = 500
QUERY_CHARS = 2000

_encode = msgspec.json.Encoder().encode

type Columns = dict[str, list[Any]]

_KEPT = HEAD_CHARS + MARGIN
"""Secrets are taken out of whole columns later; until then a text is a little longer than its cut."""


@dataclass(slots=True)
class AkmUse:
    """A call that had to do with akm, and how it went."""

    tool: str
    status: str | None
    error: str | None
    call: AkmCall


@dataclass(slots=True)
class Calls:
    """The tool calls of a trial.

    Attributes:
        columns: the `tool_calls` columns, without the trial's.
        akm: those calls that had to do with akm.
    """

    columns: Columns = field(
        default_factory=lambda: {
            name: []
            for name in (
                "index",
                "step_id",
                "call_id",
                "tool",
                "status",
                "started_at",
                "arguments_json",
                "output_chars",
                "output_head",
                "error",
                "akm_verb",
                "akm_query",
                "akm_refs",
                "source",
            )
        }
    )
    akm: list[AkmUse] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["tool"])


@dataclass(slots=True)
class Reading:
    """What the trajectories and streams of a trial's agent folders add up to.

    Attributes:
        source: where the calls come from; None when there is neither.
        n_steps: agent steps.
        first_prompt_tokens: prompt tokens of the first of them.
        stream_tokens: (input, cache, output) summed over printed steps; None without any.
        zero_tokens: a stream's finished steps carry only zeros.
        stream_cost: summed printed cost, US dollars.
        stopped: the last stream ends with the agent being done.
        asked: the last stream ends asking for a permission.
        truncated: the last stream ends inside a step.
        error: (name, message) of the last printed error.
    """

    source: str | None = None
    n_steps: int = 0
    first_prompt_tokens: int | None = None
    stream_tokens: tuple[int, int, int] | None = None
    zero_tokens: bool = False
    stream_cost: float | None = None
    stopped: bool = False
    asked: bool = False
    truncated: bool = False
    error: tuple[str, str] | None = None


def read_calls(files: TrialFiles, agent: str, bundle_folder: str | None, calls: Calls, reading: Reading) -> None:
    """Add the tool calls below one agent folder, from the trajectory, else from the printed stream.

    Args:
        files: the trial.
        agent: `agent`, or `steps/<name>/agent`.
        bundle_folder: where this trial's bundle lay, if it is known.
        calls: takes the calls.
        reading: takes the sums.
    """
    stream = _stream(files, f"{agent}/opencode.txt", reading)
    trajectory = _trajectory(files, f"{agent}/trajectory.json")
    if trajectory is not None and (trajectory.n_steps or stream is None):
        reading.source = "trajectory.json"
        reading.n_steps += trajectory.n_steps
        reading.first_prompt_tokens = reading.first_prompt_tokens or trajectory.first_prompt_tokens
        _add_trajectory(trajectory, stream, bundle_folder, calls)
    elif stream is not None:
        reading.source = "opencode.txt"
        reading.n_steps += stream.steps_started
        reading.first_prompt_tokens = reading.first_prompt_tokens or stream.first_prompt_tokens
        _add_stream(stream, bundle_folder, calls)


def _add_trajectory(t: Trajectory, stream: Stream | None, folder: str | None, calls: Calls) -> None:
    first, n = len(calls), len(t.tools)
    printed: dict[str, StreamCall] = {c.call_id: c for c in (stream.calls if stream else ()) if c.call_id}
    if printed:
        matched = [printed.get(call_id or "") for call_id in t.call_ids]
        statuses = [c.status if c else None for c in matched]
        errors = [c.error if c else None for c in matched]
    else:
        statuses = errors = [None] * n
    verbs: list[str | None] = [None] * n
    queries: list[str | None] = [None] * n
    refs: list[list[str] | None] = [None] * n
    arguments = [_compact(value) for value in t.arguments]
    for i in worth_a_look(t.tools, arguments, folder):
        output = t.outputs[i] or errors[i]
        akm = akm_call(t.tools[i], t.arguments[i], output, [folder] if folder else ())
        if akm is not None:
            verbs[i], queries[i], refs[i] = _akm_columns(akm)
            calls.akm.append(AkmUse(t.tools[i], statuses[i], errors[i], akm))
    c = calls.columns
    c["index"] += range(first, first + n)
    c["step_id"] += t.step_ids
    c["call_id"] += t.call_ids
    c["tool"] += t.tools
    c["status"] += statuses
    c["started_at"] += t.times
    c["arguments_json"] += [
        # Long ones are cut inside their strings, so that names can be seen.
        None if text == "null" else text if len(text) <= ARGUMENT_CHARS else to_json(value, ARGUMENT_CHARS)
        for text, value in zip(arguments, t.arguments, strict=True)
    ]
    c["output_chars"] += [None if text is None else len(text) for text in t.outputs]
    c["output_head"] += [None if text is None else text[:_KEPT] for text in t.outputs]
    c["error"] += [None if text is None else text[:_KEPT] for text in errors] if printed else errors
    c["akm_verb"] += verbs
    c["akm_query"] += queries
    c["akm_refs"] += refs
    c["source"] += ["trajectory.json"] * n


def _add_stream(stream: Stream, folder: str | None, calls: Calls) -> None:
    c = calls.columns
    for call in stream.calls:
        output = call.output if isinstance(call.output, str) else None
        akm = akm_call(call.tool, call.arguments, output or call.error, [folder] if folder else ())
        verb, query, refs = _akm_columns(akm) if akm else (None, None, None)
        if akm is not None:
            calls.akm.append(AkmUse(call.tool, call.status, call.error, akm))
        for name, value in (
            ("index", len(calls)),
            ("step_id", call.step),
            ("call_id", call.call_id),
            ("status", call.status),
            ("started_at", call.at),
            ("arguments_json", None if call.arguments is None else to_json(call.arguments, ARGUMENT_CHARS)),
            ("output_chars", None if output is None else len(output)),
            ("output_head", None if output is None else output[:_KEPT]),
            ("error", None if call.error is None else call.error[:_KEPT]),
            ("akm_verb", verb),
            ("akm_query", query),
            ("akm_refs", refs),
            ("source", "opencode.txt"),
            ("tool", call.tool),
        ):
            c[name].append(value)


def _akm_columns(akm: AkmCall) -> tuple[str, str | None, list[str]]:
    query = akm.query[: QUERY_CHARS + MARGIN] if akm.query else None
    return akm.verb, query, [ref[:500] for ref in akm.refs[:200]]


def _compact(value: Any) -> str:
    """Arguments as compact JSON."""
    try:
        return _encode(value).decode()
    except (msgspec.MsgspecError, OverflowError, UnicodeEncodeError, RecursionError):
        pass  # numbers beyond 64 bits, or nested too deeply
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError):
        return '"[arguments that are no JSON]"'


def _stream(files: TrialFiles, rel: str, reading: Reading) -> Stream | None:
    data = files.read(rel)
    if data is None:
        return None
    stream = parse_stream(data)
    reading.stopped, reading.asked = stream.stopped, stream.asked
    reading.truncated = stream.steps_started > stream.steps_finished
    reading.error = stream.error or reading.error
    reading.zero_tokens = reading.zero_tokens or stream.zero_tokens
    if stream.tokens:
        before = reading.stream_tokens or (0, 0, 0)
        a, b, c = (x + y for x, y in zip(before, stream.tokens, strict=True))
        reading.stream_tokens = (a, b, c)
    if stream.cost is not None:
        reading.stream_cost = (reading.stream_cost or 0.0) + stream.cost
    return stream if stream.calls or stream.steps_started or stream.error else None


def _trajectory(files: TrialFiles, rel: str) -> Trajectory | None:
    data = files.read(rel)
    if data is None:
        return None
    try:
        return parse_trajectory(data)
    except InvalidJsonError as error:
        files.problem(rel, error.kind, str(error), "tool calls read from opencode.txt, if it is there")
        return None
