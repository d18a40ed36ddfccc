"""opencode's own printed stream (`agent/opencode.txt`) and its log.

The stream has what the trajectory loses: whether a tool call failed and with what words,
what the last event was, and the tokens of a run that a time-out cut short. Lines of stderr
are mixed in between the events.
"""

import re
from dataclasses import dataclass, field
from typing import Any

import msgspec

from akm_harbor.trials.values import InvalidJsonError, as_dict, as_float, as_int, as_text, parse_json


class _Part(msgspec.Struct):
    tool: Any = None
    callID: Any = None  # noqa: N815  (opencode's own name)
    state: Any = None
    reason: Any = None
    tokens: Any = None
    cost: Any = None


class _Event(msgspec.Struct):
    type: Any = None
    timestamp: Any = None
    part: _Part | None = None
    error: Any = None


@dataclass(slots=True)
class StreamCall:
    """One `tool_use` event."""

    call_id: str | None
    tool: str
    status: str | None
    arguments: Any
    output: Any
    error: str | None
    at: int | None
    step: int


@dataclass(slots=True)
class Stream:
    """What the printed stream tells.

    Attributes:
        calls: tool calls in order.
        steps_started: `step_start` events.
        steps_finished: `step_finish` events.
        stopped: the last event finished a step with reason `stop`: the agent was done.
        tokens: summed over finished steps (input with cache, cache reads, output with
            reasoning), or None when no step finished or every one carries only zeros.
        zero_tokens: steps finished, yet every token count is zero (a defect of opencode's).
        cost: summed cost, US dollars.
        error: (name, message) of the last `error` event.
        asked: the tail asks for a permission that nobody can give.
    """

    calls: list[StreamCall] = field(default_factory=list)
    steps_started: int = 0
    steps_finished: int = 0
    stopped: bool = False
    tokens: tuple[int, int, int] | None = None
    zero_tokens: bool = False
    first_prompt_tokens: int | None = None
    cost: float | None = None
    error: tuple[str, str] | None = None
    asked: bool = False


_decode = msgspec.json.Decoder(_Event).decode
_ASKING = re.compile(rb"\basking\b[^\n]*\bpermission=")


def parse_stream(data: bytes) -> Stream:
    """Read a printed stream; lines that are no events are passed over."""
    stream = Stream()
    sums = _Sums()
    last: tuple[str, Any] = ("", None)
    for line in data.split(b"\n"):
        if not line.startswith(b'{"') or b'"type"' not in line[:400]:
            continue
        if line.startswith((b'{"type":"text"', b'{"type":"reasoning"')):
            last = ("text", None)
            continue
        event = _event(line)
        if event is None:
            continue
        part = event.part or _Part()
        if event.type == "tool_use":
            stream.calls.append(_call(part, event.timestamp, stream.steps_started))
        elif event.type == "step_start":
            stream.steps_started += 1
        elif event.type == "step_finish":
            stream.steps_finished += 1
            sums.add(part)
        elif event.type == "error":
            stream.error = _error(as_dict(event.error))
        last = (str(event.type), part.reason)
    stream.stopped = last == ("step_finish", "stop")
    stream.first_prompt_tokens = sums.first
    stream.zero_tokens = stream.steps_finished > 0 and not any(sums.tokens)
    if any(sums.tokens):
        stream.tokens = (sums.tokens[0], sums.tokens[1], sums.tokens[2])
    stream.cost = sums.cost
    stream.asked = _ASKING.search(data[-20_000:]) is not None and not stream.stopped
    return stream


def _event(line: bytes) -> _Event | None:
    """One event; text that JavaScript cut inside a character pair is no reason to lose it."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    try:
        value = as_dict(parse_json(line))
    except InvalidJsonError:
        return None
    part = as_dict(value.get("part"))
    return _Event(
        value.get("type"),
        value.get("timestamp"),
        _Part(*(part.get(name) for name in _Part.__struct_fields__)),
        value.get("error"),
    )


@dataclass(slots=True)
class _Sums:
    """Tokens and cost over the finished steps."""

    tokens: list[int] = field(default_factory=lambda: [0, 0, 0])
    first: int | None = None
    cost: float | None = None
    steps: int = 0

    def add(self, part: _Part) -> None:
        counts = _counts(as_dict(part.tokens))
        if self.steps == 0:
            self.first = counts[0] or None
        self.steps += 1
        self.tokens = [a + b for a, b in zip(self.tokens, counts, strict=True)]
        spent = as_float(part.cost)
        if spent is not None:
            self.cost = (self.cost or 0.0) + spent


def _counts(tokens: dict[str, Any]) -> tuple[int, int, int]:
    cache = as_dict(tokens.get("cache"))
    read, written = as_int(cache.get("read")) or 0, as_int(cache.get("write")) or 0
    prompt = (as_int(tokens.get("input")) or 0) + read + written
    return prompt, read, (as_int(tokens.get("output")) or 0) + (as_int(tokens.get("reasoning")) or 0)


def _call(part: _Part, timestamp: Any, step: int) -> StreamCall:
    state = as_dict(part.state)
    started = as_int(as_dict(state.get("time")).get("start")) or as_int(timestamp)
    return StreamCall(
        as_text(part.callID, 200),
        as_text(part.tool, 200) or "unknown",
        as_text(state.get("status"), 50),
        state.get("input"),
        state.get("output"),
        as_text(state.get("error"), 20_000),
        started * 1000 if started is not None else None,
        step,
    )


def _error(error: dict[str, Any]) -> tuple[str, str]:
    data = as_dict(error.get("data"))
    status = as_int(data.get("statusCode"))
    message = as_text(data.get("message"), 500) or as_text(error.get("message"), 500) or ""
    return as_text(error.get("name"), 100) or "error", (f"{status} " if status else "") + message


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the head of opencode.log says about the plugin; its tail may be lost at exit.

    Attributes:
        cli_resolved: akm was found and has a fitting version.
        cli_failed: the plugin looked for akm and found none that works.
        helper_failures: calls of akm that failed, the benign one left out: with no README or
            package.json in the working folder, the session's first curate has no query.
        plugin_error: the plugin's own loading or a hook of it failed.
        asked: the log ends asking for a permission.
    """

    cli_resolved: bool = False
    cli_failed: bool = False
    helper_failures: int = 0
    plugin_error: bool = False
    asked: bool = False
    version: str | None = None


_VERSION = re.compile(r'message="AKM CLI resolved".*?\bversion=(\S+)')


def parse_log(data: bytes) -> LogFacts:
    """Read opencode.log (key=value lines)."""
    resolved = failed = broken = False
    failures = 0
    version = None
    last_asking = last_event = -1
    for number, raw in enumerate(data.split(b"\n")):
        if b"AKM " in raw:
            if b'message="AKM CLI resolved"' in raw:
                resolved = True
                match = _VERSION.search(raw.decode("utf-8", "replace"))
                version = match[1] if match else version
            elif b"AKM CLI resolution failed" in raw or b"akm CLI not installed or wrong version" in raw:
                failed = True
            elif b"AKM synchronous helper failed" in raw and not (
                b"operation=session-curate" in raw and b"MISSING_REQUIRED_ARGUMENT" in raw
            ):
                failures += 1
        if b"level=ERROR" in raw and (
            b"plugin config hook failed" in raw or b"failed to load plugin" in raw or b"BunInstallFailed" in raw
        ):
            broken = True
        if _ASKING.search(raw):
            last_asking = number
        elif b"message=evaluated permission=" in raw or b"message=process" in raw or b"message=replied" in raw:
            last_event = number
    return LogFacts(resolved, failed, failures, broken, last_asking > last_event, version)
