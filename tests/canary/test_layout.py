import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from akm_harbor.canary.layout import Entry, Layout, UnknownLayoutError, detect, read_entries, read_utility
from akm_harbor.canary.snapshot import read_index
from tests.canary.layouts import ASSETS, build
from tests.canary.support import execute

LAYOUTS = [("document", "22"), ("fragments", "23"), ("units", "24"), ("contentless", "24"), ("contentless", "25")]


@pytest.mark.parametrize(("layout", "version"), LAYOUTS)
def test_layouts_are_told_by_their_tables_not_by_the_stamp(tmp_path: Path, layout: str, version: str) -> None:
    with closing(sqlite3.connect(build(tmp_path / "index.db", layout, version))) as db:
        index = detect(db)
        entries = [row for row in read_entries(db, index) if isinstance(row, Entry)]
    assert (index.layout.value, index.version) == (layout, version)
    assert [entry.ref for entry in entries] == list(ASSETS)


def test_the_recorded_index_is_layout_20(healthy: Path) -> None:
    with closing(sqlite3.connect(healthy / "index.db")) as db:
        index = detect(db)
        assert index.layout is Layout.ENTRY_JSON
        assert index.version == "20"
        assert len(read_utility(db)) == 20


def test_an_unknown_layout_names_the_tables_it_has(tmp_path: Path) -> None:
    path = execute(tmp_path / "index.db", "CREATE TABLE entries (id INTEGER); CREATE TABLE moon (x);")
    with pytest.raises(UnknownLayoutError, match="entries, moon") as caught:
        read_index(path)
    assert caught.value.path == path
    assert caught.value.hint


def test_a_table_without_documents_is_unknown_too(tmp_path: Path) -> None:
    path = build(tmp_path / "index.db", "document", "99")
    execute(path, "ALTER TABLE entries RENAME COLUMN document_json TO doc;")
    with pytest.raises(UnknownLayoutError, match="version 99"):
        read_index(path)


def test_a_contentless_table_this_sqlite_cannot_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tables:  # a stand-in for a connection: the SQLite here may be too old to create such a table
        def execute(self, sql: str) -> list[tuple[object, ...]]:
            if "sqlite_master" in sql:
                ddl = "CREATE VIRTUAL TABLE entries_fts USING fts5(name, content='', contentless_delete=1)"
                return [("entries", "CREATE TABLE entries (...)"), ("entries_fts", ddl)]
            return [(0, "document_json"), (1, "item_ref")]

    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 40, 1))
    with pytest.raises(UnknownLayoutError, match=r"3\.43"):
        detect(Tables())  # type: ignore[arg-type]


def test_an_unreadable_document_is_counted_and_skipped(tmp_path: Path) -> None:
    path = build(tmp_path / "index.db", "document", "22")
    execute(path, "UPDATE entries SET document_json = '{' WHERE id = 2;")
    reading = read_index(path)
    assert reading.unreadable == 1
    assert [entry.row_id for entry in reading.entries] == [1, 3]
