"""A killed Harbor may leave its job's own files half-written; then it cannot resume. Keep copies, put them back.

Trials are never touched here: one without a readable result is Harbor's to run again.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from akm_harbor.json_toml import parse_json

FILES = ("config.json", "lock.json", "result.json")
"""Files at the top of a job directory that Harbor reads when it resumes, and writes in place."""


def _readable(path: Path) -> bool:
    try:
        return isinstance(parse_json(path.read_bytes()), dict)
    except (OSError, ValueError):
        return False


class Keeper:
    """Copies a job's own files whenever they changed and are readable."""

    def __init__(self, job: Path, kept: Path) -> None:
        self._job, self._kept = job, kept
        self._seen: dict[str, int] = {}

    def keep(self) -> None:
        """Look once."""
        for name in FILES:
            path = self._job / name
            try:
                stamp = path.stat().st_mtime_ns
            except OSError:
                continue
            if self._seen.get(name) != stamp and _readable(path):
                self._kept.mkdir(parents=True, exist_ok=True)
                partial = self._kept / f"{name}.partial"
                shutil.copyfile(path, partial)
                if _readable(partial):
                    os.replace(partial, self._kept / name)  # noqa: PTH105 - the atomic one
                    self._seen[name] = stamp


def mend(job: Path, kept: Path) -> list[str]:
    """Put readable copies in the place of job files that are half-written.

    Returns:
        One line for each file that was mended.
    """
    lines = []
    for name in FILES:
        path, copy = job / name, kept / name
        if path.exists() and not _readable(path):
            if _readable(copy):
                shutil.copyfile(copy, path)
                lines.append(f"{name} was half-written: put back as it was before")
            elif not any(finished(job)):
                path.unlink()
                lines.append(f"{name} was half-written, and no trial had ended: taken away")
    return lines


def finished(job: Path) -> Iterator[Path]:
    """Trial directories with a readable result."""
    return (path.parent for path in sorted(job.glob("*/result.json")) if _readable(path))


def interrupted(job: Path) -> list[str]:
    """Names of trials that were begun and have no readable result: Harbor will run them again."""
    if not job.is_dir():
        return []
    done = {path.name for path in finished(job)}
    return sorted(path.name for path in job.iterdir() if (path / "config.json").is_file() and path.name not in done)


def complete(job: Path) -> bool:
    """Whether Harbor ended the job and every planned trial has a result of its own."""
    try:
        said = parse_json((job / "result.json").read_bytes())
        planned, ended = int(said["n_total_trials"]), said["finished_at"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    cancelled = (said.get("stats") or {}).get("n_cancelled_trials") or 0
    return bool(ended) and not cancelled and sum(1 for _ in finished(job)) >= planned
