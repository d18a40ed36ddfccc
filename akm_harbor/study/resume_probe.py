"""Try a resume on a shadow of a job, in a process of its own: `python -m akm_harbor.study.resume_probe JOB SHADOW`.

Harbor's resume deletes before it checks. The shadow holds only the small files that Harbor compares, so
that what it deletes there is nothing. What it would refuse is said by Harbor itself, not guessed.
"""

import asyncio
import contextlib
import inspect
import io
import json
import sys
from pathlib import Path
from typing import Any

from harbor.job import Job
from harbor.models.job.config import JobConfig
from harbor.models.trial.config import TrialConfig


def probe(shadow: Path) -> dict[str, Any]:
    """Try to resume the job in `shadow`.

    Returns:
        `error` (Harbor's words, or null), `stage` (config, preflight, plan or lock), how many trials are
        `planned` and `remaining`, names of those it would keep (`kept`), and the new `lock` and
        `trial_configs` to compare the old ones (`existing`) with.
    """
    said: dict[str, Any] = {"error": None, "stage": "config", "planned": None, "remaining": None}
    try:
        config = JobConfig.model_validate_json((shadow / "config.json").read_text("utf-8"))
        config.jobs_dir, config.job_name = shadow.parent, shadow.name
        said["existing"] = _save(config, shadow)
        said["stage"] = "preflight"
        _preflight(config)
        said["stage"] = "plan"
        planned = _planned(config, shadow)
        said["trial_configs"] = [json.loads(trial.model_dump_json(exclude_defaults=True)) for trial in planned]
        job = asyncio.run(Job.create(config))
        said["planned"] = len(job)
        said["remaining"] = len(job._remaining_trial_configs)  # noqa: SLF001  (Harbor tells it nowhere else)
        said["kept"] = sorted(job._previous_trial_results)  # noqa: SLF001
        said["stage"] = "lock"
        job._init_job_lock()  # noqa: SLF001
        said["lock"] = json.loads(job._job_lock.model_dump_json(exclude_none=True))  # noqa: SLF001
        job._write_job_lock()  # noqa: SLF001  (compares with the old one first)
    except (Exception, SystemExit) as error:  # noqa: BLE001  (whatever it is, it would end the resume)
        said["error"] = f"{type(error).__name__}: {error}"
    return said


def _save(config: JobConfig, shadow: Path) -> list[dict[str, Any]]:
    """Bring the shadow's saved places in line with where it lies; the trials' configs, without defaults."""
    (shadow / "config.json").write_text(config.model_dump_json(exclude_defaults=True), "utf-8")
    existing = []
    for path in sorted(shadow.glob("*/config.json")):
        trial = TrialConfig.model_validate_json(path.read_text("utf-8"))
        trial.trials_dir = shadow
        path.write_text(trial.model_dump_json(exclude_defaults=True), "utf-8")
        existing.append(json.loads(path.read_text("utf-8")))
    return existing


def _preflight(config: JobConfig) -> None:
    """What Harbor's resume checks only after it has deleted cancelled trials."""
    from harbor.environments.factory import EnvironmentFactory

    given = {
        "type": config.environment.type,
        "import_path": config.environment.import_path,
        "kwargs": config.environment.kwargs,
    }
    takes = inspect.signature(EnvironmentFactory.run_preflight).parameters
    EnvironmentFactory.run_preflight(**{name: value for name, value in given.items() if name in takes})


def _planned(config: JobConfig, shadow: Path) -> list[TrialConfig]:
    """The trials Harbor would plan in an empty folder, to name what differs in an old one."""
    empty = config.model_copy(deep=True)
    empty.job_name = f"{shadow.name}-planned"
    planned: list[TrialConfig] = asyncio.run(Job.create(empty))._trial_configs  # noqa: SLF001
    for trial in planned:
        trial.trials_dir = shadow
    return planned


def main() -> None:
    """Print the finding as one JSON line; Harbor's own words go to stderr."""
    out = sys.stdout
    with contextlib.redirect_stdout(io.StringIO()):
        said = probe(Path(sys.argv[1]))
    json.dump(said, out, default=str)


if __name__ == "__main__":
    main()
