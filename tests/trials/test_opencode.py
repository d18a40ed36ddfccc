import json
from typing import Any

import pytest

from akm_harbor.trials.opencode import parse_log, parse_stream


def lines(*events: dict[str, Any] | str) -> bytes:
    return "\n".join(e if isinstance(e, str) else json.dumps(e, separators=(",", ":")) for e in events).encode() + b"\n"


def finish(reason: str = "stop", **tokens: Any) -> dict[str, Any]:
    counts = {"input": 100, "output": 7, "reasoning": 3, "cache": {"read": 40, "write": 5}, **tokens}
    return {"type": "step_finish", "timestamp": 1, "part": {"reason": reason, "tokens": counts, "cost": 0.25}}


START = {"type": "step_start", "timestamp": 1, "part": {"type": "step-start"}}
TEXT = {"type": "text", "timestamp": 1, "part": {"type": "text", "text": "Hello"}}


def tool(name: str = "bash", status: str = "completed", **state: Any) -> dict[str, Any]:
    part = {"tool": name, "callID": "call_1", "state": {"status": status, "input": {"command": "ls"}, **state}}
    return {"type": "tool_use", "timestamp": 2000, "part": part}


def test_a_whole_stream_with_stderr_mixed_in() -> None:
    stream = parse_stream(
        lines(
            "Performing one time database migration...",
            START,
            TEXT,
            tool(output="a", time={"start": 1500}),
            'Error: {"type": not json',
            finish("tool-calls"),
            START,
            TEXT,
            finish(),
            "",
        )
    )
    assert (stream.steps_started, stream.steps_finished, stream.stopped) == (2, 2, True)
    assert stream.tokens == (290, 80, 20)
    assert stream.first_prompt_tokens == 145
    assert stream.cost == 0.5
    (call,) = stream.calls
    assert (call.call_id, call.tool, call.status, call.at, call.step) == ("call_1", "bash", "completed", 1_500_000, 1)


def test_a_failed_tool_keeps_its_words() -> None:
    (call,) = parse_stream(lines(START, tool(status="error", error="File not found: x"))).calls
    assert (call.status, call.error, call.output) == ("error", "File not found: x", None)


def test_a_stream_cut_inside_a_step_has_unknown_tokens_not_zero() -> None:
    stream = parse_stream(lines(START))
    assert (stream.steps_started, stream.steps_finished, stream.stopped) == (1, 0, False)
    assert stream.tokens is None
    assert stream.zero_tokens is False


def test_a_last_line_cut_in_half() -> None:
    data = lines(START, tool(), finish("tool-calls"), START, tool())
    assert len(parse_stream(data[:-30]).calls) == 1


def test_finished_steps_with_only_zeros_are_a_defect() -> None:
    zero = {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}}
    stream = parse_stream(lines(START, finish(**zero), START, finish(**zero)))
    assert (stream.zero_tokens, stream.tokens, stream.cost) == (True, None, 0.5)


def test_a_provider_error() -> None:
    error = {"name": "APIError", "data": {"message": "bad key", "statusCode": 401}}
    stream = parse_stream(lines({"type": "error", "timestamp": 1, "error": error}))
    assert stream.error == ("APIError", "401 bad key")


def test_a_permission_nobody_answers() -> None:
    asked = parse_stream(lines(START, TEXT, "INFO asking id=per_1 permission=bash patterns=[]"))
    assert asked.asked is True
    answered = parse_stream(lines(START, "INFO asking id=per_1 permission=bash", TEXT, finish()))
    assert answered.asked is False


def test_events_of_odd_types_are_passed_over() -> None:
    odd: list[dict[str, Any] | str] = [
        {"type": "tool_use", "part": "x"},
        {"type": "tool_use", "part": {"tool": 3, "callID": [], "state": "x"}},
        {"type": 7},
        {"type": "step_finish", "part": {"tokens": [], "cost": "free"}},
        {"type": "tool_use"},
        "{",
        '{"a": "type"}',
    ]
    stream = parse_stream(lines(*odd) + b'{"type":"tool_use",\xff}\n')
    assert [call.tool for call in stream.calls] == ["unknown"] * 3


def test_output_cut_inside_a_character_pair_does_not_lose_the_call() -> None:
    line = lines(tool(output="x")).replace(b'"x"', b'"x \\ud83d"')
    assert parse_stream(line).calls[0].output == "x \ufffd"
    assert parse_stream(b"").calls == []


HEAD = (
    'timestamp=2026-01-01T00:00:00Z level=INFO run=1 message="AKM CLI resolved" subsystem=akm source=path version=0.9.0'
)
BENIGN = (
    'level=WARN message="AKM synchronous helper failed" subsystem=curation operation=session-curate '
    'error="{ \\"code\\": \\"MISSING_REQUIRED_ARGUMENT\\" }"'
)
FAILED = 'level=WARN message="AKM synchronous helper failed" subsystem=hints operation=session-hints error="AKM CLI"'


def test_the_log_of_a_healthy_session_has_one_benign_warning() -> None:
    facts = parse_log(f"{HEAD}\n{BENIGN}\n".encode())
    assert (facts.cli_resolved, facts.cli_failed, facts.helper_failures, facts.version) == (True, False, 0, "0.9.0")


def test_the_log_of_a_broken_akm() -> None:
    text = f'level=WARN message="AKM CLI resolution failed" reason=x\n{BENIGN}\n' + f"{FAILED}\n" * 9
    facts = parse_log(text.encode())
    assert (facts.cli_resolved, facts.cli_failed, facts.helper_failures) == (False, True, 9)


@pytest.mark.parametrize(
    "said", ["plugin config hook failed", "failed to load plugin", "BunInstallFailedError: ConnectionRefused"]
)
def test_the_log_of_a_plugin_that_cannot_load(said: str) -> None:
    assert parse_log(f'level=ERROR message="{said}" error=x'.encode()).plugin_error is True


def test_other_errors_of_the_log_are_not_the_plugins() -> None:
    assert parse_log(b'level=ERROR message="Failed to fetch models.dev"').plugin_error is False


def test_asking_at_the_end_of_the_log() -> None:
    asking = "level=INFO message=asking id=per_1 permission=bash patterns=x"
    assert parse_log(f"{HEAD}\n{asking}\n".encode()).asked is True
    assert parse_log(f"{asking}\nlevel=INFO message=evaluated permission=bash\n".encode()).asked is False
