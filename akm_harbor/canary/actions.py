"""Improve runs and accepted changes: how many, when, and where akm recorded them."""

import sqlite3
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from akm_harbor.canary import fields
from akm_harbor.canary.fields import Row
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import open_readonly

_COUNTS = {
    "planned_count": "plannedCount",
    "actions_count": "actionsCount",
    "accepted_count": "acceptedCount",
    "rejected_count": "rejectedCount",
    "skipped_count": "skippedCount",
    "error_count": "errorCount",
}


def run_row(row: Row, label: str, path: Path, problems: Problems) -> Row:
    """One row of `canary_runs`."""
    where = f"improve_runs {row.get('id')}"
    counts = fields.document(row.get("metrics_json"), path, where, problems)
    made: Row = {
        "store": label,
        "id": fields.text(row.get("id")) or "",
        "started_at": fields.time(row.get("started_at"), path, where, problems),
        "completed_at": fields.time(row.get("completed_at"), path, where, problems)
        if row.get("completed_at")
        else None,
        "dry_run": fields.flag(row.get("dry_run")),
        "profile": fields.text(row.get("strategy")) or fields.text(row.get("profile")),
        "scope_mode": fields.text(row.get("scope_mode")),
        "ok": fields.flag(row.get("ok")),
    }
    made.update({name: fields.integer(counts.get(key)) for name, key in _COUNTS.items()})
    return made


@dataclass(frozen=True, slots=True)
class Accepted:
    """Accepted changes with their times, from the best source that has any."""

    source: str
    at: tuple[tuple[datetime, int], ...]


def read_accepted(path: Path, problems: Problems) -> Accepted | None:
    """Accepted changes of a state.db, for a snapshot of the index beside it; None when it records none.

    Raises:
        StoreError: the database cannot be read.
    """
    with open_readonly(path) as db:
        runs = [run_row(row, "", path, problems) for row in fields.rows(db, "improve_runs")]
        return accepted_changes(db, runs, path, problems)


def accepted_changes(db: sqlite3.Connection, runs: Iterable[Row], path: Path, problems: Problems) -> Accepted | None:
    """The count akm kept for each run, else accepted proposals, else the newer ledger."""
    counted = [
        (run["completed_at"] or run["started_at"], run["accepted_count"])
        for run in runs
        if run["accepted_count"] is not None and not run["dry_run"] and (run["completed_at"] or run["started_at"])
    ]
    if any(count for _, count in counted):
        return Accepted("improve_runs", tuple(sorted(counted)))
    for table, column, where in (
        ("proposals", "updated_at", "status = 'accepted'"),
        ("improve_ledger", "last_attempt_at", "outcome = 'accepted'"),
    ):
        times = [fields.time(row.get(column), path, table, problems) for row in fields.rows(db, table, where)]
        found = sorted((at, 1) for at in times if at is not None)
        if found:
            return Accepted(table, tuple(found))
    return Accepted("improve_runs", tuple(sorted(counted))) if counted else None


def accepted_between(accepted: Accepted, after: datetime | None, until: datetime) -> int:
    """Accepted changes in a half-open interval, the later end included."""
    return sum(count for at, count in accepted.at if (after is None or at > after) and at <= until)


def count_accepted(cycles: list[Row], runs: Iterable[Row], accepted: Accepted | None) -> None:
    """Give every cycle the changes accepted in its run, else since the cycle before it."""
    if accepted is None:
        return
    by_run = {run["id"]: run["accepted_count"] for run in runs if run["accepted_count"] is not None}
    before: datetime | None = None
    for cycle in sorted((c for c in cycles if c["ts"] is not None), key=lambda c: c["ts"]):
        own = by_run.get(cycle["run_id"]) if accepted.source == "improve_runs" else None
        cycle["accepted_measured"] = own if own is not None else accepted_between(accepted, before, cycle["ts"])
        cycle["accepted_source"] = accepted.source
        before = cycle["ts"]


def by_day(accepted: Accepted | None, label: str) -> list[Row]:
    """The `canary_actions` rows of one store."""
    if accepted is None:
        return []
    days: Counter[datetime] = Counter()
    for at, count in accepted.at:
        days[at.replace(hour=0, minute=0, second=0, microsecond=0)] += count
    return [{"store": label, "day": day, "source": accepted.source, "accepted": n} for day, n in sorted(days.items())]
