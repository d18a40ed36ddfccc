"""Real trials: Harbor's command line, the sandbox, the opencode binary, the scripted model."""

from pathlib import Path

import pytest

from akm_harbor.agent.toolchain import Toolchain
from akm_harbor.sandbox.model.policy import Cut, Delivered, Fault, Rule, Turn
from akm_harbor.sandbox.model.server import ScriptedModel
from tests.agent.support import PLAIN, PORT, agent, bash, policy, run_job, trials, zorbl_tasks

pytestmark = [pytest.mark.sandbox, pytest.mark.opencode, pytest.mark.xdist_group("trials")]

SECRET = "sk-test-0123456789abcdef"


def test_the_control_arm_runs_and_the_oracle_context_reaches_the_model(
    tmp_path: Path, real_toolchain: Toolchain
) -> None:
    tasks = zorbl_tasks(tmp_path)
    port = Cut(source="system", pattern=r"The zorbl port is (\d+)")
    tells = Rule(
        name="tells",
        task="port",
        delivered=Delivered(system="The zorbl port is"),
        turns=[bash("env; echo {{port}} > port.txt", cut={"port": port}), Turn(say="Done.")],
    )
    tree = str(real_toolchain.tree)
    with ScriptedModel(policy(tells)) as model:
        arms = [
            agent("ControlOpenCode", "control", model, toolchain=tree),
            agent("ControlOpenCode", "oracle-context", model, toolchain=tree, context="bundle"),
        ]
        for entry in arms:
            entry["kwargs"]["opencode_config"]["provider"]["scripted"]["options"]["apiKey"] = "{env:SCRIPTED_API_KEY}"
            entry["env"] = {"SCRIPTED_API_KEY": SECRET}
        job = run_job(tmp_path, "arms", arms, [PORT, PLAIN], tasks_dir=tasks, n_concurrent_trials=2)
    found = trials(job)
    rewards = {key: (trial.exception, trial.reward) for key, trial in found.items()}
    assert rewards == {
        ("control", PLAIN): (None, 1),
        ("oracle-context", PLAIN): (None, 1),
        ("control", PORT): (None, 0),
        ("oracle-context", PORT): (None, 1),
    }
    control, oracle = found["control", PORT], found["oracle-context", PORT]
    for trial in found.values():
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
        task="port",
        turns=[
            bash("echo 4117 > port.txt; (while sleep 0.2; do date >> ticks; done) >/dev/null 2>&1 &"),
            Turn(say="x"),
        ],
    )
    stall = Fault(kind="stall", turn=1, times=None)
    for seconds in (12.0, 40.0, 120.0):  # a busy machine may need longer to get to the second request
        folder = tmp_path / f"{seconds:.0f}"
        with ScriptedModel(policy(ticking, faults=[stall])) as model:
            arms = [agent("ControlOpenCode", "control", model, toolchain=str(real_toolchain.tree))]
            tasks = zorbl_tasks(folder, timeout=seconds)
            trial = trials(run_job(folder, "slow", arms, [PORT], tasks_dir=tasks))["control", PORT]
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
    tasks = zorbl_tasks(tmp_path)
    with ScriptedModel(policy()) as model:
        arms = [agent("ControlOpenCode", "control", model, toolchain=str(tmp_path / "nothing.tar"))]
        with pytest.raises(AssertionError, match="no such toolchain"):
            run_job(tmp_path, "missing", arms, [PORT], tasks_dir=tasks)
    assert not list((tmp_path / "jobs").glob("missing/*/result.json"))
