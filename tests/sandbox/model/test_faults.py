"""Each fault, as a client meets it; and that it strikes only where it was declared."""

import http.client
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.sandbox.model import ScriptedModel

Serve = Callable[..., ScriptedModel]
Log = Callable[[], list[dict[str, Any]]]

HEAD = """
version: 1
tasks: {work: work}
rules:
  - name: go
    turns:
      - {say: first, call: {tool: bash, args: {command: 'echo something long enough'}}}
      - say: 'second {{attempt}} and some more words to make this more than one piece of a stream'
faults:
"""
BROKEN = (http.client.IncompleteRead, ConnectionResetError)


def test_unauthorized(serve: Serve, client: Any, log_lines: Log) -> None:
    agent = client(serve(HEAD + "  - {kind: unauthorized, times: null}\n").port)
    agent.say("user", "work")
    for _ in range(3):
        response = agent.post(agent.body())
        assert response.status == 401
        assert json.loads(response.read())["error"]["code"] == "invalid_api_key"
    assert [(line["fault"], line["status"], line["attempt"]) for line in log_lines()] == [("unauthorized", 401, 1)] * 3


def test_rate_limited_once_then_served(serve: Serve, client: Any) -> None:
    agent = client(serve(HEAD + "  - {kind: rate-limited, retry_after: 2.5}\n").port, session="s")
    agent.say("user", "work")
    response = agent.post(agent.body())
    response.read()
    assert (response.status, response.headers["Retry-After"]) == (429, "2.5")
    assert agent.ask()["content"] == "first"


def test_a_refused_request_asked_again_is_the_same_attempt(serve: Serve, client: Any, log_lines: Log) -> None:
    """Also for a client that sends no session id."""
    agent = client(serve(HEAD + "  - {kind: rate-limited, times: 2}\n").port)
    agent.say("user", "work")
    for status in (429, 429, 200):
        response = agent.post(agent.body())
        response.read()
        assert response.status == status
    assert {line["attempt"] for line in log_lines()} == {1}


def test_a_stall_is_silent_then_answers(serve: Serve, client: Any) -> None:
    agent = client(serve(HEAD + "  - {kind: stall, seconds: 0.3}\n").port, session="s")
    agent.say("user", "work")
    started = time.monotonic()
    assert agent.stream()[-1] == "[DONE]"
    assert time.monotonic() - started >= 0.3


def test_a_stall_ends_when_the_client_leaves(serve: Serve, client: Any, tmp_path: Path) -> None:
    agent = client(serve(HEAD + "  - {kind: stall}\n").port, session="s")
    agent.say("user", "work")
    response = agent.post(agent.body(stream=True))
    response.close()
    deadline = time.monotonic() + 5
    log = tmp_path / "requests.jsonl"
    while not log.read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert json.loads(log.read_text())["outcome"] == "client-gone"


def test_a_cut_stream_is_an_error_and_the_retry_is_whole(serve: Serve, client: Any) -> None:
    agent = client(serve(HEAD + "  - {kind: cut-stream, chunks: 2}\n").port, session="s")
    agent.say("user", "work")
    with pytest.raises(BROKEN):
        agent.stream()
    assert agent.stream()[-1] == "[DONE]"


def test_a_cut_answer_without_streaming(serve: Serve, client: Any) -> None:
    agent = client(serve(HEAD + "  - {kind: cut-stream}\n").port, session="s")
    agent.say("user", "work")
    with pytest.raises(BROKEN):
        agent.post(agent.body()).read()


def test_a_malformed_call_is_made_again(serve: Serve, client: Any, log_lines: Log) -> None:
    agent = client(serve(HEAD + "  - {kind: malformed-tool-call}\n").port, session="s")
    agent.say("user", "work")
    broken = agent.ask()["tool_calls"][0]
    with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
        json.loads(broken["function"]["arguments"])
    agent.say("tool", "invalid arguments", tool_call_id=broken["id"])
    again = agent.ask()["tool_calls"][0]
    assert json.loads(again["function"]["arguments"]) == {"command": "echo something long enough"}
    assert again["id"] != broken["id"]
    agent.say("tool", "ok", tool_call_id=again["id"])
    assert agent.ask()["content"].startswith("second 1")
    assert [line["fault"] for line in log_lines()] == ["malformed-tool-call", None, None]


def test_a_fault_strikes_only_where_declared(serve: Serve, client: Any, log_lines: Log) -> None:
    fault = "  - {kind: unauthorized, arm: akm, attempts: [2], turn: 1, times: null}\n"
    port = serve(HEAD + fault).port
    for session in ("a", "b"):
        client(port, session=session).run("work", [])
    client(port, arm="akm", session="c").run("work", [])
    second = client(port, arm="akm", session="d")
    second.say("user", "work")
    call = second.ask()["tool_calls"][0]
    second.say("tool", "", tool_call_id=call["id"])
    assert second.post(second.body()).status == 401
    assert [line["fault"] for line in log_lines()] == [None] * 7 + ["unauthorized"]


def test_a_fault_of_the_title_request_only(serve: Serve, client: Any) -> None:
    port = serve(HEAD + "  - {kind: rate-limited, request: title}\n").port
    title = client(port, session="s", tools=[])
    title.say("system", "You are a title generator.")
    title.say("user", "work")
    assert title.post(title.body()).status == 429
    assert client(port, session="s").run("work", [])[-1].startswith("second")
