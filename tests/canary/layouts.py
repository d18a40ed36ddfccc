"""Index files of every layout, small and made by hand from the tables akm's releases create.

Only the `entry-json` layout could be checked against a running akm; the others follow the
table definitions of its later sources.
"""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

ASSETS: Mapping[str, Mapping[str, object]] = {
    "memories/heron-cache": {
        "name": "heron-cache", "type": "memory", "description": "Heron cache entries expire", "tags": ["heron"],
    },
    "memories/otter-queue": {
        "name": "otter-queue", "type": "memory", "description": "Otter queue depth", "tags": ["otter"],
    },
    "lessons/flags": {"name": "flags", "type": "lesson", "description": "Keep flags short lived", "tags": ["flags"]},
}  # fmt: skip
BODIES = {"lessons/flags": "the marmot said so", "memories/otter-queue": "marmot"}

_DOCUMENTS = """
CREATE TABLE index_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entries (
  id INTEGER PRIMARY KEY AUTOINCREMENT, item_ref TEXT NOT NULL UNIQUE, concept_id TEXT NOT NULL, type TEXT NOT NULL,
  document_json TEXT NOT NULL
);
"""
_FTS = """
CREATE VIRTUAL TABLE entries_fts USING fts5(
  entry_id UNINDEXED, name, description, tags, hints, content, {options} tokenize='porter unicode61'
);
"""
_FRAGMENTS = """
CREATE VIRTUAL TABLE entry_fragments_fts USING fts5(
  entry_id UNINDEXED, fragment_id UNINDEXED, fragment_ordinal UNINDEXED, content, tokenize='porter unicode61'
);
"""
_UNITS = """
CREATE TABLE unit_texts (unit_hash TEXT PRIMARY KEY, kind TEXT NOT NULL, text TEXT NOT NULL);
CREATE VIRTUAL TABLE units_fts USING fts5(unit_hash UNINDEXED, text, tokenize='porter unicode61');
CREATE TABLE entry_units (
  entry_id INTEGER NOT NULL, ordinal INTEGER NOT NULL, fragment_id TEXT, unit_hash TEXT NOT NULL,
  PRIMARY KEY (entry_id, ordinal)
);
"""


def build(path: Path, layout: str, version: str) -> Path:
    """Write an index of a layout holding `ASSETS`."""
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript(_DOCUMENTS)
        meta = [("version", version), ("builtAt", "2026-09-01T00:00:00.000Z")]
        db.executemany("INSERT INTO index_meta VALUES (?, ?)", meta)
        if layout != "units":
            db.executescript(_FTS.format(options="content=''," if layout == "contentless" else ""))
        if layout == "fragments":
            db.executescript(_FRAGMENTS)
        if layout == "units":
            db.executescript(_UNITS)
        for number, (ref, asset) in enumerate(ASSETS.items(), 1):
            db.execute(
                "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
                (number, f"bench//{ref}", ref, asset["type"], json.dumps(asset)),
            )
            _index(db, layout, number, ref, asset)
    return path


def _index(db: sqlite3.Connection, layout: str, number: int, ref: str, asset: Mapping[str, object]) -> None:
    name, description = str(asset["name"]).replace("-", " "), str(asset["description"]).lower()
    tags = " ".join(map(str, asset["tags"])) if isinstance(asset["tags"], list) else ""
    body = BODIES.get(ref, "")
    if layout == "units":
        for ordinal, (kind, text) in enumerate((("card", f"{name} {description} {tags}"), ("fragment", body))):
            if text:
                digest = f"{number}-{ordinal}"
                db.execute("INSERT INTO unit_texts VALUES (?, ?, ?)", (digest, kind, text))
                db.execute("INSERT INTO units_fts VALUES (?, ?)", (digest, text))
                fragment = None if kind == "card" else "f1"
                db.execute("INSERT INTO entry_units VALUES (?, ?, ?, ?)", (number, ordinal, fragment, digest))
        return
    db.execute(
        "INSERT INTO entries_fts (rowid, entry_id, name, description, tags, hints, content) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (number, number, name, description, tags, "", ""),
    )
    if layout == "fragments" and body:
        db.execute("INSERT INTO entry_fragments_fts VALUES (?, 'f1', 0, ?)", (number, body))
