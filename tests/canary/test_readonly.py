"""Reading leaves a store as it was, whatever state it is in, and says what is wrong when it cannot."""

import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from akm_harbor.canary.analysis import analyse
from akm_harbor.canary.locate import locate
from akm_harbor.canary.snapshot import read_index
from akm_harbor.canary.sources import gather
from akm_harbor.canary.store import mint_set, take_snapshot
from akm_harbor.tables import sqlite
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import (
    NotAStoreError,
    StoreBusyError,
    StoreCorruptError,
    StoreEmptyError,
    StoreMissingError,
    StoreSchemaError,
)
from tests.canary.support import digests, execute


def _everything(folder: Path) -> None:
    """Every command that reads a store."""
    files = locate(folder)
    if not files.history.exists():
        mint_set(files, files.history, Problems())
    take_snapshot(files, files.history, Problems())
    analyse(gather([folder]))
    analyse(gather([folder / "state.db"]))


@contextmanager
def _wal(folder: Path) -> Iterator[None]:
    """Both databases in WAL mode with committed rows that are only in the log, held open by a writer."""
    with closing(sqlite3.connect(folder / "index.db")) as index, closing(sqlite3.connect(folder / "state.db")) as state:
        for db in (index, state):
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA wal_autocheckpoint = 0")
            db.execute("CREATE TABLE scratch (x)")
            db.commit()
        yield


def test_a_live_wal_stays_as_it_is(collapse: Path) -> None:
    with _wal(collapse):
        before = digests(collapse)
        assert {"index.db-wal", "index.db-shm", "state.db-wal", "state.db-shm"} < before.keys()
        _everything(collapse)
        assert digests(collapse) == before


def test_rows_in_a_rested_wal_are_read(collapse: Path) -> None:
    with _wal(collapse):
        execute(collapse / "index.db", "DELETE FROM entries WHERE entry_type = 'lesson';")
        copy = collapse.with_name("rested")
        shutil.copytree(collapse, copy, ignore=shutil.ignore_patterns("*-shm"))
    before = digests(copy)
    assert "index.db-shm" not in before
    assert len(read_index(copy / "index.db").entries) == 21 - 8
    _everything(copy)
    assert digests(copy) == before


def test_a_directory_nobody_may_write_to(collapse: Path) -> None:
    for path in collapse.iterdir():
        path.chmod(0o444)
    collapse.chmod(0o555)
    try:
        before = digests(collapse)
        _everything(collapse)
        assert digests(collapse) == before
    finally:
        collapse.chmod(0o755)


def test_a_lock_of_two_seconds_delays_nobody(collapse: Path) -> None:
    with closing(sqlite3.connect(collapse / "index.db", isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        assert read_index(collapse / "index.db").entries
        assert time.monotonic() - started < 2.0
        db.execute("ROLLBACK")


def test_a_writer_that_commits_fifty_times_a_second(collapse: Path) -> None:
    """Each commit changes state.db and index.db; what a reader sees is always a committed state."""
    with _wal(collapse):
        stop = threading.Event()
        committed = [0]

        def write() -> None:
            with (
                closing(sqlite3.connect(collapse / "index.db")) as a,
                closing(sqlite3.connect(collapse / "state.db")) as b,
            ):
                while not stop.is_set():
                    for db in (a, b):
                        db.execute("INSERT INTO scratch VALUES (?)", ("x" * 200,))
                        db.commit()
                    committed[0] += 1
                    stop.wait(0.02)

        thread = threading.Thread(target=write)
        thread.start()
        try:
            time.sleep(0.1)
            for _ in range(3):
                _everything(collapse)
        finally:
            stop.set()
            thread.join()
        assert committed[0] > 5
        with closing(sqlite3.connect(collapse / "index.db")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("SELECT COUNT(*) FROM scratch").fetchone() == (committed[0],)


def _corrupt(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[8192:20480] = b"\xa5" * (20480 - 8192)
    path.write_bytes(raw)


@pytest.mark.parametrize(
    ("spoil", "error"),
    [
        (lambda path: path.write_bytes(b""), StoreEmptyError),
        (lambda path: path.write_text("# a note, not a database\n" * 50), NotAStoreError),
        (_corrupt, StoreCorruptError),
        (lambda path: path.unlink(), StoreMissingError),
        (lambda path: execute(path.unlink() or path, "CREATE TABLE other (x);"), StoreSchemaError),
    ],
    ids=["empty", "not-a-database", "corrupt-page", "missing", "wrong-schema"],
)
def test_what_cannot_be_read_says_what_it_is(collapse: Path, spoil: Callable[[Path], object], error: type) -> None:
    path = collapse / "index.db"
    spoil(path)
    before = digests(collapse)
    with pytest.raises(error) as caught:
        read_index(path)
    assert caught.value.path == path
    assert str(path) in str(caught.value)
    assert digests(collapse) == before


def test_a_writer_that_never_rests_is_waited_for_and_named(collapse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_copied_quietly", lambda source, copy: False)  # as if it changed each time
    with pytest.raises(StoreBusyError, match="a writer keeps changing it"):
        read_index(collapse / "index.db", wait_seconds=0.1)
