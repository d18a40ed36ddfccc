"""Resume a job on top of Harbor's own resume, which deletes first and checks afterwards.

Here everything that would block it is found on a shadow of the job first. What Harbor is about to
delete is recorded in the job, so that it stays visible as superseded, and each planned trial counts once.
"""

import os
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.sandbox.harbor import plain_line, started
from akm_harbor.study.resume_blockers import (
    explained,
    folders,
    foreign_folders,
    local_tasks,
    lost_values,
    misplaced,
    probe,
    read_object,
    still_running,
)
from akm_harbor.trials import attempts
from akm_harbor.trials.values import InvalidJsonError, as_dict, as_list, as_text, parse_json

CANCELLED = ("CancelledError",)
"""Exceptions whose trials Harbor's resume deletes and runs again by default."""


class ResumeBlockedError(AkmHarborError):
    """The job cannot be resumed as things are; nothing was deleted."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A trial directory that Harbor's resume deletes, to run the trial again."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What a resume would do, found out without touching the job.

    Attributes:
        cwd: the folder to resume from, where the job's relative paths hold.
        planned: trials the job plans; None when Harbor could not even plan it.
        kept: finished trials that stay.
        doomed: directories that Harbor deletes.
        unreadable: directories that stay although their trial is run again.
        blockers: why it cannot be resumed, one line each; empty when it can.
    """

    job: Path
    cwd: Path
    planned: int | None
    kept: int
    doomed: tuple[Doomed, ...]
    unreadable: tuple[str, ...]
    blockers: tuple[str, ...]

    @property
    def to_run(self) -> int | None:
        """Trials that a resume would run."""
        return None if self.planned is None else self.planned - self.kept


@dataclass(frozen=True, slots=True)
class Tally:
    """A job counted: each planned trial once.

    Attributes:
        planned: trials the job plans; None when its lock.json does not tell.
        counted: trials that count.
        superseded: attempts that gave their place to a later one, still visible.
        statuses: trials that count, by status.
    """

    planned: int | None
    counted: int
    superseded: int
    statuses: Mapping[str, int]

    @property
    def complete(self) -> bool:
        """Whether every planned trial is there, once, with an end."""
        return self.counted == self.planned and not self.statuses.get("unfinished")


def preview(job: Path, *, cwd: Path | None = None, again: Sequence[str] = CANCELLED) -> Preview:
    """Find out what a resume would do, and what would block it.

    Args:
        job: the job's directory.
        cwd: the folder the job was started in; by default found out from the job.
        again: exceptions whose trials are to be run again.

    Raises:
        AkmHarborError: not a Harbor job directory.
    """
    job = Path(os.path.abspath(job))  # noqa: PTH100  (a link given by the user stays what they call it)
    config = _job_file(job, "config.json")
    lock = _job_file(job, "lock.json") if (job / "lock.json").exists() else {}
    where = (cwd or _started_in(job, config) or Path.cwd()).resolve()
    doomed = tuple(_doomed(job, again))
    blockers = [*still_running(job), *foreign_folders(job), *lost_values(config), *misplaced(job, config, where)]
    said = probe(job, where, {d.name for d in doomed})
    if said["error"]:
        blockers += explained(said, lock)
    kept = said.get("kept", [])
    rest = (p.name for p in folders(job) if (p / "result.json").exists() and p.name not in kept)
    unreadable = tuple(name for name in rest if name not in {d.name for d in doomed} and "kept" in said)
    return Preview(job, where, said["planned"], len(kept), doomed, unreadable, tuple(blockers))


def resume_command(
    found: Preview, *, again: Sequence[str] = CANCELLED, more: Sequence[str] = (), in_cwd: bool = False
) -> list[str]:
    """The plain Harbor command line of a resume, without `harbor` itself.

    Args:
        found: from `preview`.
        again: as given to `preview`.
        more: further arguments.
        in_cwd: name the job as seen from `found.cwd`, where the command is run then: newer Harbor saves
            the path it was given, and a job that was started with relative paths should stay so.
    """
    filters = [part for kind in again for part in ("-f", kind)]
    path = os.path.relpath(found.job, found.cwd) if in_cwd else str(found.job)
    return ["job", "resume", "-p", path, *filters, *more]


def as_typed(found: Preview, command: Sequence[str]) -> str:
    """The command as a person would type it, anywhere."""
    return f"cd {shlex.quote(str(found.cwd))} && {plain_line(command)}"


def resume(found: Preview, *, again: Sequence[str] = CANCELLED, more: Sequence[str] = ()) -> int:
    """Record what Harbor is about to delete, then let it resume the job.

    Args:
        found: from `preview`.
        again: as given to `preview`.
        more: further arguments for `harbor job resume`.

    Returns:
        Harbor's exit code.

    Raises:
        ResumeBlockedError: something blocks it; nothing was touched.
    """
    if found.blockers:
        lines = "\n  ".join(found.blockers)
        raise ResumeBlockedError(f"cannot be resumed, and nothing was deleted:\n  {lines}", path=found.job)
    record_doomed(found)
    arguments = resume_command(found, again=again, more=more, in_cwd=True)
    with started(arguments, cwd=found.cwd) as process:
        return process.wait()


def record_doomed(found: Preview) -> None:
    """Keep in the job's record what is known of the trials whose directories a resume deletes.

    Raises:
        OSError: the record cannot be written.
    """
    for doomed in found.doomed:
        _record(found.job / doomed.name)


def tally(job: Path) -> Tally:
    """Count a job's trials by the same rules as a collection.

    Raises:
        AkmHarborError: not a Harbor job directory.
    """
    from akm_harbor.tables import read_table
    from akm_harbor.trials import collect

    with tempfile.TemporaryDirectory(prefix="akm-tally-") as folder:
        dataset = collect([job], Path(folder) / "data", tasks=[], workers=1).dataset
        statuses = read_table(dataset, "trials", ["status"])["status"].to_pylist()
    lock = _job_file(job, "lock.json") if (job / "lock.json").exists() else {}
    planned = len(as_list(lock.get("trials"))) or None
    counted = [status for status in statuses if status != "superseded"]
    by_status = {status: counted.count(status) for status in sorted(set(counted))}
    return Tally(planned, len(counted), len(statuses) - len(counted), by_status)


def _job_file(job: Path, name: str) -> dict[str, Any]:
    path = job / name
    if not path.is_file():
        raise AkmHarborError("is not there", path=path, hint="Give a Harbor job directory: it holds config.json.")
    try:
        return as_dict(parse_json(path.read_bytes()))
    except (OSError, InvalidJsonError) as error:
        raise AkmHarborError(
            f"cannot be read ({error})", path=path, hint="Collect what is there, and run the study as a new job."
        ) from error


def _doomed(job: Path, again: Sequence[str]) -> Iterator[Doomed]:
    for folder in folders(job):
        if not (folder / "result.json").exists():
            yield Doomed(folder.name, "unfinished")
            continue
        result = read_object(folder / "result.json")
        kind = as_text(as_dict((result or {}).get("exception_info")).get("exception_type"))
        if kind in again:
            yield Doomed(folder.name, str(kind))


def _record(folder: Path) -> None:
    """Keep in the job's record what is known of a trial whose directory is about to go."""
    result = read_object(folder / "result.json")
    lock = read_object(folder / "lock.json") or {}
    task = as_dict(lock.get("task"))
    known = result or {
        "trial_name": folder.name,
        "task_name": as_text(task.get("name")),
        "config": read_object(folder / "config.json") or {},
    }
    attempts.record(folder.parent, known, by="resume", digest=as_text(task.get("digest")))


def _started_in(job: Path, config: Mapping[str, Any]) -> Path | None:
    """The folder in which the job's relative paths hold; None when nothing tells it.

    It is the one where the relative jobs_dir means the place of the job. Harbor 0.25 and newer may have saved
    an absolute one on a resume; then a folder above the job from which its tasks are found.
    """
    below = Path(as_text(config.get("jobs_dir")) or "jobs") / job.name
    if not below.is_absolute():
        base = job.parents[len(below.parts) - 1] if len(below.parts) <= len(job.parents) else job
        return base if base / below == job else None
    paths = [path for _, path in local_tasks(config) if not Path(path).is_absolute()]
    above = (base for base in job.parents if paths and all((base / path).exists() for path in paths))
    return next(above, None)
