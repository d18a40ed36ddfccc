"""Write a made-up store as an `index.db` that akm 0.9.0 could have built (layout 20)."""

import json
import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path

from akm_harbor.canary.simulate.bundle import Asset, Bundle

_TABLES = """
CREATE TABLE index_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, entry_key TEXT NOT NULL UNIQUE, entry_json TEXT NOT NULL,
  entry_type TEXT NOT NULL, item_ref TEXT UNIQUE, concept_id TEXT
);
CREATE VIRTUAL TABLE entries_fts USING fts5(
  entry_id UNINDEXED, name, description, tags, hints, content, tokenize='porter unicode61'
);
CREATE TABLE utility_scores (entry_id INTEGER PRIMARY KEY, utility REAL NOT NULL DEFAULT 0);
"""


def write_index(bundle: Bundle, path: Path, built_at: datetime, *, first_id: int = 1) -> None:
    """Build the index anew, as `akm index --full` does: rows get other ids, contents stay.

    Args:
        bundle: what to index.
        path: the file to replace.
        built_at: build time, UTC.
        first_id: id of the first row; a full re-index never starts where the last one did.
    """
    path.unlink(missing_ok=True)
    assets = [bundle.assets[ref] for ref in bundle.refs()]
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;" + _TABLES)
        stamp = built_at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        db.executemany("INSERT INTO index_meta VALUES (?, ?)", [("version", "20"), ("builtAt", stamp)])
        numbered = list(enumerate(assets, first_id))
        db.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)",
            [
                (number, f"/store:{a.type}:{a.name}", _document(a), a.type, f"store//{a.ref}", a.ref)
                for number, a in numbered
            ],
        )
        db.executemany(
            "INSERT INTO entries_fts VALUES (?, ?, ?, ?, ?, ?)", [(number, *_fields(a)) for number, a in numbered]
        )


def _document(asset: Asset) -> str:
    found: dict[str, object] = {"name": asset.name, "type": asset.type, "description": asset.description}
    if asset.tags:
        found["tags"] = asset.tags
    if asset.headings:
        found["toc"] = [{"level": 1, "text": text, "line": 1} for text in asset.headings]
    if asset.xrefs:
        found["xrefs"] = asset.xrefs
    if asset.generation:
        found["generation"] = asset.generation
    return json.dumps(found, ensure_ascii=False)


def _fields(asset: Asset) -> tuple[str, str, str, str, str]:
    """Name, description, tags, hints and content as akm fills them, in lower case."""
    name = asset.name.replace("-", " ").replace("_", " ")
    parts = (name, asset.description, " ".join(asset.tags), " ".join(asset.xrefs), " ".join(asset.headings))
    return tuple(part.lower() for part in parts)  # type: ignore[return-value]  # five parts, five fields
