"""A question about a history inside a real agent session: the answer is right where the history reached the model."""

from pathlib import Path

import pytest

from akm_harbor.agent.toolchain import Toolchain
from akm_harbor.corpus.memory_tasks import write_tasks
from akm_harbor.corpus.memory_tasks_policy import write_policy
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import sources
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.task_export import ExportSettings, export
from akm_harbor.sandbox.model.server import ScriptedModel
from akm_harbor.tables import Problems
from tests.agent.support import agent, run_job, trials

pytestmark = [pytest.mark.sandbox, pytest.mark.opencode, pytest.mark.xdist_group("trials")]


@pytest.mark.parametrize(("history", "control"), [("files", 1), ("none", 0)])
def test_what_reached_the_model_decides(
    tmp_path: Path, real_toolchain: Toolchain, history: str, control: float
) -> None:
    source = sources()["demo-longmemeval"]
    store = Store(convert(source.path or tmp_path, tmp_path / "data", source=source).path)
    drawn = list(export(store, ExportSettings(), Problems()))[:2]
    done = write_tasks("longmemeval", drawn, tmp_path / "out", history=history)
    write_policy(tmp_path / "policy.yaml", drawn)
    tree = str(real_toolchain.tree)
    with ScriptedModel(tmp_path / "policy.yaml") as model:
        arms = [
            agent("ControlOpenCode", "control", model, toolchain=tree),
            agent("ControlOpenCode", "oracle-context", model, toolchain=tree, context="bundle"),
        ]
        names = [task.name for task in done.tasks]
        job = run_job(tmp_path, history, arms, names, tasks_dir=tmp_path / "out/tasks", n_concurrent_trials=2)
    found = {key: trial.reward for key, trial in trials(job).items()}
    assert found == {
        **{("control", name): control for name in names},
        **{("oracle-context", name): 1 for name in names},
    }
