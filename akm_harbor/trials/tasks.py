"""The corpus tasks behind the trials: the join that Harbor does not make.

Harbor never copies `[metadata]` into a result, so it is read from the task folders. A path
found in a job's config is followed only when it ends inside a folder the person named,
the working folder, or the shipped corpus: a foreign job must not choose what is read.
"""

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_toml
from akm_harbor.trials.discover import Finding
from akm_harbor.trials.stamps import FOLDER, Stamp, stamp_of
from akm_harbor.trials.values import as_dict, as_float, as_text, to_json

_PARTS = ("environment", "tests", "solution", "steps")
_SINGLE = ("task.toml", "instruction.md", "README.md", "trajectory.json")
_TOML_BYTES = 4 * 1024 * 1024
_HASHED_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Task:
    """One corpus task.

    Attributes:
        row: its row of the `tasks` table.
        gold: refs of the assets that hold the rule.
        agent_timeout: its own agent time limit, seconds, before any multiplier.
    """

    row: dict[str, Any]
    gold: tuple[str, ...]
    agent_timeout: float | None


@dataclass(slots=True)
class Tasks:
    """The tasks known to one collection, found by digest, else by name.

    Attributes:
        stamps: (absolute path, size, mtime_ns) of what was read, for the cache.
        findings: problems.
    """

    now_ns: int
    roots: tuple[str, ...] = ()
    stamps: list[Stamp] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    by_path: dict[str, Task | None] = field(default_factory=dict)
    _by_digest: dict[str, Task] = field(default_factory=dict)
    _by_name: dict[str, Task | None] = field(default_factory=dict)
    _resolved: dict[str, Task | None] = field(default_factory=dict)
    _above: dict[str, str] = field(default_factory=dict)
    _answers: dict[tuple[str | None, str | None, str | None, str], Task | None] = field(default_factory=dict)

    def add_folder(self, folder: Path) -> int:
        """Take in a task, or a folder of tasks one level deep; how many were found."""
        real = os.path.realpath(folder)
        if os.path.isfile(f"{real}/task.toml"):
            return 1 if self._load(real) else 0
        self.stamps.append((real, FOLDER, stamp_of(os.stat(real).st_mtime_ns, self.now_ns)))
        names = sorted(e.name for e in os.scandir(real) if e.is_dir(follow_symlinks=False))
        return sum(1 for n in names if os.path.isfile(f"{real}/{n}/task.toml") and self._load(f"{real}/{n}"))

    def of(self, digest: str | None, name: str | None, path: str | None, job: str) -> Task | None:
        """The task of a trial: by content digest, else by its configured path, else by name."""
        if job not in self._above:
            self._above[job] = os.path.dirname(job)
        key = digest, name, path, self._above[job]
        if key not in self._answers:
            self._answers[key] = self._find(*key)
        return self._answers[key]

    def _find(self, digest: str | None, name: str | None, path: str | None, above: str) -> Task | None:
        if digest and digest in self._by_digest:
            return self._by_digest[digest]
        if path and "#" not in path and "\0" not in path:
            found = self._at(path, above)
            if found is not None:
                return found
        # Some harnesses prefix the name; the digest decides where two tasks share one.
        return self._by_name.get(name or "") or self._by_name.get((name or "").rpartition("/")[2])

    def _at(self, path: str, above: str) -> Task | None:
        for base in ("", os.getcwd(), above):
            if not base and not os.path.isabs(path):
                continue
            key = os.path.join(base, path)
            if key not in self._resolved:
                real = os.path.realpath(key)
                inside = any(real == root or real.startswith(root + os.sep) for root in self.roots)
                self._resolved[key] = self._load(real) if inside and os.path.isfile(f"{real}/task.toml") else None
            if self._resolved[key] is not None:
                return self._resolved[key]
        return None

    def _load(self, real: str) -> Task | None:
        if real in self.by_path:
            return self.by_path[real]
        task = self._read(real)
        self.by_path[real] = task
        if task is not None:
            name, digest = task.row["task_name"], task.row["task_digest"]
            for key in dict.fromkeys((name, name.rpartition("/")[2], os.path.basename(real))):
                # Two tasks of one name: neither is found by it.
                self._by_name[key] = task if key not in self._by_name else None
            if digest:
                self._by_digest.setdefault(digest, task)
        return task

    def _read(self, real: str) -> Task | None:
        file = f"{real}/task.toml"
        try:
            info = os.stat(file)
            self.stamps.append((file, info.st_size, stamp_of(info.st_mtime_ns, self.now_ns)))
            with open(file, encoding="utf-8") as handle:
                config = parse_toml(handle.read(_TOML_BYTES))
        except (OSError, ValueError) as error:
            self.findings.append(Finding(file, "invalid-task", str(error), "task left out of the tasks table"))
            return None
        meta = as_dict(config.get("metadata"))
        gold = meta.get("gold_ref") or meta.get("akm_gold_ref") or meta.get("akm_gold_refs") or meta.get("gold_refs")
        refs = tuple(r for r in (gold if isinstance(gold, list) else [gold]) if isinstance(r, str) and r)
        row = {
            "task_name": as_text(as_dict(config.get("task")).get("name")) or os.path.basename(real),
            "task_digest": self._digest(real),
            "path": self._shown(real),
            **{name: as_text(meta.get(name)) for name in ("domain", "family", "shape", "slice")},
            "bundle": as_text(meta.get("bundle")) or as_text(meta.get("akm_bundle")),
            "gold_ref": ", ".join(refs) or None,
            "metadata_json": to_json(meta) if meta else None,
        }
        return Task(row, refs, as_float(as_dict(config.get("agent")).get("timeout_sec")))

    def _digest(self, real: str) -> str | None:
        files: list[str] = []
        digest = task_digest(real, files)
        for rel in files:
            info = os.stat(f"{real}/{rel}")
            self.stamps.append((f"{real}/{rel}", info.st_size, stamp_of(info.st_mtime_ns, self.now_ns)))
        return digest

    def _shown(self, real: str) -> str:
        """A task's folder named from the folder it was found in, not from this machine's root."""
        inside = [root for root in self.roots if real.startswith(root + os.sep)]
        if not inside:
            return os.path.basename(real)
        root = max(inside, key=len)
        return f"{os.path.basename(root)}/{os.path.relpath(real, root)}".replace(os.sep, "/")


def task_digest(folder: str, hashed: list[str] | None = None) -> str | None:
    """A task's content digest as Harbor's lock.json has it.

    Args:
        folder: the task's folder.
        hashed: takes the files that went into it.

    Returns:
        `sha256:…`, or None where ignore files or links would make our answer a guess.
    """
    files: list[str] = [name for name in _SINGLE if os.path.isfile(f"{folder}/{name}")]
    if os.path.exists(f"{folder}/.gitignore"):
        return None
    total = 0
    for part in _PARTS:
        for where, names, found in os.walk(f"{folder}/{part}"):
            names.sort()
            for name in found:
                if name in (".harborignore", ".gitignore") or os.path.islink(f"{where}/{name}"):
                    return None
                files.append(os.path.relpath(f"{where}/{name}", folder).replace(os.sep, "/"))
            names[:] = [n for n in names if n != "__pycache__"]
    outer = hashlib.sha256()
    kept = sorted(f for f in files if not _ignored(f))
    try:
        for rel in kept:
            total += os.path.getsize(f"{folder}/{rel}")
            if total > _HASHED_BYTES:
                return None
            with open(f"{folder}/{rel}", "rb") as handle:
                outer.update(f"{rel}\0{hashlib.file_digest(handle, 'sha256').hexdigest()}\n".encode())
    except OSError:
        return None
    if hashed is not None:
        hashed.extend(kept)
    return f"sha256:{outer.hexdigest()}"


def _ignored(rel: str) -> bool:
    name = rel.rpartition("/")[2]
    return name == ".DS_Store" or name.endswith((".pyc", ".swp", ".swo", "~"))


def open_tasks(given: list[Path] | None, inputs: list[Path], now_ns: int) -> Tasks:
    """The tasks of `--tasks`, or of the shipped corpus when nothing is given.

    Raises:
        AkmHarborError: a given folder does not exist or holds no task.
    """
    from akm_harbor.resources import data_root

    try:
        shipped = data_root() / "tasks"
    except AkmHarborError:  # an installation without data files can still collect
        shipped = None
    folders = given if given is not None else [shipped] if shipped is not None and shipped.is_dir() else []
    allowed = [*folders, *inputs, Path.cwd(), *([shipped] if shipped is not None else [])]
    tasks = Tasks(now_ns, tuple(os.path.realpath(folder) for folder in allowed))
    for folder in folders:
        if not folder.is_dir():
            raise AkmHarborError("no such folder of tasks", path=folder, hint="Give --tasks a folder of Harbor tasks.")
        if tasks.add_folder(folder) == 0 and given is not None:
            raise AkmHarborError(
                "holds no Harbor task (task.toml)", path=folder, hint="Give --tasks a folder of tasks."
            )
    return tasks
