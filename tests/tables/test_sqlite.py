import hashlib
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from akm_harbor.tables.sqlite import (
    NotAStoreError,
    StoreBusyError,
    StoreCorruptError,
    StoreEmptyError,
    StoreMissingError,
    StoreSchemaError,
    StoreSlowError,
    open_readonly,
)

ROWS = 500


def fingerprint(folder: Path) -> dict[str, tuple[str, int, int]]:
    """Every file below a folder: digest, mtime and mode; the folder's own mtime under '.'."""
    seen = {
        str(file.relative_to(folder)): (
            hashlib.sha256(file.read_bytes()).hexdigest(),
            file.stat().st_mtime_ns,
            file.stat().st_mode,
        )
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    return {**seen, ".": ("", folder.stat().st_mtime_ns, folder.stat().st_mode)}


def make(path: Path, *, journal: str = "DELETE", rows: int = ROWS) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA journal_mode = {journal}")
        db.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        db.executemany("INSERT INTO notes (text) VALUES (?)", [("x" * 200,)] * rows)
        db.commit()
    return path


def count(path: Path, **options: float) -> int:
    with open_readonly(path, tables=("notes",), **options) as db:
        return int(db.execute("SELECT count(*) FROM notes").fetchone()[0])


@pytest.fixture
def live_wal(tmp_path: Path):
    """A WAL database with a connection still open: the rows are only in the log."""
    path = tmp_path / "live" / "state.db"
    path.parent.mkdir()
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode = WAL")
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
    writer.executemany("INSERT INTO notes (text) VALUES (?)", [("x" * 200,)] * ROWS)
    writer.commit()
    yield path
    writer.close()


@pytest.mark.parametrize("journal", ["DELETE", "TRUNCATE", "PERSIST", "WAL"])
def test_reads_and_leaves_every_byte_alone(tmp_path: Path, journal: str) -> None:
    path = make(tmp_path / "store" / "state.db", journal=journal)
    before = fingerprint(path.parent)
    assert count(path) == ROWS
    assert fingerprint(path.parent) == before


def test_live_wal_is_read_with_its_log_and_not_touched(live_wal: Path) -> None:
    assert (live_wal.parent / "state.db-wal").stat().st_size > 0
    before = fingerprint(live_wal.parent)
    assert count(live_wal) == ROWS
    assert fingerprint(live_wal.parent) == before


def test_uncommitted_rows_of_a_live_writer_are_not_seen(live_wal: Path) -> None:
    with closing(sqlite3.connect(live_wal)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO notes (text) VALUES ('not yet')")
        assert count(live_wal) == ROWS
        other.rollback()


def test_wal_without_shm_as_a_crash_or_a_copy_leaves_it(live_wal: Path, tmp_path: Path) -> None:
    folder = tmp_path / "copied"
    folder.mkdir()
    for suffix in ("", "-wal"):
        (folder / f"state.db{suffix}").write_bytes((live_wal.parent / f"state.db{suffix}").read_bytes())
    before = fingerprint(folder)
    assert count(folder / "state.db") == ROWS
    assert fingerprint(folder) == before


def test_a_torn_end_of_the_log_loses_only_what_was_not_committed(live_wal: Path, tmp_path: Path) -> None:
    folder = tmp_path / "torn"
    folder.mkdir()
    (folder / "state.db").write_bytes(live_wal.read_bytes())
    log = (live_wal.parent / "state.db-wal").read_bytes()
    (folder / "state.db-wal").write_bytes(log + b"\x00" * 100)
    assert count(folder / "state.db") == ROWS


def test_hot_journal_of_a_killed_writer_is_rolled_back_in_the_copy_only(tmp_path: Path) -> None:
    path = make(tmp_path / "store" / "state.db")
    script = """
        import os, sqlite3, sys
        db = sqlite3.connect(sys.argv[1], isolation_level=None)
        db.execute("PRAGMA cache_size = 5")
        db.execute("BEGIN IMMEDIATE")
        db.execute("UPDATE notes SET text = hex(randomblob(200))")
        db.execute("DELETE FROM notes WHERE id > 250")
        os._exit(9)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(path)], check=False)
    assert (path.parent / "state.db-journal").stat().st_size > 0
    before = fingerprint(path.parent)
    with open_readonly(path, tables=("notes",)) as db:
        assert db.execute("SELECT count(*), max(length(text)) FROM notes").fetchone() == (ROWS, 200)
    assert fingerprint(path.parent) == before


def test_a_lock_held_by_a_writer_does_not_stop_reading(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        writer.execute("DELETE FROM notes")
        assert count(path) == ROWS
        writer.rollback()


def test_every_snapshot_of_a_busy_store_is_a_committed_one(tmp_path: Path) -> None:
    """The writer adds ten rows a transaction: any other remainder would be a torn read."""
    path = make(tmp_path / "state.db", journal="WAL", rows=0)
    stop = threading.Event()

    def write() -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA wal_autocheckpoint = 5")
            while not stop.is_set():
                db.executemany("INSERT INTO notes (text) VALUES (?)", [("y" * 300,)] * 10)
                db.commit()
                time.sleep(0.06)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        counts = [count(path, wait_seconds=20) for _ in range(8)]
    finally:
        stop.set()
        writer.join()
    assert all(n % 10 == 0 for n in counts)
    assert counts == sorted(counts)


def test_a_store_that_never_rests_is_a_typed_error_after_a_bounded_wait(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    stop = threading.Event()

    def touch() -> None:
        while not stop.is_set():
            os.utime(path)
            time.sleep(0.001)

    writer = threading.Thread(target=touch)
    writer.start()
    started = time.monotonic()
    try:
        with pytest.raises(StoreBusyError, match=r"state\.db: a writer keeps changing it"):
            count(path, wait_seconds=0.3)
    finally:
        stop.set()
        writer.join()
    assert time.monotonic() - started < 5


def test_read_only_folder_and_file(tmp_path: Path, live_wal: Path) -> None:
    for path in (make(tmp_path / "sealed" / "state.db", journal="WAL"), live_wal):
        path.chmod(0o444)
        path.parent.chmod(0o555)
        try:
            before = fingerprint(path.parent)
            assert count(path) == ROWS
            assert fingerprint(path.parent) == before
        finally:
            path.parent.chmod(0o755)
            path.chmod(0o644)


def test_the_connection_cannot_write(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    with pytest.raises(Exception, match="readonly"), open_readonly(path) as db:
        db.execute("DELETE FROM notes")
    assert count(path) == ROWS


def test_missing_empty_and_foreign_files(tmp_path: Path) -> None:
    with pytest.raises(StoreMissingError, match="no such file"):
        count(tmp_path / "nothing.db")
    with pytest.raises(StoreMissingError, match="not a regular file"):
        count(tmp_path)
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreEmptyError, match="0 bytes"):
        count(tmp_path / "empty.db")
    (tmp_path / "text.db").write_text("SQLite is not this\n" * 100)
    with pytest.raises(NotAStoreError, match="not a SQLite database"):
        count(tmp_path / "text.db")
    (tmp_path / "magic.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 4000)
    with pytest.raises((NotAStoreError, StoreCorruptError)):
        count(tmp_path / "magic.db")


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_a_named_pipe_does_not_hang_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "state.db")
    with pytest.raises(StoreMissingError, match="not a regular file"):
        count(tmp_path / "state.db")


def test_a_symlinked_log_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    (tmp_path / "secret").write_text("private")
    (tmp_path / "state.db-wal").symlink_to(tmp_path / "secret")
    with pytest.raises(StoreMissingError, match="not a regular file"):
        count(path)


def test_a_users_own_symlink_is_followed_together_with_its_log(tmp_path: Path, live_wal: Path) -> None:
    (tmp_path / "link.db").symlink_to(live_wal)
    assert count(tmp_path / "link.db") == ROWS


def test_corrupt_page_and_truncation(tmp_path: Path) -> None:
    whole = make(tmp_path / "state.db").read_bytes()
    broken = bytearray(whole)
    broken[4096 * 3 : 4096 * 5] = b"\xa5" * 8192
    (tmp_path / "broken.db").write_bytes(broken)
    with pytest.raises(StoreCorruptError, match="damaged"):
        count(tmp_path / "broken.db")
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(StoreCorruptError, match="damaged"):
        count(tmp_path / "cut.db")


def test_corruption_met_inside_the_block_is_typed_too(tmp_path: Path) -> None:
    broken = bytearray(make(tmp_path / "state.db").read_bytes())
    broken[4096 * 3 : 4096 * 5] = b"\xa5" * 8192
    (tmp_path / "broken.db").write_bytes(broken)
    with pytest.raises(StoreCorruptError), open_readonly(tmp_path / "broken.db", check=False) as db:
        db.execute("SELECT sum(length(text)) FROM notes").fetchone()


def test_missing_tables_and_columns(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    with (
        pytest.raises(StoreSchemaError, match=r"no table usage_events \(it has: notes\)"),
        open_readonly(path, tables=("notes", "usage_events")),
    ):
        pass
    with pytest.raises(StoreSchemaError, match="no such column"), open_readonly(path) as db:
        db.execute("SELECT elsewhere FROM notes")


def test_a_view_does_not_pass_for_a_table(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE VIEW usage_events AS SELECT * FROM notes")
    with pytest.raises(StoreSchemaError, match="usage_events"), open_readonly(path, tables=("usage_events",)):
        pass


def test_an_endless_query_is_cut_off(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db")
    with pytest.raises(StoreSlowError), open_readonly(path, query_seconds=0.2) as db:
        db.execute("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n").fetchone()


def test_text_that_is_not_utf8_is_replaced_not_raised(tmp_path: Path) -> None:
    path = make(tmp_path / "state.db", rows=0)
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO notes (text) VALUES (CAST(x'61ff62' AS TEXT))")
        db.commit()
    with open_readonly(path) as db:
        assert db.execute("SELECT text FROM notes").fetchone() == ("a\ufffdb",)


def test_nothing_is_left_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    count(make(tmp_path / "state.db"))
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreEmptyError):
        count(tmp_path / "empty.db")
    assert list((tmp_path / "tmp").iterdir()) == []
