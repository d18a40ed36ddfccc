"""Remember what a dataset was made from, so that collecting again reads only what changed.

The memory is file stamps (size and mtime) of every file read and every folder listed: a file
that appears changes its folder, a file that is rewritten changes itself. Nothing here imports
Arrow, and the stamps lie in flat arrays: saying "nothing changed" about tens of thousands of
trials must take a fraction of a second.
"""

import hashlib
import os
from array import array
from pathlib import Path

import msgspec

from akm_harbor.surrogates import plain
from akm_harbor.tables.layout import STATE
from akm_harbor.trials.stamps import FOLDER, Stamp
from akm_harbor.trials.unchanged import unchanged

_VERSION = 2

type Told = tuple[str, str, str, str]
"""A problem: path, kind, detail, action."""


class Entry(msgspec.Struct, array_like=True):
    """What was kept about one trial.

    Attributes:
        root: the root its rows carry.
        rel: the trial_path its rows carry.
        plan: what it was planned to be (see `job.plan_of`).
        problems: its problems, paths below the trial.
        notes: its minor findings.
    """

    root: str
    rel: str
    plan: str | None
    problems: list[Told]
    notes: dict[str, str]


class State(msgspec.Struct):
    """What the last collection looked at.

    Attributes:
        version: of this format.
        key: what decides the rows' content: code and options.
        inputs: what decides which rows there are.
        summary: the result of the collection, to be told again.
        others: stamps of the folders around the trials and of the jobs' files.
        tasks: stamps of task files.
        findings: what discovery and the tasks had to say.
        files: the dataset's own files, which must still be there.
        trials: trial directories.
        shapes: the distinct tuples of paths below a trial that were looked at.
        shape_of: int64 a trial: its shape.
        sizes: int64 a stamp, trial after trial.
        mtimes: int64 a stamp.
        entries: the encoded list of `Entry`, one a trial; decoded only when it is needed.
    """

    version: int
    key: str
    inputs: list[str]
    summary: dict[str, object]
    others: list[Stamp]
    tasks: list[Stamp]
    findings: list[Told]
    files: list[str]
    trials: list[str]
    shapes: list[tuple[str, ...]]
    shape_of: bytes
    sizes: bytes
    mtimes: bytes
    entries: bytes


class StateBuilder:
    """Collects what is to be remembered while trials are read."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._trials: list[str] = []
        self._shapes: dict[tuple[str, ...], int] = {}
        self._shape_of = array("q")
        self._sizes = array("q")
        self._mtimes = array("q")

    def add(self, path: str, entry: Entry, stamps: list[Stamp]) -> None:
        """Remember one trial."""
        names, sizes, mtimes = zip(*stamps, strict=True)
        self._trials.append(path)
        self._shape_of.append(self._shapes.setdefault(names, len(self._shapes)))
        self._sizes.extend(sizes)
        self._mtimes.extend(mtimes)
        self.entries.append(entry)

    def encoded(
        self,
        *,
        key: str,
        inputs: list[str],
        summary: dict[str, object],
        others: list[Stamp],
        tasks: list[Stamp],
        findings: list[Told],
        files: list[str],
    ) -> bytes:
        """The bytes to keep beside the dataset."""
        return msgspec.msgpack.encode(
            State(
                _VERSION,
                key,
                inputs,
                summary,
                [(plain(path), size, mtime) for path, size, mtime in others],
                tasks,
                findings,
                files,
                # A name that is not UTF-8 is kept as one that does not exist, so that it is always read again.
                list(map(plain, self._trials)),
                [tuple(map(plain, names)) for names in self._shapes],
                self._shape_of.tobytes(),
                self._sizes.tobytes(),
                self._mtimes.tobytes(),
                msgspec.msgpack.encode(self.entries),
            )
        )


class Memory:
    """A state read back, able to tell what is as it was.

    Raises:
        ValueError: the arrays do not fit each other.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self._shape_of = _array(state.shape_of)
        self._sizes = _array(state.sizes)
        self._mtimes = _array(state.mtimes)
        lengths = [len(shape) for shape in state.shapes]
        if len(self._shape_of) != len(state.trials) or not (
            sum(lengths[s] for s in self._shape_of) == len(self._sizes) == len(self._mtimes)
        ):
            raise ValueError("stamps do not fit the trials")
        self._entries: list[Entry] = []
        self._index: dict[str, int] = {}
        self._first: list[int] = []

    def dataset_whole(self, dataset: Path) -> bool:
        """Whether every file of the dataset is still there, and none was cut short."""
        return all(_whole(dataset / name) for name in self.state.files)

    def nothing_changed(self) -> bool:
        """Whether a new collection would give the same dataset again."""
        state, shapes = self.state, self.state.shapes
        if not all(map(_same, state.others)) or not all(map(_same, state.tasks)):
            return False
        paths = [
            f"{path}/{rel}" if rel else path
            for path, shape in zip(state.trials, self._shape_of, strict=True)
            for rel in shapes[shape]
        ]
        return unchanged(paths, self._sizes, self._mtimes)

    def unchanged(self, path: str) -> tuple[Entry, list[Stamp]] | None:
        """A trial's entry and stamps, when it is known and every file of it is as it was."""
        if not self._index:
            self._open()
        number = self._index.get(path)
        if number is None:
            return None
        shape = self.state.shapes[self._shape_of[number]]
        first = self._first[number]
        stamps = [(rel, self._sizes[first + i], self._mtimes[first + i]) for i, rel in enumerate(shape)]
        if not all(_same((f"{path}/{rel}" if rel else path, size, mtime)) for rel, size, mtime in stamps):
            return None
        return self._entries[number], stamps

    def _open(self) -> None:
        self._entries = msgspec.msgpack.decode(self.state.entries, type=list[Entry])
        self._index = {path: number for number, path in enumerate(self.state.trials)}
        first = 0
        for shape in self._shape_of:
            self._first.append(first)
            first += len(self.state.shapes[shape])

    def tasks_unchanged(self, now: list[Stamp]) -> bool:
        """Whether the tasks known now were known then, and none of them has changed."""
        then = {path for path, _, _ in self.state.tasks}
        return all(path in then for path, _, _ in now) and all(map(_same, self.state.tasks))

    def update(self, dataset: Path, others: list[Stamp]) -> None:
        """Keep newer stamps of the folders around the trials: nothing else has changed."""
        from akm_harbor.tables.atomic import write_file

        self.state.others = others
        write_file(dataset / STATE, msgspec.msgpack.encode(self.state))


def _array(data: bytes) -> "array[int]":
    numbers = array("q")
    numbers.frombytes(data)
    return numbers


def _whole(file: Path) -> bool:
    """Whether a file can be what was written: Parquet begins and ends with its mark; Arrow is not loaded to tell."""
    try:
        with file.open("rb") as content:
            if file.suffix != ".parquet":
                return bool(content.read(1))
            begins = content.read(4)
            content.seek(-4, os.SEEK_END)
            return begins == content.read(4) == b"PAR1"
    except OSError:
        return False


def _same(stamp: Stamp) -> bool:
    path, size, mtime_ns = stamp
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return info.st_mtime_ns == mtime_ns and size in {FOLDER, info.st_size}


def load(dataset: Path) -> Memory | None:
    """The memory beside a dataset; None when there is none that can be used."""
    try:
        state = msgspec.msgpack.decode((dataset / STATE).read_bytes(), type=State)
        return Memory(state) if state.version == _VERSION else None
    except (OSError, msgspec.MsgspecError, ValueError, IndexError):
        return None


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
