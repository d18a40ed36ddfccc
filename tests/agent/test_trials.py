"""Real trials: Harbor's command line, the sandbox, the opencode binary, the scripted model."""

from pathlib import Path

import pytest

from akm_harbor.agent.toolchain import Toolchain
from akm_harbor.sandbox.model.policy import Call, Cut, Delivered, Fault, Policy, Rule, Turn
from akm_harbor.sandbox.model.server import ScriptedModel
from tests.agent.support import agent, run_job, trials

pytestmark = [pytest.mark.sandbox, pytest.mark.opencode, pytest.mark.xdist_group("trials")]

SECRET = "sk-test-0123456789abcdef"


def bash(command: str, *, say: str = "", cut: dict[str, Cut] | None = None) -> Turn:
    return Turn(say=say, cut=cut or {}, call=Call(tool="bash", args={"command": command, "description": "do it"}))


def policy(rule: Rule, *faults: Fault) -> Policy:
    rules = [rule, Rule(name="guess", turns=[bash("echo 80 > port.txt"), Turn(say="A guess.")])]
    return Policy(version=1, tasks={"port": "zorbl port"}, rules=rules, faults=list(faults))


def port_task(folder: Path, *, timeout: float = 120.0) -> Path:
    """A task whose answer is in its bundle and nowhere else."""
    task = folder / "tasks" / "zorbl--port"
    for part in ("environment", "tests"):
        (task / part).mkdir(parents=True)
    (task / "task.toml").write_text(
        'schema_version = "1.4"\n[task]\nname = "test/port"\n[metadata]\nbundle = "zorbl"\n'
        f"[agent]\ntimeout_sec = {timeout}\n"
    )
    (task / "instruction.md").write_text("Write the zorbl port into port.txt.\n")
    (task / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\nWORKDIR /app\n")
    (task / "tests" / "test.sh").write_text(
        '#!/bin/bash\nbefore=$(cat /app/ticks 2>/dev/null | wc -l); sleep "${PAUSE:-0.6}"\n'
        'after=$(cat /app/ticks 2>/dev/null | wc -l); echo "ticks $before $after"\n'
        'if [ "$(cat /app/port.txt)" = 4117 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
    )
    notes = folder / "agents" / "bundles" / "zorbl" / "knowledge"
    notes.mkdir(parents=True)
    (notes / "port.md").write_text(
        "---\ndescription: the zorbl port\ntags: [zorbl]\n---\n# Port\n\nThe port is 4117.\n"
    )
    return folder / "tasks"


def test_the_control_arm_runs_and_the_oracle_context_reaches_the_model(
    tmp_path: Path, real_toolchain: Toolchain
) -> None:
    tasks = port_task(tmp_path)
    port = Cut(source="system", pattern=r"The port is (\d+)")
    knows = Rule(
        name="knows",
        delivered=Delivered(system="The port is"),
        turns=[bash("env; echo {{port}} > port.txt", cut={"port": port}), Turn(say="Done.")],
    )
    tree = str(real_toolchain.tree)
    with ScriptedModel(policy(knows)) as model:
        arms = [
            agent("ControlOpenCode", "control", model, toolchain=tree),
            agent("ControlOpenCode", "oracle-context", model, toolchain=tree, context="bundle"),
        ]
        for entry in arms:
            entry["kwargs"]["opencode_config"]["provider"]["scripted"]["options"]["apiKey"] = "{env:SCRIPTED_API_KEY}"
            entry["env"] = {"SCRIPTED_API_KEY": SECRET}
        job = run_job(tmp_path, "arms", arms, ["zorbl--port"], tasks_dir=tasks, n_concurrent_trials=2)
    found = trials(job)
    control, oracle = found["control", "zorbl--port"], found["oracle-context", "zorbl--port"]
    assert (control.exception, oracle.exception) == (None, None)
    assert (control.reward, oracle.reward) == (0, 1)

    for trial in (control, oracle):
        assert trial.result["agent_info"]["name"] == "opencode-control"
        assert trial.result["agent_info"]["version"] == real_toolchain.agent_version
        assert trial.capture["toolchain_digest"] == real_toolchain.digest
        assert trial.capture["missing"] == []
        assert {entry["role"] for entry in trial.capture["files"]} == {"opencode_config", "opencode_log", "probe"}
        assert [line["kind"] for line in trial.probe] == ["main", "main"]
        assert "bash" in trial.probe[0]["tools"]
        assert not any(tool.startswith("akm_") for tool in trial.probe[0]["tools"])
        assert trial.probe[0]["system_chars"] == trial.probe[0]["system_chars_before"]
    assert control.probe[0]["context_chars"] is None
    assert oracle.probe[0]["context_chars"] > 0
    assert oracle.probe[0]["system_chars"] > control.probe[0]["system_chars"]
    assert oracle.capture["bundle"] == "zorbl"

    # The model printed its environment, the key with it: no file of the job holds it.
    printed = (oracle.folder / "agent" / "opencode.txt").read_text()
    assert "OPENCODE_FAKE_VCS" in printed
    holding = [path for path in job.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]
    assert holding == []


def test_a_run_that_times_out_keeps_its_evidence_and_leaves_no_process(
    tmp_path: Path, real_toolchain: Toolchain
) -> None:
    ticking = Rule(
        name="ticking",
        turns=[
            bash("echo 4117 > port.txt; (while sleep 0.2; do date >> ticks; done) >/dev/null 2>&1 &"),
            Turn(say="x"),
        ],
    )
    stall = Fault(kind="stall", turn=1, times=None)
    for seconds in (12.0, 40.0, 120.0):  # a busy machine may need longer to get to the second request
        folder = tmp_path / f"{seconds:.0f}"
        with ScriptedModel(policy(ticking, stall)) as model:
            arms = [agent("ControlOpenCode", "control", model, toolchain=str(real_toolchain.tree))]
            tasks = port_task(folder, timeout=seconds)
            trial = trials(run_job(folder, "slow", arms, ["zorbl--port"], tasks_dir=tasks))["control", "zorbl--port"]
        if len(trial.probe) == 2:
            break
    assert trial.exception == "AgentTimeoutError"
    assert trial.reward == 1
    assert trial.capture["ended"] == "cancelled"
    assert "probe" in {entry["role"] for entry in trial.capture["files"]}
    before, after = (trial.folder / "verifier" / "test-stdout.txt").read_text().split()[1:3]
    assert before == after
    assert int(before) > 0


def test_a_missing_toolchain_ends_the_job_before_any_trial(tmp_path: Path) -> None:
    tasks = port_task(tmp_path)
    guess = Rule(name="g", turns=[Turn(say="x")])
    with ScriptedModel(policy(guess)) as model:
        arms = [agent("ControlOpenCode", "control", model, toolchain=str(tmp_path / "nothing.tar"))]
        with pytest.raises(AssertionError, match="no such toolchain"):
            run_job(tmp_path, "missing", arms, ["zorbl--port"], tasks_dir=tasks)
    assert not list((tmp_path / "jobs").glob("missing/*/result.json"))
