"""Recordings of a real akm 0.9.0, unpacked, and small helpers."""

import hashlib
import json
import lzma
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

DATA = Path(__file__).resolve().parent.parent / "data" / "canary"

NUMBERS = (
    "mean_recall",
    "mean_ndcg",
    "mean_mrr",
    "canary_ranks_json",
    "store_total",
    "store_by_type_json",
    "distinct_content_ratio",
    "mean_bigram_diversity",
    "over_generation_count",
)
"""The columns of a detector row that an index and a canary set determine."""


def unpack(name: str, target: Path) -> Path:
    """Unpack one recorded database, e.g. `collapse/index.db`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(lzma.decompress((DATA / f"{name}.xz").read_bytes()))
    return target


def recorded(name: str) -> Any:
    """A recorded JSON file."""
    return json.loads((DATA / name).read_bytes())


def digests(folder: Path) -> dict[str, str]:
    """sha256 of every file in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def execute(path: Path, *statements: str, rows: Iterable[tuple[str, Iterable[tuple[Any, ...]]]] = ()) -> Path:
    """Run statements, then `executemany` pairs, on a database."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as db, db:
        for statement in statements:
            db.executescript(statement)
        for sql, values in rows:
            db.executemany(sql, values)
    return path
