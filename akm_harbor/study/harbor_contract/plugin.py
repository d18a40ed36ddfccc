"""The job plugin of the contract's mini jobs: writes down what Harbor tells a plugin, and when."""

import json
from pathlib import Path
from typing import Any


class WatchingPlugin:
    """Follows Harbor's plugin protocol as `akm_harbor.ab.plugin` does.

    Args:
        file: where to write, one JSON line an event.
    """

    def __init__(self, file: str) -> None:
        self._file = Path(file)
        self._job_dir = Path()

    def _tell(self, **event: Any) -> None:
        with self._file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(event) + "\n")

    async def on_job_start(self, job: Any) -> None:
        """Register the one hook that we use."""
        self._job_dir = Path(job.job_dir)
        job.on_trial_ended(self._on_trial_ended)
        self._tell(event="start")

    async def _on_trial_ended(self, event: Any) -> None:
        result = event.result.model_dump(mode="json")
        self._tell(
            event="ended",
            trial_name=event.trial_name,
            trial_id=result["id"],
            exception=(result["exception_info"] or {}).get("exception_type"),
            digest=event.lock.task.digest,
            arm=result["config"]["agent"]["kwargs"].get("arm"),
            on_disk=(self._job_dir / event.trial_name / "result.json").is_file(),
        )

    async def on_job_end(self, job_result: Any) -> None:  # noqa: ARG002  (the protocol's)
        """Tell that it came."""
        self._tell(event="end")
