"""The server itself: start, stop, rude clients, the log."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.errors import AkmHarborError
from akm_harbor.sandbox.model import ScriptedModel

Serve = Callable[..., ScriptedModel]
Log = Callable[[], list[dict[str, Any]]]


def test_it_is_a_context_manager_on_a_free_port(policy_file: Callable[..., Path]) -> None:
    path = policy_file()
    with ScriptedModel(path) as one, ScriptedModel(path) as two:
        assert one.port != two.port
        assert one.base_url("control") == f"http://127.0.0.1:{one.port}/arm/control/v1"
        with urllib.request.urlopen(one.base_url() + "/models") as answer:
            assert json.load(answer)["data"][0]["id"] == "demo"
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", one.port))


def test_a_taken_port_is_an_error_that_says_so(serve: Serve, policy_file: Callable[..., Path]) -> None:
    with pytest.raises(AkmHarborError, match="cannot listen on"):
        ScriptedModel(policy_file(), port=serve().port)


def test_a_log_that_cannot_be_written_is_an_error(policy_file: Callable[..., Path], tmp_path: Path) -> None:
    with pytest.raises(AkmHarborError, match="cannot write the request log"):
        ScriptedModel(policy_file(), log=tmp_path)


def test_the_log_has_names_and_sizes_but_no_content(serve: Serve, client: Any, log_lines: Log, tmp_path: Path) -> None:
    agent = client(serve().port, tools=["bash", "read"])
    agent.say("system", "the colour is secretish")
    agent.say("system", "second part")
    agent.run("paint the shed\n", [])
    line = log_lines()[0]
    assert line["tools"] == ["bash", "read"]
    assert (line["system_parts"], line["system_chars"]) == ([23, 11], 34)
    assert (line["arm"], line["task"], line["rule"], line["called"]) == ("control", "paint", "paint-as-told", ["bash"])
    raw = (tmp_path / "requests.jsonl").read_text()
    assert "secretish" not in raw
    assert "shed" not in raw


@pytest.mark.parametrize("path", ["/", "/v2/chat/completions", "/arm//v1/models", "/arm/a/b/v1/models"])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_other_paths_are_not_found(serve: Serve, path: str, method: str) -> None:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", serve().port, timeout=5)
    connection.request(method, path, b"{}" if method == "POST" else None)
    assert connection.getresponse().status == 404


def test_rude_clients_do_no_harm(serve: Serve, client: Any) -> None:
    port = serve().port
    for raw in (
        b"",
        b"\x00\x01\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: -4\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 50\r\n\r\n{",
        b"POST /v1/chat/completions HTTP/1.1\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port)) as rude:
            rude.sendall(raw)
            rude.shutdown(socket.SHUT_WR)
            rude.settimeout(5)
            rude.recv(65536)
    assert client(port).run("try your luck", [])


def test_closing_ends_stalls_and_idle_connections(policy_file: Callable[..., Path], client: Any) -> None:
    text = "version: 1\ntasks: {a: a}\nrules: [{name: r, turns: [{say: hi}]}]\nfaults: [{kind: stall}]\n"
    model = ScriptedModel(policy_file(text)).start()
    with socket.create_connection(("127.0.0.1", model.port)):
        agent = client(model.port)
        agent.say("user", "a")
        waiting = threading.Thread(target=lambda: agent.post(agent.body(stream=True)))
        waiting.start()
        time.sleep(0.2)
        started = time.monotonic()
        model.close()
        assert time.monotonic() - started < 1.5
        waiting.join(5)
        assert not waiting.is_alive()


def test_the_command_serves_until_terminated(policy_file: Callable[..., Path], tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from akm_harbor.cli import main; main()", "model", "serve", str(policy_file())]
    log = tmp_path / "log.jsonl"
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        [*command, "--port", "0", "--log", str(log)], stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdout is not None
        assert "2 tasks, 4 rules, 0 faults" in process.stdout.readline()
        url = process.stdout.readline().split()[1].rstrip(",")
        with urllib.request.urlopen(url + "/models") as answer:
            assert answer.status == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0
    assert log.exists()


def test_check_says_ok_or_what_is_wrong(policy_file: Callable[..., Path]) -> None:
    good = CliRunner().invoke(app, ["model", "check", str(policy_file())])
    assert (good.exit_code, "ok, 2 tasks, 4 rules" in good.output) == (0, True)
    bad = CliRunner().invoke(app, ["model", "check", str(policy_file("version: 1\n"))])
    assert bad.exit_code == 1
    assert "missing required field `tasks`" in str(bad.exception)
