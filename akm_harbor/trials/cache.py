"""Remember what a dataset was made from, so that collecting again reads only what changed.

The memory is file stamps (size and mtime) of every file read and every folder listed: a file
that appears changes its folder, a file that is rewritten changes itself. A stamp too fresh to
prove anything is kept as one that never matches. Nothing here imports Arrow: saying "nothing
changed" about tens of thousands of trials must take a fraction of a second.
"""

import hashlib
import os
from array import array
from pathlib import Path

import msgspec

from akm_harbor.tables.atomic import write_file
from akm_harbor.trials.files import FOLDER

STATE = "collect-state.msgpack"
_VERSION = 1


class Entry(msgspec.Struct, array_like=True):
    """One trial of the last collection.

    Attributes:
        path: its directory.
        root: the root its rows carry.
        rel: the trial_path its rows carry.
        plan: what it was planned to be (see `job.plan_of`).
        shape: index of the tuple of paths looked at.
        first: index of its first stamp.
        problems: its problems.
        notes: its minor findings.
    """

    path: str
    root: str
    rel: str
    plan: str | None
    shape: int
    first: int
    problems: list[tuple[str, str, str, str]]
    notes: dict[str, str]


class State(msgspec.Struct):
    """What the last collection looked at.

    Attributes:
        key: what decides the rows' content: code and options.
        inputs: what decides which rows there are.
        summary: the result of the collection, to be told again.
        shapes: the distinct tuples of paths (below the trial) that were looked at.
        entries: one a trial.
        sizes: int64 per stamp, in entry order.
        mtimes: int64 per stamp.
        others: (path, size, mtime_ns) of folders above the trials and of job files.
        tasks: the same of task files.
        findings: what discovery and the tasks had to say.
        files: the dataset's own files, which must still be there.
    """

    version: int
    key: str
    inputs: list[str]
    summary: dict[str, object]
    shapes: list[tuple[str, ...]]
    entries: list[Entry]
    sizes: bytes
    mtimes: bytes
    others: list[tuple[str, int, int]]
    tasks: list[tuple[str, int, int]]
    findings: list[tuple[str, str, str, str]]
    files: list[str]


class StateBuilder:
    """Collects stamps while trials are read."""

    def __init__(self) -> None:
        self._shapes: dict[tuple[str, ...], int] = {}
        self._sizes = array("q")
        self._mtimes = array("q")
        self.entries: list[Entry] = []
        self.others: list[tuple[str, int, int]] = []
        self.tasks: list[tuple[str, int, int]] = []
        self.findings: list[tuple[str, str, str, str]] = []

    def add(
        self,
        path: str,
        root: str,
        rel: str,
        plan: str | None,
        stamps: list[tuple[str, int, int]],
        problems: list[tuple[str, str, str, str]],
        notes: dict[str, str],
    ) -> None:
        """Remember one trial."""
        shape = tuple(stamp[0] for stamp in stamps)
        number = self._shapes.setdefault(shape, len(self._shapes))
        first = len(self._sizes)
        self._sizes.extend(stamp[1] for stamp in stamps)
        self._mtimes.extend(stamp[2] for stamp in stamps)
        self.entries.append(Entry(path, root, rel, plan, number, first, problems, notes))

    def state(self, key: str, inputs: list[str], summary: dict[str, object], files: list[str]) -> bytes:
        """The bytes to keep beside the dataset."""
        return msgspec.msgpack.encode(
            State(
                _VERSION,
                key,
                inputs,
                summary,
                list(self._shapes),
                self.entries,
                self._sizes.tobytes(),
                self._mtimes.tobytes(),
                self.others,
                self.tasks,
                self.findings,
                files,
            )
        )


class Memory:
    """A state read back, able to tell what is as it was."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._sizes = array("q")
        self._sizes.frombytes(state.sizes)
        self._mtimes = array("q")
        self._mtimes.frombytes(state.mtimes)
        self._by_path: dict[str, Entry] | None = None

    def stamps(self, entry: Entry) -> list[tuple[str, int, int]]:
        """What was looked at for a trial."""
        shape = self.state.shapes[entry.shape]
        return [(rel, self._sizes[entry.first + i], self._mtimes[entry.first + i]) for i, rel in enumerate(shape)]

    def unchanged(self, entry: Entry) -> bool:
        """Whether every file and folder of a trial is as it was."""
        sizes, mtimes, number, path = self._sizes, self._mtimes, entry.first, entry.path
        try:
            for rel in self.state.shapes[entry.shape]:
                info = os.lstat(f"{path}/{rel}" if rel else path)
                if info.st_mtime_ns != mtimes[number] or (sizes[number] != FOLDER and info.st_size != sizes[number]):
                    return False
                number += 1
        except OSError:
            return False
        return True

    def find(self, path: str) -> Entry | None:
        """The entry of a trial directory."""
        if self._by_path is None:
            self._by_path = {entry.path: entry for entry in self.state.entries}
        return self._by_path.get(path)

    def nothing_changed(self, dataset: Path) -> bool:
        """Whether a new collection would give the same dataset again."""
        return (
            all(_same(stamp) for stamp in (*self.state.others, *self.state.tasks))
            and all((dataset / name).is_file() for name in self.state.files)
            and all(map(self.unchanged, self.state.entries))
        )

    def update(self, dataset: Path, others: list[tuple[str, int, int]]) -> None:
        """Keep newer stamps of the folders around the trials: nothing else has changed."""
        self.state.others = others
        write_file(dataset / STATE, msgspec.msgpack.encode(self.state))

    def tasks_unchanged(self, now: list[tuple[str, int, int]]) -> bool:
        """Whether the tasks known now were known then, and none of them has changed."""
        then = {path for path, _, _ in self.state.tasks}
        return all(path in then for path, _, _ in now) and all(map(_same, self.state.tasks))


def _same(stamp: tuple[str, int, int]) -> bool:
    path, size, mtime_ns = stamp
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return info.st_mtime_ns == mtime_ns and (size == FOLDER or info.st_size == size)


def load(dataset: Path) -> Memory | None:
    """The memory beside a dataset; None when there is none that can be used."""
    try:
        state = msgspec.msgpack.decode((dataset / STATE).read_bytes(), type=State)
        if state.version != _VERSION:
            return None
        memory = Memory(state)
        if len(memory._sizes) != sum(len(state.shapes[e.shape]) for e in state.entries):  # noqa: SLF001
            return None
    except (OSError, msgspec.MsgspecError, ValueError, IndexError):
        return None
    return memory


def code_stamp() -> str:
    """A digest of this package's reading code: other code may read the same files otherwise."""
    package = Path(__file__).resolve().parents[1]
    digest = hashlib.sha256()
    for folder in ("trials", "tables"):
        with os.scandir(package / folder) as entries:
            for entry in sorted(entries, key=lambda e: e.name):
                if entry.name.endswith(".py"):
                    info = entry.stat()
                    digest.update(f"{entry.name}:{info.st_size}:{info.st_mtime_ns};".encode())
    return digest.hexdigest()
