"""Find the job and trial directories below what a person pointed at, by their shape.

A directory name proves nothing in the wild: job folders lack their config, trials lack
their result, whole trees hang below a submission folder. Symbolic links are never followed.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from akm_harbor.errors import AkmHarborError
from akm_harbor.surrogates import plain
from akm_harbor.tables.layout import MANIFEST
from akm_harbor.trials.stamps import stamp_of
from akm_harbor.trials.values import InvalidJsonError, as_dict, parse_json

_TRIAL_FOLDERS = frozenset({"agent", "verifier", "artifacts", "steps", "user-agent"})
_TRIAL_NAME = re.compile(r".+__[A-Za-z0-9]{7}$", re.DOTALL)
_LEGACY_NAME = re.compile(r".+\.\d+-of-\d+\.", re.DOTALL)
_MAX_DEPTH = 12


@dataclass(frozen=True, slots=True)
class Finding:
    """Something worth a row in the problems table; the path is absolute."""

    path: str
    kind: str
    detail: str
    action: str


class TrialDir(NamedTuple):
    """One trial directory and what it holds at its top level (no symbolic links).

    `name` is for people; where the real one is not UTF-8 it differs from the path's end.
    """

    path: str
    name: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class JobDir:
    """One job directory.

    Attributes:
        root: the input it was found under, as the person wrote it (its parent, when the
            input is the job itself), so that `root / job.rel / trial.name` is the trial.
    """

    root: str
    path: str
    rel: str
    submission: str | None
    files: tuple[str, ...]
    trials: tuple[TrialDir, ...]
    mtime_ns: int


@dataclass(slots=True)
class Found:
    """What the inputs hold, and the folders looked at with their mtimes.

    Attributes:
        bases: (real path, as the person wrote it) of each input's root, to show paths by.
    """

    bases: list[tuple[str, str]] = field(default_factory=list)
    jobs: list[JobDir] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    folders: dict[str, int] = field(default_factory=dict)


class _Listing(NamedTuple):
    """One folder. A tuple: there are tens of thousands, and they are made three times as fast."""

    path: str
    name: str
    files: tuple[str, ...]
    folders: tuple[str, ...]
    links: tuple[str, ...]
    mtime_ns: int


def discover(
    inputs: list[Path], now_ns: int, ignore: Path | None = None, on_job: Callable[[JobDir], None] | None = None
) -> Found:
    """Find all jobs below the inputs.

    Args:
        inputs: job directories, folders of jobs, trees of submissions, or single trials.
        now_ns: the time the collection began, for the race rule.
        ignore: a folder not to enter: the dataset, when it lies inside an input.
        on_job: called with each job as it is found.

    Raises:
        AkmHarborError: an input does not exist, is not a folder, or holds no trial at all;
            the message says what it looks like instead.
    """
    found = Found()
    seen: set[str] = set()
    for given in inputs:
        if not given.exists():
            raise AkmHarborError("no such file or folder", path=given, hint="Give a Harbor job directory.")
        if not given.is_dir():
            raise AkmHarborError("not a folder", path=given, hint="Give a Harbor job directory, or a folder of them.")
        real = os.path.realpath(given)
        walk = _Walk(given, real, found, seen, now_ns, os.path.realpath(ignore) if ignore else None, on_job)
        if not walk.run():
            raise _nothing_found(given, real)
        found.bases.append((walk.base, walk.root))
    return found


class _Walk:
    """The walk below one input."""

    def __init__(
        self,
        given: Path,
        real: str,
        found: Found,
        seen: set[str],
        now_ns: int,
        ignore: str | None,
        on_job: Callable[[JobDir], None] | None,
    ) -> None:
        self.ignore = ignore
        self.on_job = on_job
        self.given = given
        self.real = real
        self.found = found
        self.seen = seen
        self.now_ns = now_ns
        self.base, self.root = real, str(given)

    def run(self) -> bool:
        """Whether the input holds a job."""
        top = self._list(self.real)
        if top is None:
            raise AkmHarborError("cannot be listed", path=self.given, hint="Check its permissions.")
        if _is_trial(top):
            job = self._list(os.path.dirname(self.real))
            if job is not None:
                self._name_from_above(2)
                self._add_job(job, [top])
            return job is not None
        return self._visit(top, 0)

    def _name_from_above(self, levels: int) -> None:
        """Count names from a folder above the input, so that they hold the job's own name."""
        given = self.given
        for _ in range(levels):
            self.base = os.path.dirname(self.base)
            given = given.parent
        lexical = os.path.realpath(given) == self.base
        self.root = str(given) if lexical else self.base

    def _visit(self, here: _Listing, depth: int) -> bool:
        """Take in one folder that is not a trial; True when it holds a job somewhere."""
        for name in here.links:
            self._note(f"{here.path}/{name}", "symlink", "a symbolic link", "not followed")
        if _is_legacy(here):
            self._note(here.path, "legacy-layout", "a terminal-bench run from before Harbor", "skipped")
            return False
        paths = [f"{here.path}/{n}" for n in here.folders if not n.startswith((".", "_"))]
        children = [c for path in paths if path != self.ignore and (c := self._list(path))]
        trials = [c for c in children if _is_trial(c)]
        is_job = bool(trials) or _has_job_files(here)
        if is_job:
            # A folder Harbor had only just made: inside a job, its name is enough.
            sure = {c.path for c in trials}
            trials += [c for c in children if c.path not in sure and not c.folders and _TRIAL_NAME.match(c.name)]
            if depth == 0:
                self._name_from_above(1)
            self._add_job(here, trials)
        taken = {c.path for c in trials}
        empty = [c for c in children if c.path not in taken and not (depth < _MAX_DEPTH and self._visit(c, depth + 1))]
        holds = is_job or len(empty) < len(children)
        if holds:
            reported = {f.path for f in self.found.findings if f.kind == "legacy-layout"}
            for child in empty:
                if plain(child.path) not in reported:
                    kind = "not-a-trial" if is_job else "not-a-job"
                    self._note(child.path, kind, "holds nothing that Harbor writes", "skipped")
        return holds

    def _add_job(self, here: _Listing, trials: list[_Listing]) -> None:
        fresh = [t for t in trials if t.path not in self.seen]
        if len(fresh) < len(trials) or (not trials and here.path in self.seen):
            self._note(here.path, "seen-twice", "two inputs hold the same folder", "read once")
            if not fresh:
                return
        self.seen.update((here.path, *(t.path for t in fresh)))
        trials = fresh
        rel = os.path.relpath(here.path, self.base).replace(os.sep, "/")
        self.found.jobs.append(
            JobDir(
                plain(self.root),
                here.path,
                plain(rel),
                plain(_submission(here.path, rel) or "") or None,
                here.files,
                tuple(
                    TrialDir(t.path, plain(t.name), t.files, t.folders, t.mtime_ns)
                    for t in sorted(trials, key=lambda t: t.name)
                ),
                here.mtime_ns,
            )
        )
        for trial in trials:
            for name in trial.links:
                self._note(f"{trial.path}/{name}", "symlink", "a symbolic link", "not followed")
        if self.on_job is not None:
            self.on_job(self.found.jobs[-1])

    def _list(self, path: str) -> _Listing | None:
        files: list[str] = []
        folders: list[str] = []
        links: list[str] = []
        try:
            mtime_ns = os.stat(path).st_mtime_ns
            with os.scandir(path) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_symlink():
                        links.append(entry.name)
        except OSError as error:
            self._note(path, "unreadable-folder", str(error.strerror or error), "skipped")
            return None
        self.found.folders[path] = stamp_of(mtime_ns, self.now_ns)
        folders.sort()
        links.sort()
        name = path.rpartition("/")[2] if "/" in path else os.path.basename(path)
        return _Listing(path, name, tuple(files), tuple(folders), tuple(links), mtime_ns)

    def _note(self, path: str, kind: str, detail: str, action: str) -> None:
        self.found.findings.append(Finding(plain(path), kind, detail, action))


def _is_trial(here: _Listing) -> bool:
    files = here.files
    if "trial.log" in files or "job.log" in files:
        return "trial.log" in files
    if not _TRIAL_FOLDERS.isdisjoint(here.folders):
        return True
    if here.folders or not ("result.json" in files or "config.json" in files):
        return False
    named = _TRIAL_NAME.match(here.name) is not None and "lock.json" not in files
    return named or "trial_name" in _peek(here)


def _has_job_files(here: _Listing) -> bool:
    files = here.files
    if "job.log" in files or ("lock.json" in files and "config.json" in files):
        return True
    return "result.json" in files and "n_total_trials" in _peek(here)


def _peek(here: _Listing) -> dict[str, object]:
    """The keys of a result (else a config), for the few folders whose shape leaves it open."""
    for name in ("result.json", "config.json"):
        if name in here.files:
            try:
                value = as_dict(parse_json((Path(here.path) / name).read_bytes()))
            except InvalidJsonError as error:
                value = as_dict(error.repaired)
            except OSError:
                continue
            if value:
                return value
    return {}


def _is_legacy(here: _Listing) -> bool:
    if "results.json" in here.files and ("run_metadata.json" in here.files or "tb.lock" in here.files):
        return True
    return any(_LEGACY_NAME.match(name) for name in here.folders)


def _submission(path: str, rel: str) -> str | None:
    """The submission folder above a job, in a tree that is one of submissions."""
    above, _, _ = path.rpartition("/") if "/" in path else path.rpartition(os.sep)
    folder = os.path.basename(above)
    parts = Path(above).parts[:-1]
    nested = "/" in rel
    if "submissions" in parts or (nested and ("__" in folder or os.path.isfile(f"{above}/metadata.yaml"))):
        return folder
    return None


def _folders(real: str) -> Iterator[str]:
    with os.scandir(real) as entries:
        yield from (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def _nothing_found(given: Path, real: str) -> AkmHarborError:
    """What this folder is instead of a job."""
    names = set(os.listdir(real))
    for folder in (real, *(f"{real}/{name}" for name in _folders(real))):
        inside = set(os.listdir(folder))
        if "results.json" in inside and inside & {"run_metadata.json", "tb.lock"}:
            return AkmHarborError(
                "a legacy terminal-bench run (results.json), which is not supported",
                path=given,
                hint="Run the tasks with Harbor, or read this tree with terminal-bench's own tools.",
            )
    if any(_LEGACY_NAME.match(name) for name in names):
        return AkmHarborError(
            "trial folders of a legacy terminal-bench run, which is not supported",
            path=given,
            hint="Run the tasks with Harbor, or read this tree with terminal-bench's own tools.",
        )
    if MANIFEST in names and "trials" in names:
        return AkmHarborError(
            "already a dataset, not a job directory", path=given, hint="Reports read it as it is; nothing to collect."
        )
    if "task.toml" in names:
        return AkmHarborError(
            "a task, not a job directory", path=given, hint="Run it first: `harbor run -p TASK -a AGENT`."
        )
    return AkmHarborError(
        "not a Harbor job directory, and there is none below it",
        path=given,
        hint="A job directory holds config.json, job.log and one folder a trial; Harbor writes it below `jobs/`.",
    )
