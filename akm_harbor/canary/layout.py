"""Which shape an `index.db` has, told by its tables and columns.

`index_meta.version` is a stamp, not a contract: two lines of akm call themselves 24, one
with contentless full-text tables, one with embedding units. So the layout is what is there.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from akm_harbor.canary.entries import Document, decode
from akm_harbor.canary.refs import concept_id
from akm_harbor.tables.sqlite import StoreSchemaError


class Layout(Enum):
    """How the store's own full-text search finds an asset.

    The values are what a snapshot records. A change of layout changes what a query can find
    (from `fragments` on, body prose is searchable), so rows before and after are not comparable.
    """

    ENTRY_JSON = "entry-json"
    """Layouts up to 20 (akm 0.9.0): `entry_json`, strict AND, then prefix AND."""
    DOCUMENT = "document"
    """21 and 22: `document_json`, quoted AND, prefix AND, then prefix OR."""
    FRAGMENTS = "fragments"
    """23 (0.9.14): as before, merged with a second table of body fragments."""
    UNITS = "units"
    """24 to 26 (0.9.16): cards and fragments as units in one table, topped up tier by tier."""
    CONTENTLESS = "contentless"
    """24 and 25 of the other line: contentless table addressed by rowid, any word matches."""


class UnknownLayoutError(StoreSchemaError):
    """An `index.db` whose full-text tables this version cannot query."""

    kind = "index-layout-unknown"


@dataclass(frozen=True, slots=True)
class Index:
    """What is known about an index before anything is read from it.

    Attributes:
        layout: how to query it.
        version: `index_meta.version` as written.
        built_at: `index_meta.builtAt` as written, ISO 8601.
    """

    layout: Layout
    version: str | None
    built_at: str | None


@dataclass(frozen=True, slots=True)
class Entry:
    """One indexed asset: row id, sort key of the store, short id and its document."""

    row_id: int
    key: str
    ref: str
    document: Document


def _columns(db: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in db.execute(f'PRAGMA table_info("{table}")')}


def _tables(db: sqlite3.Connection) -> dict[str, str]:
    return {str(name): str(sql) for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")}


def detect(db: sqlite3.Connection) -> Index:
    """Recognise the layout of an open index.

    Raises:
        UnknownLayoutError: tables this version does not know, with the ones found.
    """
    tables = _tables(db)
    columns = _columns(db, "entries") if "entries" in tables else set()
    layout = _layout(tables, columns)
    if layout is None:
        found = ", ".join(sorted(tables)[:24]) or "none"
        raise UnknownLayoutError(
            f"its layout is not known (version {_meta(db, tables).get('version', 'unstamped')}; tables: {found})",
            hint="Is this akm's index.db? If akm is newer than this tool, update the tool.",
        )
    if layout is Layout.CONTENTLESS and "contentless_delete" in tables["entries_fts"]:
        _require_contentless()
    meta = _meta(db, tables)
    return Index(layout, meta.get("version"), meta.get("builtAt"))


def _layout(tables: dict[str, str], columns: set[str]) -> Layout | None:
    fts = tables.get("entries_fts", "").replace(" ", "")
    if {"units_fts", "unit_texts", "entry_units"} <= tables.keys() and "document_json" in columns:
        return Layout.UNITS
    if not fts:
        return None
    # A v20 row has both columns, document_json being null: its entry_json decides.
    if {"entry_json", "entry_type"} <= columns:
        return Layout.ENTRY_JSON
    if not {"document_json", "item_ref"} <= columns:
        return None
    if "content=''" in fts:
        return Layout.CONTENTLESS
    return Layout.FRAGMENTS if "entry_fragments_fts" in tables else Layout.DOCUMENT


def _require_contentless() -> None:
    if sqlite3.sqlite_version_info < (3, 43):
        raise UnknownLayoutError(
            f"its full-text table needs SQLite 3.43 to be read, this Python has {sqlite3.sqlite_version}",
            hint="Run this with a Python built against SQLite 3.43 or newer.",
        )


def _meta(db: sqlite3.Connection, tables: dict[str, str]) -> dict[str, str]:
    if "index_meta" not in tables:
        return {}
    return {str(key): str(value) for key, value in db.execute("SELECT key, value FROM index_meta")}


def read_entries(db: sqlite3.Connection, index: Index) -> Iterator[Entry | int]:
    """Read every asset in row order; an undecodable row comes as its bare row id."""
    if index.layout is Layout.ENTRY_JSON:
        sql = "SELECT id, entry_key, entry_json FROM entries ORDER BY id"
    else:
        sql = "SELECT id, item_ref, document_json FROM entries ORDER BY id"
    for row_id, key, raw in db.execute(sql):
        document = decode(raw) if isinstance(raw, str | bytes) else None
        if document is None:
            yield int(row_id)
        else:
            yield Entry(int(row_id), str(key), concept_id(document.type, document.name), document)


def read_utility(db: sqlite3.Connection) -> dict[int, float]:
    """Utility by row id, for minting; empty where the index keeps none."""
    if "utility" not in _columns(db, "utility_scores"):
        return {}
    rows = db.execute("SELECT entry_id, utility FROM utility_scores")
    return {int(row_id): float(value) for row_id, value in rows if isinstance(value, int | float)}
