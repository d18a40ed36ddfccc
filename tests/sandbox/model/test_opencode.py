"""The real opencode talks to the scripted model: title call, tool call, usage, and each fault."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.sandbox.model import ScriptedModel

pytestmark = pytest.mark.opencode

POLICY = """
version: 1
tasks: {write: 'write the file'}
rules:
  - name: write
    turns:
      - say: Writing.
        call: {tool: bash, args: {command: 'echo {{arm}} {{attempt}} >> made.txt', description: write}}
      - say: Written.
faults:
  - {kind: unauthorized, arm: unauthorized, times: null}
  - {kind: rate-limited, arm: rate-limited, retry_after: 0.2}
  - {kind: cut-stream, arm: cut-stream, chunks: 2}
  - {kind: malformed-tool-call, arm: malformed-tool-call}
"""


@pytest.fixture(scope="module")
def opencode() -> Path:
    from akm_harbor.agent.toolchain import find

    return find(None).tree / "bin" / "opencode"


@pytest.fixture
def run(opencode: Path, tmp_path: Path) -> Callable[[ScriptedModel, str], tuple[int, list[dict[str, Any]]]]:
    """One `opencode run` in a home of its own: exit code and the events it printed."""

    def go(model: ScriptedModel, arm: str) -> tuple[int, list[dict[str, Any]]]:
        options = {"baseURL": model.base_url(arm), "apiKey": "none"}
        provider = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {"demo": {}}}
        config = tmp_path / "home" / ".config" / "opencode" / "opencode.json"
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"autoupdate": False, "provider": {"scripted": provider}}))
        (tmp_path / "work").mkdir()
        catalogue = tmp_path / "models.json"
        catalogue.write_text("{}")
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_MODELS_PATH": str(catalogue),
        }
        done = subprocess.run(
            [
                opencode,
                "--model=scripted/demo",
                "run",
                "--format=json",
                "--dangerously-skip-permissions",
                "write the file",
            ],
            cwd=tmp_path / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    return go


def test_a_session_with_its_title_call(
    serve: Callable[..., ScriptedModel], run: Any, log_lines: Any, tmp_path: Path
) -> None:
    code, events = run(serve(POLICY), "control")
    assert code == 0
    assert (tmp_path / "work" / "made.txt").read_text() == "control 1\n"
    lines = log_lines()
    assert sorted(line["kind"] for line in lines) == ["main", "main", "title"]
    main = [line for line in lines if line["kind"] == "main"]
    assert [(line["turn"], line["called"]) for line in main] == [(0, ["bash"]), (1, [])]
    assert {"bash", "read", "write", "edit"} <= set(main[0]["tools"])
    assert main[0]["system_chars"] > 5000
    assert {(line["task"], line["attempt"]) for line in lines} == {("write", 1)}
    finished = [event["part"]["tokens"] for event in events if event["type"] == "step_finish"]
    assert [tokens["input"] + tokens["cache"]["read"] for tokens in finished] == [
        line["prompt_tokens"] for line in main
    ]
    assert finished[1]["cache"]["read"] == main[0]["prompt_tokens"]


REQUESTS = {"unauthorized": 1, "rate-limited": 3, "cut-stream": 3, "malformed-tool-call": 3}


@pytest.mark.parametrize("fault", REQUESTS)
def test_what_opencode_makes_of_a_fault(
    serve: Callable[..., ScriptedModel], run: Any, log_lines: Any, tmp_path: Path, fault: str
) -> None:
    code, events = run(serve(POLICY), fault)
    main = [line for line in log_lines() if line["kind"] == "main"]
    assert len(main) == REQUESTS[fault]
    assert main[0]["fault"] == fault
    made = tmp_path / "work" / "made.txt"
    if fault == "unauthorized":
        assert (code, made.exists()) == (1, False)
        assert [e["error"]["data"]["statusCode"] for e in events if e["type"] == "error"] == [401]
    else:
        assert (code, made.read_text()) == (0, f"{fault} 1\n")
