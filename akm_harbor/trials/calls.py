"""The tool calls of a trial, from its trajectory joined with the printed stream."""

from dataclasses import dataclass

from akm_harbor.tables.redact import redact_text
from akm_harbor.trials.akm_calls import akm_call
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.opencode import Stream, StreamCall, parse_stream
from akm_harbor.trials.result import Row
from akm_harbor.trials.trajectory import AtifCall, Trajectory, parse_trajectory
from akm_harbor.trials.values import InvalidJsonError, to_json

_ARGUMENT_CHARS = 8000
_HEAD_CHARS = 500


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


def read_calls(files: TrialFiles, agent: str, bundle_folder: str | None, calls: list[Row], reading: Reading) -> None:
    """Add the tool calls below one agent folder, from the trajectory, else from the printed stream.

    Args:
        files: the trial.
        agent: `agent`, or `steps/<name>/agent`.
        bundle_folder: where this trial's bundle lay, if it is known.
        calls: takes the rows, without the trial's columns. `_answered` is for the delivery verdict.
        reading: takes the sums.
    """
    stream = _stream(files, f"{agent}/opencode.txt", reading)
    trajectory = _trajectory(files, f"{agent}/trajectory.json")
    folders = [bundle_folder] if bundle_folder else []
    if trajectory is not None and (trajectory.n_steps or stream is None):
        reading.source = "trajectory.json"
        reading.n_steps += trajectory.n_steps
        reading.first_prompt_tokens = reading.first_prompt_tokens or trajectory.first_prompt_tokens
        by_id = {call.call_id: call for call in (stream.calls if stream else ()) if call.call_id}
        for call in trajectory.calls:
            calls.append(_call_row(len(calls), call, by_id.get(call.call_id or ""), folders))
    elif stream is not None:
        reading.source = "opencode.txt"
        reading.n_steps += stream.steps_started
        reading.first_prompt_tokens = reading.first_prompt_tokens or stream.first_prompt_tokens
        for printed in stream.calls:
            calls.append(_call_row(len(calls), None, printed, folders))


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


def _call_row(index: int, atif: AtifCall | None, stream: StreamCall | None, folders: list[str]) -> Row:
    """One row of `tool_calls`, from the trajectory, the printed stream, or both."""
    if atif is not None:
        tool, arguments, output, call_id = atif.tool, atif.arguments, atif.output, atif.call_id
        step, at = atif.step_id, atif.at
    else:
        assert stream is not None
        tool, arguments, call_id = stream.tool, stream.arguments, stream.call_id
        output = stream.output if isinstance(stream.output, str) else None
        step, at = stream.step, stream.at
    error = stream.error if stream else None
    akm = akm_call(tool, arguments, output or error, folders)
    row: Row = {
        "index": index,
        "step_id": step,
        "call_id": call_id,
        "tool": tool,
        "status": stream.status if stream else None,
        "started_at": at,
        "arguments_json": None if arguments is None else to_json(arguments, _ARGUMENT_CHARS),
        "output_chars": None if output is None else len(output),
        "output_head": None if output is None else redact_text(output, _HEAD_CHARS),
        "error": redact_text(error, _HEAD_CHARS) if error else None,
        "source": "opencode.txt" if atif is None else "trajectory.json",
    }
    if akm is not None:
        row["akm_verb"] = akm.verb
        row["akm_query"] = redact_text(akm.query, 2000) if akm.query else None
        row["akm_refs"] = [ref[:500] for ref in akm.refs[:200]]
        row["_answered"] = akm.answered
    return row
