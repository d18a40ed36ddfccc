"""The demo: its job and policy fit the shipped tasks, it runs for real, and it falls back when it cannot."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.resources import resource
from akm_harbor.sandbox.demo import job_config
from akm_harbor.sandbox.model import load_policy
from akm_harbor.sandbox.model.conversation import Conversations
from akm_harbor.sandbox.model.wire import parse_request
from tests.sandbox.support import harbor_command, harbor_environment

POLICY = load_policy(resource("arms", "demo-policy.yaml"))
TASKS = yaml.safe_load(resource("arms", "demo.yaml").read_text())["datasets"][0]["task_names"]


def _rules(task: str, arm: str, system: str, attempts: int = 12) -> set[str | None]:
    """Which rules answer the first request of so many attempts of a task."""
    conversations = Conversations(POLICY)
    instruction = resource("tasks", task, "instruction.md").read_text()
    body = {
        "messages": [{"role": "system", "content": system}, {"role": "user", "content": instruction}],
        "tools": [{"function": {"name": name}} for name in ("bash", "read", "write", "edit")],
    }
    request = parse_request(json.dumps(body).encode())
    opened = [conversations.open(request, arm, str(number), None) for number in range(attempts)]
    return {conversations.reply(conversation, request).rule for conversation in opened}


def _bundle_text(task: str) -> str:
    import tomllib

    name = tomllib.loads(resource("tasks", task, "task.toml").read_text())["metadata"]["bundle"]
    return "\n".join(path.read_text() for path in sorted(resource("agents", "bundles", name).rglob("*.md")))


@pytest.mark.parametrize("task", TASKS)
def test_the_policy_reads_the_shipped_bundles(task: str) -> None:
    """A bundle that was reworded under the policy would turn every attempt into a guess."""
    rules = _rules(task, "oracle-context", _bundle_text(task))
    name = task.partition("--")[2]
    assert rules == {name, f"{name}-slip"}


@pytest.mark.parametrize("task", [task for task in TASKS if task.startswith(("drillbit", "inkwell"))])
def test_without_the_bundle_it_can_only_guess(task: str) -> None:
    assert all(str(rule).startswith("guess-") for rule in _rules(task, "control", "You are an agent."))


def test_the_job_is_made_for_this_run(tmp_path: Path) -> None:
    config = job_config(tmp_path, "http://127.0.0.1:4711", name="demo-x", with_akm=True, attempts=3)
    urls = [a["kwargs"]["opencode_config"]["provider"]["scripted"]["options"]["baseURL"] for a in config["agents"]]
    assert urls == [f"http://127.0.0.1:4711/arm/{arm}/v1" for arm in ("control", "oracle-context", "akm")]
    assert [a["kwargs"]["arm"] for a in config["agents"]] == ["control", "oracle-context", "akm"]
    assert [a["import_path"].partition(":")[2] for a in config["agents"]] == [
        "ControlOpenCode",
        "ControlOpenCode",
        "AkmOpenCode",
    ]
    assert len({json.dumps(a["env"]) for a in config["agents"]}) == 1
    assert config["n_attempts"] == 3
    tasks = Path(config["datasets"][0]["path"])
    assert all((tasks / name / "task.toml").is_file() for name in config["datasets"][0]["task_names"])
    assert len(config["agents"][0]["kwargs"]) < len(config["agents"][1]["kwargs"])


def test_the_recorded_trials_give_a_report(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["demo", "--recorded", "-o", str(tmp_path / "demo")])
    assert result.exit_code == 0, result.output
    assert "Showing recorded trials instead of running any" in result.stderr
    page = tmp_path / "demo" / "control-vs-oracle-context" / "report.html"
    assert f"report: {page}" in result.stdout.replace("\n", " ")
    verdict = json.loads((page.parent / "verdict.json").read_text())
    assert verdict["exit_code"] == 0
    assert page.stat().st_size > 50_000


def test_it_falls_back_where_no_sandbox_can_run(tmp_path: Path) -> None:
    """Without bubblewrap on the PATH."""
    command = [sys.executable, "-c", "from akm_harbor.cli import main; main()", "demo", "-o", str(tmp_path / "demo")]
    environment = {**os.environ, "PATH": str(tmp_path), "AKM_HARBOR_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "No trials can run here: bubblewrap: not found" in done.stderr
    assert "Showing recorded trials" in done.stderr
    assert "report: " in done.stdout


def test_an_output_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["demo", "--recorded", "-o", str(tmp_path / "file" / "demo")])
    assert result.exit_code == 1
    assert "cannot be made" in str(result.exception)


@pytest.mark.sandbox
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_the_demo_tasks_tell_right_from_untouched(tmp_path: Path, cache: Path, agent: str, reward: int) -> None:
    included = [word for task in TASKS for word in ("-i", task)]
    command = harbor_command(resource("tasks"), tmp_path / "jobs", cache, *included)
    command[command.index("oracle")] = agent
    done = subprocess.run(command, env=harbor_environment(), capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rewards = [json.loads(path.read_text()) for path in (tmp_path / "jobs" / "job").glob("*/verifier/reward.json")]
    assert rewards == [{"reward": reward}] * len(TASKS)


@pytest.mark.sandbox
@pytest.mark.opencode
def test_the_demo_runs_for_real(tmp_path: Path) -> None:
    out = tmp_path / "demo"
    result = CliRunner().invoke(app, ["demo", "--attempts", "1", "--no-akm", "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert "Showing recorded trials" not in result.stderr
    assert "not all trials were scored" not in result.stderr
    verdict = json.loads((out / "control-vs-oracle-context" / "verdict.json").read_text())
    by_task = {task["task"].rpartition("/")[2]: task["difference"] for task in verdict["tasks"]}
    assert sorted(by_task) == sorted(TASKS)
    # The first attempts that the seed gives: see what the policy would play.
    for task, difference in by_task.items():
        name = task.partition("--")[2]
        played = [
            _rules(task, arm, _bundle_text(task) if arm != "control" else "", 1)
            for arm in ("control", "oracle-context")
        ]
        assert difference == (played[1] == {name}) - (played[0] == {name}), task
    requests = [json.loads(line) for path in out.glob("*.requests.jsonl") for line in path.read_text().splitlines()]
    assert {line["outcome"] for line in requests} == {"answered"}
    assert {line["kind"] for line in requests} == {"main"}
    size = {
        arm: {line["system_chars"] for line in requests if line["arm"] == arm} for arm in ("control", "oracle-context")
    }
    assert max(size["control"]) < min(size["oracle-context"])
