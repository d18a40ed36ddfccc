"""A policy file from text, and a small client of the protocol that sees what is on the wire."""

import http.client
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.sandbox.model import ScriptedModel

POLICY = """
version: 1
seed: 11
title: A title
tasks:
  paint: 'paint the (?:shed|fence)'
  fail: 'try your luck'
rules:
  - name: paint-as-told
    task: paint
    delivered: {text: 'colour is \\w+'}
    turns:
      - cut:
          colour: {from: text, pattern: 'colour is (\\w+)'}
        say: I will use {{colour}}.
        call: {tool: bash, args: {command: 'echo {{colour}} > wall', description: paint}}
      - say: Painted {{colour}}.
  - name: look-it-up
    task: paint
    delivered: {tools: [akm_search]}
    turns:
      - call: {tool: akm_search, args: {query: colour}}
  - name: paint-by-guess
    task: paint
    turns:
      - call: {tool: bash, args: {command: echo white > wall}}
      - say: Painted.
  - name: lucky
    task: fail
    success: 0.5
    turns: [{say: 'yes'}]
"""


@dataclass
class Client:
    """Speaks to a server as an agent does: keeps the messages of one session."""

    port: int
    arm: str | None = "control"
    session: str | None = None
    tools: list[str] = field(default_factory=lambda: ["bash"])
    messages: list[dict[str, Any]] = field(default_factory=list)

    def post(self, body: object, headers: dict[str, str] | None = None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        path = (f"/arm/{self.arm}" if self.arm else "") + "/v1/chat/completions"
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        session = {"x-session-id": self.session} if self.session else {}
        connection.request("POST", path, raw, {"Content-Type": "application/json", **session, **(headers or {})})
        return connection.getresponse()

    def body(self, *, stream: bool = False) -> dict[str, Any]:
        tools = [{"type": "function", "function": {"name": name}} for name in self.tools]
        options = {"stream_options": {"include_usage": True}} if stream else {}
        return {"model": "demo", "messages": self.messages, "tools": tools, "stream": stream, **options}

    def say(self, role: str, text: str, **more: str) -> None:
        self.messages.append({"role": role, "content": text, **more})

    def ask(self) -> dict[str, Any]:
        """One exchange without streaming; the answer joins the history."""
        response = self.post(self.body())
        payload: dict[str, Any] = json.loads(response.read())
        assert response.status == 200, payload
        message: dict[str, Any] = payload["choices"][0]["message"]
        self.messages.append(message)
        return message

    def stream(self) -> list[Any]:
        """The payloads of a streamed answer, `[DONE]` as text."""
        raw = self.post(self.body(stream=True)).read().decode()
        lines = [line.removeprefix("data: ") for line in raw.split("\n\n") if line]
        return [line if line == "[DONE]" else json.loads(line) for line in lines]

    def run(self, instruction: str, results: list[str]) -> list[str]:
        """Play a whole session; what was called or said, in order."""
        self.say("user", instruction)
        told = []
        while True:
            answer = self.ask()
            calls = answer.get("tool_calls") or []
            told += [f"{c['function']['name']} {c['function']['arguments']}" for c in calls] or [answer["content"]]
            if not calls:
                return told
            for call in calls:
                self.say("tool", results.pop(0) if results else "(no output)", tool_call_id=call["id"])


@pytest.fixture
def policy_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str = POLICY) -> Path:
        path = tmp_path / "policy.yaml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def servers() -> Iterator[list[ScriptedModel]]:
    """Servers that are closed when the test ends."""
    started: list[ScriptedModel] = []
    yield started
    for model in started:
        model.close()


@pytest.fixture
def serve(
    policy_file: Callable[[str], Path], tmp_path: Path, servers: list[ScriptedModel]
) -> Callable[..., ScriptedModel]:
    """Start a server; its log is `tmp_path/requests.jsonl`."""

    def start(text: str = POLICY) -> ScriptedModel:
        servers.append(ScriptedModel(policy_file(text), log=tmp_path / "requests.jsonl").start())
        return servers[-1]

    return start


@pytest.fixture
def client() -> type[Client]:
    return Client


@pytest.fixture
def log_lines(tmp_path: Path, servers: list[ScriptedModel]) -> Callable[[], list[dict[str, Any]]]:
    """The log in order of arrival, once the servers are closed: a line is written after its answer has gone out."""

    def read() -> list[dict[str, Any]]:
        for model in servers:
            model.close()
        lines = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
        return sorted(lines, key=lambda line: line["at"])

    return read
