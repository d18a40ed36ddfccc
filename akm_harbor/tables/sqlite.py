"""Read a SQLite database that belongs to somebody else, without leaving a trace.

The source is never opened by SQLite: even a read-only connection takes locks, and next to
a WAL database it creates `-wal` and `-shm` files. The database and its log are copied,
together and only while neither changes, into a private folder; SQLite recovers and checks
the copy. So a live writer is never blocked, and the source's folder may be unwritable.
A `.db` copied without its log loses committed rows silently, which is why both go or neither.
"""

import os
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.atomic import NO_ROOM, no_room

_MAGIC = b"SQLite format 3\x00"
_GIVE = "Give akm's data folder ($AKM_DATA_DIR, else ~/.local/share/akm), or its index.db or state.db."
_LOGS = ("-wal", "-journal")  # never -shm: SQLite rebuilds it, and a foreign one is only trouble
_RACY_NS = 20_000_000  # coarse file clocks: a file this fresh may change again without a new mtime
_STEPS_PER_CALLBACK = 100_000


class StoreError(AkmHarborError):
    """A database that cannot be read; `kind` is a short stable name for the problems table."""

    kind = "sqlite-unreadable"
    remedy = "Check that the file is whole and may be read: `sqlite3 FILE 'pragma quick_check'`."


class StoreMissingError(StoreError):
    """There is no such file, or it is not a regular file."""

    kind = "sqlite-missing"
    remedy = _GIVE


class StoreEmptyError(StoreError):
    """The file has no bytes: SQLite would open it happily and show no tables."""

    kind = "sqlite-empty"
    remedy = "Run `akm index` to fill it, or give the store's backup."


class NotAStoreError(StoreError):
    """The file is not a SQLite database."""

    kind = "sqlite-not-a-database"
    remedy = _GIVE


class StoreCorruptError(StoreError):
    """SQLite finds damage, or cannot recover the log."""

    kind = "sqlite-corrupt"


class StoreBusyError(StoreError):
    """A writer kept changing the files, or held them locked, longer than we wait."""

    kind = "sqlite-busy"


class StoreSchemaError(StoreError):
    """An expected table or column is not there."""

    kind = "sqlite-schema"


class StoreSlowError(StoreError):
    """A query ran into the time limit (a hostile or enormous database)."""

    kind = "sqlite-slow"
    remedy = "Try again when the machine is idle; if it stays so, the file is damaged or no akm store."


type _Stamp = tuple[int, int, int]
"""inode, size, mtime_ns"""


@contextmanager
def open_readonly(
    path: Path,
    *,
    tables: Sequence[str] = (),
    wait_seconds: float = 3.0,
    query_seconds: float = 60.0,
    check: bool = True,
) -> Iterator[sqlite3.Connection]:
    """Open a consistent private snapshot of a database, live or captured.

    Args:
        path: the database file; `-wal` and `-journal` beside it are taken into account.
        tables: tables that must exist. A view of that name does not count.
        wait_seconds: how long to retry while a writer keeps changing or locking the files.
        query_seconds: total time the queries of the block may take.
        check: run `PRAGMA quick_check` first.

    Yields:
        A connection that can only read. Text that is not UTF-8 is decoded with replacement.

    Raises:
        StoreMissingError: no such regular file.
        StoreEmptyError: zero bytes.
        NotAStoreError: another kind of file.
        StoreCorruptError: damaged, on opening or while the block reads.
        StoreBusyError: no quiet moment within `wait_seconds`.
        StoreSchemaError: an expected table, or a column the block asks for, is absent.
        StoreSlowError: the block's queries took longer than `query_seconds`.
        StoreError: anything else the operating system says.
    """
    path = Path(path)
    with tempfile.TemporaryDirectory(prefix="akm-harbor-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "copy.db"
        _snapshot(path, copy, wait_seconds)
        deadline = time.monotonic() + query_seconds
        try:
            with closing(sqlite3.connect(f"{copy.as_uri()}?mode=rw", uri=True)) as connection:
                _harden(connection, deadline)
                _verify(connection, path, tables, check=check)
                yield connection
        except sqlite3.DatabaseError as error:
            raise _translated(error, path) from error


def _harden(connection: sqlite3.Connection, deadline: float) -> None:
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    connection.set_progress_handler(lambda: int(time.monotonic() > deadline), _STEPS_PER_CALLBACK)
    connection.execute("PRAGMA query_only = ON")
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")


def _verify(connection: sqlite3.Connection, path: Path, tables: Sequence[str], *, check: bool) -> None:
    # A truncated file can look merely empty, so both questions are asked: is it whole, is it ours.
    present = {str(row[0]) for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if check:
        (verdict,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise StoreCorruptError(f"is damaged ({verdict})", path=path, hint="Capture or back it up again.")
    missing = [name for name in tables if name not in present]
    if missing:
        raise StoreSchemaError(
            f"has no table {', '.join(missing)} (it has: {', '.join(sorted(present)[:20]) or 'none'})",
            path=path,
            hint="Is this the right file, written by a supported version?",
        )


def _translated(error: sqlite3.DatabaseError, path: Path) -> AkmHarborError:
    """A typed error for what SQLite said."""
    name = getattr(error, "sqlite_errorname", "") or ""
    text = str(error)
    if name.startswith("SQLITE_INTERRUPT"):
        return StoreSlowError("reading it took too long", path=path)
    if name.startswith("SQLITE_NOTADB"):
        return NotAStoreError("is not a SQLite database", path=path)
    if text.startswith(("no such table", "no such column", "no such module")):
        return StoreSchemaError(text, path=path, hint="Is this the right file, written by a supported version?")
    if name.startswith(("SQLITE_CORRUPT", "SQLITE_IOERR", "SQLITE_CANTOPEN")):
        return StoreCorruptError(f"is damaged ({text})", path=path, hint="Capture or back it up again.")
    return StoreError(f"cannot be read ({text})", path=path)


def _stamp(path: Path) -> _Stamp | None:
    """Identity and state of a file; None when it is absent. Symbolic links are not followed."""
    try:
        info = path.lstat()
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(info.st_mode):
        raise StoreMissingError("is not a regular file", path=path)
    return info.st_ino, info.st_size, info.st_mtime_ns


def _snapshot(path: Path, copy: Path, wait_seconds: float) -> None:
    """Copy the database and its log at one moment, waiting for a quiet one."""
    source = path.resolve() if path.is_symlink() else path  # the user's own link; its logs lie beside the target
    deadline = time.monotonic() + wait_seconds
    pause = 0.005
    while True:
        try:
            if _copied_quietly(source, copy):
                return
            why = "a writer keeps changing it"
        except (FileNotFoundError, PermissionError) as error:
            # Gone between look and copy, or locked against reading (Windows): both can pass.
            if not source.exists():
                raise StoreMissingError("no such file", path=path) from error
            if isinstance(error, PermissionError) and os.name == "posix":
                raise StoreError("may not be read (permission denied)", path=path) from error
            why = "it is locked"
        except OSError as error:
            if error.errno in NO_ROOM:
                raise no_room(copy.parent) from error
            raise StoreError(f"cannot be read ({error.strerror or error})", path=path) from error
        if time.monotonic() + pause > deadline:
            raise StoreBusyError(
                f"{why} (waited {wait_seconds:g} s)", path=path, hint="Try again when the writer is done."
            )
        time.sleep(pause)
        pause = min(pause * 2, 0.2)


def _copied_quietly(source: Path, copy: Path) -> bool:
    """Copy once; False when anything changed meanwhile, so that the copy proves nothing."""
    logs = [source.with_name(source.name + suffix) for suffix in _LOGS]
    before = [_stamp(file) for file in (source, *logs)]
    if before[0] is None:
        raise StoreMissingError("no such file", path=source)
    if before[0][1] == 0:
        raise StoreEmptyError("is empty (0 bytes)", path=source)
    with source.open("rb") as handle:
        if handle.read(len(_MAGIC)) != _MAGIC:
            raise NotAStoreError("is not a SQLite database", path=source)
    newest = max(mark[2] for mark in before if mark)
    age = time.time_ns() - newest
    if 0 <= age < _RACY_NS:
        time.sleep((_RACY_NS - age) / 1e9)
    for file, mark, suffix in zip((source, *logs), before, ("", *_LOGS), strict=True):
        target = copy.with_name(copy.name + suffix)
        if mark is None:
            target.unlink(missing_ok=True)
        else:
            shutil.copyfile(file, target, follow_symlinks=False)
    return before == [_stamp(file) for file in (source, *logs)]
