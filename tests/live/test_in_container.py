"""The recorded trials, scored by the verifier inside a container whose Python is another one.

    AKM_HARBOR_ROOTFS=ROOT_39:ROOT_312 pytest tests/live/test_in_container.py

Each is a folder with a root file system that has a `python3` (debootstrap, an unpacked image).
"""

import json
import os
from pathlib import Path

import pytest

from akm_harbor.resources import resource
from tests.agent.support import run_job
from tests.verify.test_trajectories import DATA, LABELS, plan_of

ROOTS = [Path(root) for root in os.environ.get("AKM_HARBOR_ROOTFS", "").split(os.pathsep) if root]
TASKS = sorted({task for task, _ in LABELS})
pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.xdist_group("trials"),
    pytest.mark.skipif(not ROOTS, reason="AKM_HARBOR_ROOTFS names no root file system"),
]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
@pytest.mark.parametrize("task", TASKS)
def test_scored_as_labelled_in_the_container(tmp_path: Path, task: str, root: Path) -> None:
    folder = plan_of(task).parents[1]
    recordings = {name: DATA / task / name for known, name in LABELS if known == task}
    agents = [
        {
            "import_path": "tests.verify.replay_agent:ReplayAgent",
            "kwargs": {"arm": name, "recording": str(path), "solution": str(folder / "solution")},
        }
        for name, path in recordings.items()
    ]
    environment = {"import_path": "akm_harbor:SandboxEnvironment", "kwargs": {"rootfs": str(root)}}
    job = run_job(tmp_path, task, agents, [folder.name], tasks_dir=resource("tasks"), environment=environment)
    scored = {}
    for path in job.glob("*/result.json"):
        result = json.loads(path.read_text())
        assert result["exception_info"] is None
        assert result["verifier_result"]["rewards"] == {"reward": 1}
        compliance = json.loads((path.parent / "verifier" / "compliance.json").read_text())
        scored[result["config"]["agent"]["kwargs"]["arm"]] = {w["id"]: w["verdict"] for w in compliance["workflows"]}
    assert scored == {name: LABELS[task, name] for name in recordings}
