"""Converted memory tasks in the sandbox: Harbor's own oracle earns 1, doing nothing 0."""

import subprocess
from pathlib import Path

import pytest

from akm_harbor.corpus.memory_tasks import write_tasks
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import sources
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.task_export import ExportSettings, export
from akm_harbor.tables import Problems
from tests.sandbox.support import harbor_command, harbor_environment, results

pytestmark = pytest.mark.sandbox


@pytest.mark.parametrize("benchmark", ["locomo", "longmemeval", "beam"])
@pytest.mark.parametrize(("agent", "reward"), [("oracle", 1), ("nop", 0)])
def test_oracle_and_nop(tmp_path: Path, cache: Path, benchmark: str, agent: str, reward: int) -> None:
    source = sources()[f"demo-{benchmark}"]
    store = Store(convert(source.path or tmp_path, tmp_path / "data", source=source).path)
    histories = export(store, ExportSettings(limit=4, seed=2), Problems())
    done = write_tasks(benchmark, histories, tmp_path / "out", history="files")
    command = harbor_command(tmp_path / "out/tasks", tmp_path / "jobs", cache)
    command[command.index("oracle")] = agent
    ran = subprocess.run(command, env=harbor_environment(), capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = results(tmp_path / "jobs/job")
    assert len(found) == len(done.tasks) == 4
    assert {(trial.reward, trial.exception) for trial in found.values()} == {(reward, None)}
