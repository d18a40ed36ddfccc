"""Values of a foreign table: taken for what they are, with a problem where one does not fit."""

import math
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from akm_harbor.json_toml import parse_json
from akm_harbor.tables.problems import Problems

type Row = dict[str, Any]


def rows(db: sqlite3.Connection, table: str, where: str = "1") -> list[Row]:
    """All rows of a table with whatever columns it has; none when there is no such table."""
    columns = [str(row[1]) for row in db.execute(f"PRAGMA table_info({table})")]
    if not columns:
        return []
    order = " ORDER BY id" if "id" in columns else ""
    found = db.execute(f"SELECT * FROM {table} WHERE {where}{order}")  # noqa: S608  (names are ours)
    return [dict(zip(columns, values, strict=True)) for values in found]


def document(value: object, path: Path, where: str, problems: Problems) -> dict[str, Any]:
    """A JSON object column. NULL, '' and '{}' are allowed: akm empties old ones to save room."""
    if value is None or value == "":
        return {}
    try:
        found = parse_json(str(value))
    except ValueError:
        problems.add(path, "invalid-json", where, "row kept, its document left out")
        return {}
    return found if isinstance(found, dict) else {}


def time(value: object, path: Path, where: str, problems: Problems) -> datetime | None:
    """A time in either of akm's spellings; one without a zone is UTC."""
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        problems.add(path, "invalid-time", f"{where}: {str(value)[:40]!r}", "row kept, time left out")
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def text(value: object) -> str | None:
    """A text, or None."""
    return value if isinstance(value, str) else None


def integer(value: object) -> int | None:
    """A whole number a 64-bit column can hold, or None."""
    if not isinstance(value, int | float) or not math.isfinite(value) or abs(value) >= 2**62:
        return None
    return int(value)


def real(value: object) -> float | None:
    """A number, or None."""
    return float(value) if isinstance(value, int | float) else None


def flag(value: object) -> bool | None:
    """A 0 or 1, or None."""
    return bool(value) if isinstance(value, int) else None
