"""The generated single file, as tasks run it, on the oldest and the newest Python there is."""

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from akm_harbor.corpus.sync import helper_text

from .support import lay, step, trajectory, write_helper


def pythons():
    """This Python, and the oldest one from 3.9 on that is found."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    for minor in range(9, 15):
        places = sorted((Path.home() / ".pyenv/versions").glob(f"3.{minor}.*/bin/python"))
        path = str(places[-1]) if places else shutil.which(f"python3.{minor}")
        if path and not path.startswith(str(Path.home() / ".pyenv/shims")):
            found.setdefault(f"3.{minor}", path)
            break
    return found


PYTHONS = pythons()


@pytest.fixture(params=PYTHONS)
def python(request):
    return PYTHONS[request.param]


@pytest.fixture
def verify(tmp_path, python):
    """Run the helper: `verify(*arguments)` gives the finished process."""
    helper = write_helper(tmp_path / "tests")
    (tmp_path / "app").mkdir()
    (tmp_path / "logs/verifier").mkdir(parents=True)
    env = {
        "PATH": os.environ["PATH"],
        "AKM_VERIFY_LOGS": str(tmp_path / "logs/verifier"),
        "AKM_VERIFY_AGENT_LOGS": str(tmp_path / "logs/agent"),
    }

    def run(*arguments, **more):
        command = [python, "-I", str(helper), *arguments]
        return subprocess.run(
            command, cwd=tmp_path / "app", env={**env, **more}, capture_output=True, text=True, check=False
        )

    return run


def report(tmp_path, name):
    return json.loads((tmp_path / "logs/verifier" / name).read_text())


def test_it_is_python_3_9():
    ast.parse(helper_text(), feature_version=(3, 9))


def test_this_machine_has_an_old_python():
    # CI runs on a machine that has one; elsewhere the line above is all there is
    if os.environ.get("CI"):
        assert "3.9" in PYTHONS


def test_a_shell_verifier(verify, tmp_path):
    script = tmp_path / "tests/verify.sh"
    script.write_text('#!/bin/sh\nexec $CHECK command commands.txt "az group create" -- "-n|--name=myrg"\n')
    (tmp_path / "app/commands.txt").write_text("az group create \\\n  --name=myrg\n")
    done = verify("run", "--in", str(tmp_path / "app"), "--", "sh", str(script))
    assert (done.returncode, report(tmp_path, "reward.json")) == (0, {"reward": 1})
    assert report(tmp_path, "details.json")["checks"] == [
        {"check": "command commands.txt", "complaints": [], "ok": True}
    ]
    (tmp_path / "app/commands.txt").write_text("az group create\n")
    done = verify("run", "--in", str(tmp_path / "app"), "--", "sh", str(script))
    assert (done.returncode, report(tmp_path, "reward.json")) == (0, {"reward": 0})
    assert report(tmp_path, "details.json")["checks"][0]["complaints"] == ["--name is missing"]


@pytest.mark.parametrize("command", ["exit 2", "no-such-program", "kill -9 $$", "$CHECK command"])
def test_a_broken_verifier_writes_no_reward(verify, tmp_path, command):
    (tmp_path / "logs/verifier/reward.json").write_text('{"reward": 1}')
    (tmp_path / "logs/verifier/reward.txt").write_text("1")
    done = verify("run", "--in", str(tmp_path / "app"), "--", "sh", "-c", command)
    assert done.returncode == 2
    assert "no reward is written" in done.stderr
    assert [path.name for path in (tmp_path / "logs/verifier").iterdir()] == ["details.json"]


def test_a_planted_reward_is_replaced_not_followed(verify, tmp_path):
    (tmp_path / "elsewhere").write_text("mine")
    (tmp_path / "logs/verifier/reward.json").symlink_to(tmp_path / "elsewhere")
    verify("run", "--in", str(tmp_path / "app"), "--", "sh", "-c", "exit 1")
    assert report(tmp_path, "reward.json") == {"reward": 0}
    assert (tmp_path / "elsewhere").read_text() == "mine"


def test_a_workspace_that_is_gone_is_a_wrong_answer(verify, tmp_path):
    verify("run", "--in", str(tmp_path / "nowhere"), "--", "sh", "-c", "exit 0")
    assert report(tmp_path, "reward.json") == {"reward": 0}


def test_a_reward_by_hand(verify, tmp_path):
    (tmp_path / "logs/verifier/reward.txt").write_text("1")
    assert verify("reward", "0").returncode == 0
    assert report(tmp_path, "reward.json") == {"reward": 0}
    assert not (tmp_path / "logs/verifier/reward.txt").exists()
    assert verify("reward", "0.5").returncode == 2


def test_small_commands(verify, tmp_path):
    (tmp_path / "app/a.json").write_text('{"a": 1, "b": 2}')
    (tmp_path / "part.json").write_text('{"a": 1}')
    (tmp_path / "app/a.txt").write_text("one  \ntwo\n")
    (tmp_path / "same.txt").write_text("one\ntwo")
    (tmp_path / "other.txt").write_text("one\nthree\n")
    assert verify("document", "a.json", "--holds", str(tmp_path / "part.json")).returncode == 0
    done = verify("document", "a.json", "--equals", str(tmp_path / "part.json"))
    assert (done.returncode, done.stdout) == (1, "document a.json: $.b was not asked for\n")
    assert verify("text", "a.txt", "--equals", str(tmp_path / "same.txt")).returncode == 0
    assert "at line 2" in verify("text", "a.txt", "--equals", str(tmp_path / "other.txt")).stdout
    assert verify("text", "none.txt", "--equals", str(tmp_path / "same.txt")).returncode == 1
    assert verify("text", "a.txt", "--equals", str(tmp_path / "none.txt")).returncode == 2
    (tmp_path / "app/c.sh").write_text("a 'b c'; d\n")
    assert verify("tokens", "c.sh").stdout == '["a", "b c"]\n["d"]\n'
    (tmp_path / "app/pipe.sh").write_text("a | b\n")
    done = verify("command", "pipe.sh", "a")
    assert (done.returncode, "operator" in done.stdout) == (1, True)


def test_several_commands(verify, tmp_path):
    (tmp_path / "app/c.sh").write_text("a -x 1\nb\n")
    assert verify("command", "--of", "2", "--nth", "1", "c.sh", "a", "--", "-x=1").returncode == 0
    assert verify("command", "--of", "2", "c.sh", "b").returncode == 0
    assert verify("command", "--of", "2", "--nth", "1", "c.sh", "b").returncode == 1
    assert "holds 2 commands, not 1" in verify("command", "c.sh", "a").stdout


PLAN = {
    "task": {"gold_ref": "skills/x", "abstention": False},
    "workflows": [{"id": "look", "required": [{"id": "looked", "event": "lookup", "before": "write"}]}],
}
WRITE = ("write", {"filePath": "/app/f", "content": "x"})


def test_compliance_goes_beside_the_reward(verify, tmp_path):
    (tmp_path / "tests/compliance.json").write_text(json.dumps(PLAN))
    lay(tmp_path / "logs/agent", trajectory(step(2, WRITE)))
    verify("run", "--in", str(tmp_path / "app"), "--", "true")
    assert report(tmp_path, "reward.json") == {"reward": 1}
    result = report(tmp_path, "compliance.json")
    assert (result["verdict"], result["workflows"][0]["items"][0]["steps"]) == ("fail", [2])


def test_compliance_counts_only_where_it_is_asked_for(verify, tmp_path):
    (tmp_path / "tests/compliance.json").write_text(json.dumps(PLAN))
    run = ("run", "--in", str(tmp_path / "app"), "--", "true")
    lay(tmp_path / "logs/agent", trajectory(step(2, WRITE)))
    verify(*run, AKM_HARBOR_COMPLIANCE_IN_REWARD="1")
    assert report(tmp_path, "reward.json") == {"reward": 0}
    assert report(tmp_path, "details.json")["compliance_counted"]
    # neither an arm without akm nor an unreadable trajectory is a zero
    lay(tmp_path / "logs/agent", trajectory(step(2, WRITE)), akm_expected=False)
    verify(*run, AKM_HARBOR_COMPLIANCE_IN_REWARD="1")
    assert report(tmp_path, "reward.json") == {"reward": 1}
    lay(tmp_path / "logs/agent", "{")
    verify(*run, AKM_HARBOR_COMPLIANCE_IN_REWARD="1")
    assert report(tmp_path, "reward.json") == {"reward": 1}
    assert report(tmp_path, "compliance.json")["verdict"] == "unscorable"
    # the harness may ask for it in capture.json, too
    lay(tmp_path / "logs/agent", trajectory(step(2, WRITE)))
    capture = {"akm_expected": True, "compliance_in_reward": True}
    (tmp_path / "logs/agent/akm/capture.json").write_text(json.dumps(capture))
    verify(*run)
    assert report(tmp_path, "reward.json") == {"reward": 0}


def test_a_missing_trajectory_is_no_crash(verify, tmp_path):
    (tmp_path / "tests/compliance.json").write_text(json.dumps(PLAN))
    (tmp_path / "logs/agent/akm").mkdir(parents=True)
    (tmp_path / "logs/agent/akm/capture.json").write_text('{"akm_expected": true}')
    verify("run", "--in", str(tmp_path / "app"), "--", "true")
    assert report(tmp_path, "compliance.json")["reason"] == "the trial has no trajectory.json"
    done = verify("compliance")
    assert json.loads(done.stdout)["verdict"] == "unscorable"


TESTS = {
    "right": ("def test_a():\n    assert True\n", 1),
    "wrong": ("def test_a():\n    assert True\ndef test_b():\n    assert 1 == 2, 'because'\n", 0),
    "no tests": ("x = 1\n", None),
    "cannot be imported": ("import no_such_module\n", None),
    "verifier broken": ("import akm_verify\ndef test_a():\n    raise akm_verify.BrokenVerifierError('x')\n", None),
    "answer missing": ("import akm_verify\ndef test_a():\n    akm_verify.read_answer('none.txt')\n", 0),
}


@pytest.mark.sandbox
@pytest.mark.parametrize("name", TESTS)
def test_a_pytest_verifier(tmp_path, name):
    # with the system's python3, as in the sandbox, and a workspace that tries to interfere
    text, reward = TESTS[name]
    helper = write_helper(tmp_path / "tests")
    (tmp_path / "tests/test_it.py").write_text(text)
    app = tmp_path / "app"
    app.mkdir()
    (app / "pytest.py").write_text("raise SystemExit(0)\n")
    (app / "yaml.py").write_text("raise SystemExit(0)\n")
    (app / "conftest.py").write_text("raise SystemExit(0)\n")
    (app / "pytest.ini").write_text("[pytest]\naddopts = --collect-only\n")
    env = {"PATH": "/usr/bin:/bin", "AKM_VERIFY_LOGS": str(tmp_path / "logs"), "PYTEST_ADDOPTS": "--collect-only"}
    command = ["/usr/bin/python3", "-I", str(helper), "pytest", "--in", str(app)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    path = tmp_path / "logs/reward.json"
    assert (json.loads(path.read_text())["reward"] if path.exists() else None) == reward, done.stdout + done.stderr
    if reward is not None:
        results = json.loads((tmp_path / "logs/ctrf.json").read_text())["results"]
        assert results["tool"]["name"] == "pytest"
        assert results["summary"]["tests"] == len(results["tests"]) == text.count("def test")
        assert (results["summary"]["failed"] > 0) == (reward == 0)
