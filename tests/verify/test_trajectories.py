"""Recorded trials, scored as a person labelled them, by the generated file, on old and new Python."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from akm_harbor.corpus.sync import PLAN
from akm_harbor.resources import resource
from akm_harbor.verify.compliance import score as score_offline

from .support import write_helper
from .test_main import PYTHONS

DATA = Path(__file__).parents[1] / "data" / "verify"
LABELS = {
    (task, name): verdicts
    for task, trials in yaml.safe_load((DATA / "labels.yaml").read_text()).items()
    for name, verdicts in trials.items()
}


def plan_of(task):
    (path,) = resource("tasks").glob(f"*--{task}/tests/{PLAN}")
    return path


def score(python, tmp_path, task, name, *, right):
    """Run `akm_verify.py run` as the task does, over the recorded agent logs."""
    helper = write_helper(tmp_path / "tests")
    shutil.copyfile(plan_of(task), tmp_path / "tests" / PLAN)
    (tmp_path / "app").mkdir()
    env = {
        "PATH": "/usr/bin:/bin",
        "AKM_VERIFY_LOGS": str(tmp_path / "logs"),
        "AKM_VERIFY_AGENT_LOGS": str(DATA / task / name),
    }
    verdict = "true" if right else "false"
    command = [python, "-I", str(helper), "run", "--in", str(tmp_path / "app"), "--", verdict]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads((tmp_path / "logs" / "compliance.json").read_text())


@pytest.mark.parametrize("version", PYTHONS)
@pytest.mark.parametrize(("task", "name"), LABELS, ids="/".join)
def test_scored_as_labelled(tmp_path, version, task, name):
    result = score(PYTHONS[version], tmp_path, task, name, right=True)
    assert {one["id"]: one["verdict"] for one in result["workflows"]} == LABELS[task, name]
    if name == "control-arm":
        assert (result["verdict"], result["reason"]) == ("not_applicable", "this arm has no akm")
    else:
        steps = {step for one in result["workflows"] for item in one["items"] for step in item["steps"]}
        assert steps <= set(range(1, result["steps"] + 1))


def test_there_are_enough_and_all_are_labelled():
    recorded = {(path.parent.parent.name, path.parent.name) for path in DATA.glob("*/*/trajectory.json")}
    assert recorded == set(LABELS)
    assert len(recorded) >= 25
    verdicts = [verdict for one in LABELS.values() for verdict in one.values()]
    assert all(verdicts.count(verdict) >= 3 for verdict in ("pass", "partial", "fail", "not_applicable"))


def test_in_the_sandbox_the_verdicts_were_the_same():
    """What the verifier wrote in the container when the trial ran."""
    for (task, name), verdicts in LABELS.items():
        written = json.loads((DATA / task / name / "compliance.json").read_text())
        assert {one["id"]: one["verdict"] for one in written["workflows"]} == verdicts, name


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_cut_recording_is_unscorable(tmp_path, share):
    whole = (DATA / "machines-by-tag" / "reports-what-failed" / "trajectory.json").read_text()
    (tmp_path / "trajectory.json").write_text(whole[: int(len(whole) * share)])
    plan = json.loads(plan_of("machines-by-tag").read_text())
    assert score_offline(plan, tmp_path, akm_expected=True, right=True)["verdict"] == "unscorable"
