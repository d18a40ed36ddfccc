"""Read the files of one trial: inside it only, no links, remembering what was read."""

import os
import stat
from typing import Any

from akm_harbor.surrogates import plain
from akm_harbor.tables.redact import redact_text
from akm_harbor.trials.stamps import FOLDER, Stamp, stamp_of
from akm_harbor.trials.values import InvalidJsonError, parse_json

MAX_BYTES = 512 * 1024 * 1024


class TrialFiles:
    """The files of one trial directory.

    Attributes:
        stamps: (path relative to the trial, size, mtime_ns) of everything looked at; a folder
            has the size `FOLDER`.
        problems: (path relative to the trial, kind, detail, action).
        notes: minor findings, told once a job with a count: kind -> detail.
    """

    def __init__(self, path: str, now_ns: int) -> None:
        self.path = path
        self.now_ns = now_ns
        self.stamps: list[Stamp] = []
        self.problems: list[tuple[str, str, str, str]] = []
        self.notes: dict[str, str] = {}
        self._listed: dict[str, tuple[frozenset[str], tuple[str, ...]]] = {}

    def seed(self, files: tuple[str, ...], folders: tuple[str, ...]) -> None:
        """Take over the top-level listing that discovery has made (and stamped) already."""
        self._listed[""] = frozenset(files), folders

    def problem(self, rel: str, kind: str, detail: str, action: str) -> None:
        """Record a problem of this trial."""
        self.problems.append((plain(rel), kind, redact_text(plain(detail)), action))

    def note(self, kind: str, detail: str = "") -> None:
        """Record a minor finding."""
        self.notes.setdefault(kind, detail)

    def listing(self, rel: str) -> tuple[frozenset[str], tuple[str, ...]]:
        """Regular files and folders in a folder of the trial; nothing when it is absent.

        Every folder on the way is listed too, so that a link is never walked through and
        a folder that appears later is noticed.
        """
        if rel in self._listed:
            return self._listed[rel]
        above, _, name = rel.rpartition("/")
        if not rel or name not in self.listing(above)[1]:
            self._listed[rel] = frozenset(), ()
            return self._listed[rel]
        full = f"{self.path}/{rel}"
        files: list[str] = []
        folders: list[str] = []
        try:
            self.stamps.append((rel, FOLDER, stamp_of(os.stat(full).st_mtime_ns, self.now_ns)))
            with os.scandir(full) as entries:
                for entry in entries:
                    if entry.is_file(follow_symlinks=False):
                        files.append(entry.name)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.name)
                    elif entry.is_symlink():
                        self.problem(f"{rel}/{entry.name}", "symlink", "a symbolic link", "not followed")
        except OSError as error:
            self.problem(rel, "unreadable-folder", str(error.strerror or error), "treated as empty")
        self._listed[rel] = frozenset(files), tuple(sorted(folders))
        return self._listed[rel]

    def has(self, rel: str) -> bool:
        """Whether a regular file of that name is there."""
        above, _, name = rel.rpartition("/")
        return name in self.listing(above)[0]

    def full(self, rel: str) -> str:
        """Its absolute path."""
        return f"{self.path}/{rel}"

    def read(self, rel: str, *, limit: int = MAX_BYTES, head: bool = False) -> bytes | None:
        """The bytes of a file; None when it is absent or cannot be read (then a problem).

        Args:
            rel: path relative to the trial.
            limit: how many bytes at most.
            head: take the first `limit` bytes of a longer file, instead of refusing it.
        """
        if not self.has(rel):
            return None
        try:
            fd = os.open(f"{self.path}/{rel}", os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
            try:
                info = os.fstat(fd)
                if not stat.S_ISREG(info.st_mode):
                    return None
                self.stamps.append((rel, info.st_size, stamp_of(info.st_mtime_ns, self.now_ns)))
                if info.st_size > limit and not head:
                    self.problem(rel, "too-large", f"{info.st_size} bytes, more than {limit}", "not read")
                    return None
                return _read_all(fd, min(info.st_size, limit))
            finally:
                os.close(fd)
        except OSError as error:
            self.problem(rel, "unreadable-file", str(error.strerror or error), "treated as absent")
            return None

    def read_json(self, rel: str, action: str = "ignored") -> Any:
        """A file's JSON value; None when absent or not JSON (then a problem)."""
        data = self.read(rel)
        if data is None:
            return None
        try:
            return parse_json(data)
        except InvalidJsonError as error:
            self.problem(rel, error.kind, str(error), action)
            return None

    def stamp(self, rel: str) -> None:
        """Remember a file that somebody else reads (SQLite)."""
        try:
            info = os.stat(f"{self.path}/{rel}", follow_symlinks=False)
        except OSError:
            return
        self.stamps.append((rel, info.st_size, stamp_of(info.st_mtime_ns, self.now_ns)))


def _read_all(fd: int, size: int) -> bytes:
    data = os.read(fd, size)
    if len(data) == size:
        return data
    parts = [data]
    done = len(data)
    while done < size and (part := os.read(fd, size - done)):
        parts.append(part)
        done += len(part)
    return b"".join(parts)
