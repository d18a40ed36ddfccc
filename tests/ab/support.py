"""Small datasets made from declared tables, as `collect` would write them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from akm_harbor.tables import PROBLEMS, replace_dataset
from akm_harbor.trials.columns import ALL, TASKS, TRIALS

START = datetime(2026, 1, 1, tzinfo=UTC)
SETTINGS: dict[str, Any] = {
    "agent_name": "opencode-control",
    "agent_version": "1.18.33",
    "model_name": "scripted/demo",
    "harbor_version": "0.26.0",
    "environment": "docker",
    "timeout_multiplier": 1.0,
    "agent_timeout_seconds": 600.0,
    "max_retries": 0,
    "token_source": "harbor",
}


def trial(arm: str, task: str, attempt: int, reward: float | None, **over: Any) -> dict[str, Any]:
    """One row of the trials table; `over` overrides any column."""
    begin = START + timedelta(minutes=attempt)
    return {
        **SETTINGS,
        "job_id": f"job-{arm}",
        "job_name": arm,
        "trial_id": f"{arm}-{task}-{attempt}",
        "trial_name": f"{task}__{attempt:07d}",
        "trial_path": f"{arm}/{task}__{attempt:07d}",
        "root": "jobs",
        "task_name": task,
        "task_digest": f"sha256:{task}",
        "arm": arm,
        "status": "unscored" if reward is None else "scored",
        "reward": reward,
        "n_input_tokens": 1000 + 100 * attempt,
        "n_cache_tokens": 0,
        "n_output_tokens": 50,
        "cost_usd": 0.01 * (1 + attempt),
        "started_at": begin,
        "finished_at": begin + timedelta(seconds=30),
        "agent_seconds": 20.0 + attempt,
        "environment_seconds": 1.0,
        "setup_seconds": 2.0,
        "verifier_seconds": 0.5,
        **over,
    }


def matrix(arm: str, rewards: Sequence[Sequence[float | None]], **over: Any) -> list[dict[str, Any]]:
    """Rows for a table of rewards, tasks by attempts."""
    return [
        trial(arm, f"task-{index:02d}", attempt, reward, **over)
        for index, task in enumerate(rewards)
        for attempt, reward in enumerate(task)
    ]


def dataset(
    folder: Path,
    rows: Iterable[Mapping[str, Any]],
    tasks: Iterable[Mapping[str, Any]] = (),
    manifest: Mapping[str, Any] | None = None,
    **more: Iterable[Mapping[str, Any]],
) -> Path:
    """Write a dataset and return its folder; `more` are rows of other tables, by name."""
    path = folder / "dataset"
    with replace_dataset(path) as writer:
        writer.write(TRIALS, TRIALS.from_rows(rows))
        writer.write(TASKS, TASKS.from_rows(tasks))
        for table in ALL:
            if table.name in more:
                writer.write(table, table.from_rows(more[table.name]))
        writer.write(PROBLEMS, PROBLEMS.from_rows([]))
        writer.write_manifest(manifest or {"package": "akm_harbor"})
    return path
