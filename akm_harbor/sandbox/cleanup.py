"""Remove what sandboxes leave on disk: after each trial, and what a killed machine left behind.

A running sandbox holds a lock on a file in its folder. A folder whose lock is free
belongs to nobody any more. Mounts need no sweeping: they live in the namespaces of a
sandbox's processes and go with the last of them.
"""

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.sandbox.failures import SandboxError
from akm_harbor.sandbox.places import Places
from akm_harbor.sandbox.supervisor import trees

LOCK_NAME = "lock"  # as in supervisor.linux
BUILDING = ".building-"
# A folder without a lock file may be one that is just being started.
_STARTING_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep did: folders removed, folders of running sandboxes left alone, bytes freed."""

    removed: tuple[Path, ...]
    running: tuple[Path, ...]
    freed: int


def build_lock(where: Places, key: str) -> Path:
    """The file that whoever builds this image holds locked."""
    return where.images / f"{key}.lock"


def sweep(where: Places, *, images: bool = False) -> Swept:
    """Remove the folders of sandboxes that are gone.

    Args:
        where: the sandbox's places.
        images: also remove built images and bases; they stay while any sandbox runs,
            for it may stand on them.
    """
    removed: list[Path] = []
    running: list[Path] = []
    freed = 0
    for folder, lock in _working_folders(where):
        with _owner_gone(folder, lock) as gone:
            freed += _removed(folder) if gone else 0
            (removed if gone else running).append(folder)
    if images and not running:
        for entry in sorted([*where.images.iterdir(), *where.bases.iterdir()]):
            if entry.is_dir():
                freed += _removed(entry)
                removed.append(entry)
            else:
                entry.unlink()
    return Swept(tuple(removed), tuple(running), freed)


def abandoned(where: Places) -> list[Path]:
    """Folders that a sweep would remove: their sandboxes are gone."""
    found = []
    for folder, lock in _working_folders(where):
        with _owner_gone(folder, lock) as gone:
            if gone:
                found.append(folder)
    return found


def _working_folders(where: Places) -> list[tuple[Path, Path]]:
    """Folders that belong to a process, each with the file that it holds locked."""
    trials = [(folder, folder / LOCK_NAME) for folder in where.trials.iterdir() if folder.is_dir()]
    builds = [
        (folder, build_lock(where, folder.name.partition(BUILDING)[0])) for folder in where.images.glob(f"*{BUILDING}*")
    ]
    bases = [(folder, folder / LOCK_NAME) for folder in where.bases.glob(f"{BUILDING}*")]
    return sorted([*trials, *builds, *bases])


@contextlib.contextmanager
def _owner_gone(folder: Path, lock_file: Path) -> Iterator[bool]:
    """Whether the process this folder belongs to is gone; while inside, nobody else can take its lock."""
    import fcntl

    try:
        lock = os.open(lock_file, os.O_RDWR)
    except FileNotFoundError:
        yield time.time() - folder.stat().st_mtime > _STARTING_SECONDS
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield True
    except BlockingIOError:
        yield False
    finally:
        os.close(lock)


def _removed(folder: Path) -> int:
    """Remove a folder; the bytes that freed.

    Raises:
        SandboxError: something in it could not be removed.
    """
    size = _size(folder)
    if not trees.remove(str(folder)):
        raise SandboxError("cannot be removed", path=folder, hint="Remove it as the user it belongs to.")
    return size


def _size(folder: Path) -> int:
    total = 0
    for root, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118 - many files
    return total
