import copy
import json
from pathlib import Path
from typing import Any

import pytest

RECORDINGS = Path(__file__).parents[1] / "data" / "jobs"

RESULT: dict[str, Any] = {
    "id": "00000000-0000-4000-8000-000000000001",
    "task_name": "org/task-a",
    "trial_name": "task-a__AAAAAAA",
    "trial_uri": "file:///srv/jobs/job/task-a__AAAAAAA",
    "task_id": {"path": "tasks/task-a"},
    "source": "tasks",
    "task_checksum": "c0ffee",
    "config": {
        "task": {"path": "tasks/task-a"},
        "trial_name": "task-a__AAAAAAA",
        "install_only": False,
        "timeout_multiplier": 1.0,
        "agent": {"name": "opencode", "import_path": None, "model_name": "prov/model", "kwargs": {}},
        "environment": {"type": "docker"},
        "verifier": {},
        "job_id": "00000000-0000-4000-8000-0000000000aa",
    },
    "agent_info": {"name": "opencode", "version": "1.0", "model_info": {"name": "model", "provider": "prov"}},
    "agent_result": {"n_input_tokens": 100, "n_cache_tokens": 0, "n_output_tokens": 10, "cost_usd": 0.5},
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
    "started_at": "2026-01-01T00:00:00.000000Z",
    "finished_at": "2026-01-01T00:01:00.000000Z",
    "environment_setup": {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:02Z"},
    "agent_setup": {"started_at": "2026-01-01T00:00:02Z", "finished_at": "2026-01-01T00:00:05Z"},
    "agent_execution": {"started_at": "2026-01-01T00:00:05Z", "finished_at": "2026-01-01T00:00:45.5Z"},
    "verifier": {"started_at": "2026-01-01T00:00:46Z", "finished_at": "2026-01-01T00:00:48Z"},
    "step_results": None,
}


def exception(kind: str, message: str = "it went wrong") -> dict[str, Any]:
    return {
        "exception_type": kind,
        "exception_message": message,
        "exception_traceback": "Traceback",
        "occurred_at": "2026-01-01T00:00:45Z",
    }


class Jobs:
    """Builds small job directories by hand; what a test does not care about is as Harbor writes it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._ids = 0

    def job(self, name: str = "job", *, config: dict[str, Any] | None = None, **result: Any) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "job.log").touch()
        (path / "config.json").write_text(json.dumps({"job_name": name, **(config or {})}))
        (path / "result.json").write_text(
            json.dumps({"id": f"job-{name}", "n_total_trials": 0, "stats": {}, "finished_at": None, **result})
        )
        return path

    def trial(
        self, job: Path | str = "job", name: str = "task-a__AAAAAAA", *, raw: bytes | None = None, **fields: Any
    ) -> Path:
        """A trial; `fields` replace fields of its result, `raw` replaces the file."""
        parent = job if isinstance(job, Path) else self.root / job
        if not parent.exists():
            self.job(parent.name)
        path = parent / name
        path.mkdir(parents=True)
        self._ids += 1
        result = copy.deepcopy(RESULT)
        result["id"] = f"00000000-0000-4000-8000-{self._ids:012d}"
        result["trial_name"] = name
        result["task_name"] = "org/" + name.partition("__")[0]
        result.update(fields)
        (path / "result.json").write_bytes(raw if raw is not None else json.dumps(result, indent=4).encode())
        return path


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / "jobs")
