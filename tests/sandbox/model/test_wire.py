"""The protocol, as an OpenAI client sees it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from akm_harbor.sandbox.model import ScriptedModel
from akm_harbor.sandbox.model.wire import BadRequestError, parse_request

Serve = Callable[..., ScriptedModel]
Log = Callable[[], list[dict[str, Any]]]

TASK = "paint the shed\n"


def test_a_stream_adds_up_to_the_answer(serve: Serve, client: Any) -> None:
    port = serve().port
    agent = client(port, session="s1")
    agent.say("system", "the colour is " + "x" * 200)
    agent.say("user", TASK)
    streamed = agent.stream()
    whole = agent.ask()
    assert streamed[-1] == "[DONE]"
    chunks = [chunk["choices"][0] for chunk in streamed[:-1] if chunk["choices"]]
    assert "".join(chunk["delta"].get("content", "") for chunk in chunks) == whole["content"]
    parts = [part for chunk in chunks for part in chunk["delta"].get("tool_calls", [])]
    assert len(parts) > 3
    assert parts[0]["id"] == whole["tool_calls"][0]["id"]
    arguments = "".join(part["function"]["arguments"] for part in parts)
    assert json.loads(arguments)["command"] == "echo " + "x" * 200 + " > wall"
    assert [chunk["finish_reason"] for chunk in chunks][-1] == "tool_calls"


def test_usage_is_sent_when_asked_for(serve: Serve, client: Any) -> None:
    agent = client(serve().port, session="s1")
    agent.say("user", TASK)
    last = agent.stream()[-2]
    assert last["choices"] == []
    size = len(json.dumps([agent.messages, agent.body()["tools"]], ensure_ascii=False))
    assert last["usage"]["prompt_tokens"] == -(-size // 4)
    assert last["usage"]["prompt_tokens_details"] == {"cached_tokens": 0}
    body = agent.body(stream=True)
    del body["stream_options"]
    assert b'"usage"' not in agent.post(body).read()


def test_the_prompt_of_the_request_before_counts_as_cached(serve: Serve, client: Any) -> None:
    agent = client(serve().port, session="s1")
    agent.say("user", TASK)
    first = json.loads(agent.post(agent.body()).read())
    agent.messages.append(first["choices"][0]["message"])
    agent.say("tool", "ok", tool_call_id=first["choices"][0]["message"]["tool_calls"][0]["id"])
    second = json.loads(agent.post(agent.body()).read())["usage"]
    assert second["prompt_tokens_details"]["cached_tokens"] == first["usage"]["prompt_tokens"]
    assert second["prompt_tokens"] > first["usage"]["prompt_tokens"]


def test_messages_may_come_in_parts(serve: Serve, client: Any) -> None:
    agent = client(serve().port)
    agent.messages.append({"role": "system", "content": [{"type": "text", "text": "the colour is red"}]})
    agent.messages.append({"role": "user", "content": [{"type": "text", "text": TASK}]})
    assert "echo red" in agent.ask()["tool_calls"][0]["function"]["arguments"]


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "`messages`"),
        (b'{"messages": []}', "`messages`"),
        (b'{"messages": [1]}', "`messages`"),
        (b'{"messages": [{}], "tools": 3}', "`tools`"),
    ],
)
def test_a_bad_request_is_explained(serve: Serve, client: Any, log_lines: Log, body: bytes, told: str) -> None:
    response = client(serve().port).post(body)
    assert response.status == 400
    assert told in json.loads(response.read())["error"]["message"]
    assert log_lines()[0]["outcome"] == "bad-request"


@pytest.mark.parametrize("odd", [{"role": "tool"}, {"tool_calls": [{"id": 3}]}, {"tool_calls": 1}, {"content": 7}])
def test_odd_messages_do_no_harm(odd: dict[str, Any]) -> None:
    request = parse_request(json.dumps({"messages": [odd], "tools": [3, {"function": {"name": 1}}]}).encode())
    assert request.tools == ()


def test_not_a_request_at_all() -> None:
    with pytest.raises(BadRequestError):
        parse_request(b"\xff")
