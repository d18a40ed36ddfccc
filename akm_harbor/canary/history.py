"""Read the detector history that akm left in its state databases.

akm kept one row a cycle from migration 016 to 028, which dropped the tables and left a copy
of the database beside it. Columns and spellings moved meanwhile, so nothing is required
beyond what makes a row a row; what does not fit becomes a problem beside it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from akm_harbor.canary import fields
from akm_harbor.canary.actions import accepted_changes, by_day, count_accepted, run_row
from akm_harbor.canary.alerts.rows import read_ranks
from akm_harbor.canary.fields import Row
from akm_harbor.canary.locate import StoreFiles
from akm_harbor.canary.refs import reduced, type_of
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.redact import redact_text
from akm_harbor.tables.sqlite import StoreError, StoreSchemaError, open_readonly

_REMOVED_IN = "028-improve-ledger"
_ADDED_IN = "016-collapse-churn-detector"


@dataclass(slots=True)
class History:
    """Rows of every canary table, by table name."""

    cycles: list[Row] = field(default_factory=list)
    queries: list[Row] = field(default_factory=list)
    ranks: list[Row] = field(default_factory=list)
    runs: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    actions: list[Row] = field(default_factory=list)

    def extend(self, other: "History") -> None:
        """Add another store's rows."""
        self.cycles += other.cycles
        self.queries += other.queries
        self.ranks += other.ranks
        self.runs += other.runs
        self.events += other.events
        self.actions += other.actions


def read_history(files: StoreFiles, label: str, problems: Problems) -> History:
    """Read one store: its state.db and every backup of it, each row once.

    Raises:
        StoreError: neither the database nor any backup could be read.
    """
    whole = History()
    sources = [(path, "backup") for path in files.backups]
    if files.state is not None:
        sources.append((files.state, "state.db"))
    failed: list[StoreError] = []
    read = 0
    for path, source in sources:
        try:
            found = _read_file(path, source, label, problems)
        except StoreError as error:
            problems.add(path, error.kind, error.message, "file left out")
            failed.append(error)
        else:
            read += 1
            whole.extend(found)
    if failed and not read:
        raise failed[-1]
    if read and not whole.cycles:
        _explain_absence(files, problems)
    return _once(whole)


def _read_file(path: Path, source: str, label: str, problems: Problems) -> History:
    with open_readonly(path) as db:
        tables = {str(row[0]) for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables & {"events", "improve_runs", "improve_cycle_metrics", "proposals", "improve_ledger"}:
            raise StoreSchemaError(
                f"is not akm's state.db (tables: {', '.join(sorted(tables)[:20]) or 'none'})",
                path=path,
                hint="The history is in state.db; index.db is what `canary snapshot` reads.",
            )
        history = History(
            cycles=[_cycle(row, source, label, path, problems) for row in fields.rows(db, "improve_cycle_metrics")],
            queries=[_query(row, label, path, problems) for row in fields.rows(db, "canary_queries")],
            runs=[run_row(row, label, path, problems) for row in fields.rows(db, "improve_runs")],
            events=[
                _event(row, label, path, problems)
                for row in fields.rows(db, "events", "event_type = 'collapse_detector_alert'")
            ],
        )
        accepted = accepted_changes(db, history.runs, path, problems)
    anchors = {row["id"]: reduced(row["anchor_ref"]) for row in history.queries if row["anchor_ref"]}
    for cycle in history.cycles:
        history.ranks += _ranks(cycle, anchors, path, problems)
    history.actions = by_day(accepted, label)
    count_accepted(history.cycles, history.runs, accepted)
    return history


def _cycle(row: Row, source: str, label: str, path: Path, problems: Problems) -> Row:
    where = f"improve_cycle_metrics id {row.get('id')}"
    made: Row = {
        "store": label,
        "source": source,
        "id": fields.integer(row.get("id")),
        "run_id": fields.text(row.get("run_id")) or "",
        "ts": fields.time(row.get("ts"), path, where, problems),
        "pass": fields.text(row.get("pass")),
        "canary_set_id": fields.text(row.get("canary_set_id")) or "",
        "canary_ranks_json": fields.text(row.get("canary_ranks_json")),
        "store_by_type_json": fields.text(row.get("store_by_type_json")),
        "alerts_json": fields.text(row.get("alerts_json")),
    }
    for name in ("mean_recall", "mean_ndcg", "mean_mrr", "distinct_content_ratio", "mean_bigram_diversity"):
        made[name] = fields.real(row.get(name))
    for name in ("store_total", "over_generation_count", "accepted_actions", "merge_floor_violations"):
        made[name] = fields.integer(row.get(name))
    if made["distinct_content_ratio"] is not None and made["store_total"] is not None:
        made["distinct_contents"] = round(made["distinct_content_ratio"] * made["store_total"])
    by_type = fields.document(row.get("store_by_type_json"), path, where, problems)
    made["store_entries"] = sum(value for value in by_type.values() if isinstance(value, int)) if by_type else None
    return made


def _ranks(cycle: Row, anchors: Mapping[int, str], path: Path, problems: Problems) -> list[Row]:
    """The ranks of one cycle; a row without readable ranks keeps its means and loses nothing else."""
    pairs = read_ranks(cycle["canary_ranks_json"])
    if pairs is None:
        problems.add(path, "canary-ranks-unreadable", f"cycle {cycle['run_id']}", "row kept, without its canaries")
        return []
    cycle["n_canaries"] = len(pairs)
    cycle["n_hits"] = sum(rank >= 0 for _, rank in pairs)
    return [
        {
            "store": cycle["store"],
            "run_id": cycle["run_id"],
            "ts": cycle["ts"],
            "canary_set_id": cycle["canary_set_id"],
            "canary_id": canary,
            "anchor_ref": anchors.get(canary),
            "rank": rank,
            "hit": rank >= 0,
        }
        for canary, rank in pairs
    ]


def _query(row: Row, label: str, path: Path, problems: Problems) -> Row:
    anchor = fields.text(row.get("anchor_ref"))
    query = fields.text(row.get("query"))
    return {
        "store": label,
        "id": fields.integer(row.get("id")),
        "canary_set_id": fields.text(row.get("canary_set_id")) or "",
        "anchor_ref": anchor,
        "query": redact_text(query) if query is not None else None,
        "source": fields.text(row.get("source")),
        "active": fields.integer(row.get("active")),
        "created_at": fields.time(row.get("created_at"), path, f"canary_queries id {row.get('id')}", problems),
        "anchor_type": type_of(anchor) if anchor else None,
    }


def _event(row: Row, label: str, path: Path, problems: Problems) -> Row:
    where = f"events id {row.get('id')}"
    metadata = fields.document(row.get("metadata_json"), path, where, problems)
    detail = metadata.get("detail")
    return {
        "store": label,
        "id": fields.integer(row.get("id")),
        "ts": fields.time(row.get("ts"), path, where, problems),
        "kind": fields.text(metadata.get("kind")),
        "detail": redact_text(detail) if isinstance(detail, str) else None,
        "metrics_json": json.dumps(metadata["metrics"], sort_keys=True) if "metrics" in metadata else None,
        "canary_set_id": fields.text(metadata.get("canarySetId")),
        "run_id": fields.text(metadata.get("runId")),
    }


# --- one row once, and why there may be none ---------------------------------------------


def _once(history: History) -> History:
    """A backup and the database it was copied from hold the same rows: keep the later source's."""
    return History(
        cycles=_unique(history.cycles, "canary_set_id", "run_id", "ts", "id"),
        queries=_unique(history.queries, "canary_set_id", "id"),
        ranks=_unique(history.ranks, "canary_set_id", "run_id", "ts", "canary_id"),
        runs=_unique(history.runs, "id"),
        events=_unique(history.events, "id", "ts", "kind"),
        actions=_unique(history.actions, "day", "source"),
    )


def _unique(rows: list[Row], *names: str) -> list[Row]:
    return list({tuple(row[name] for name in names): row for row in rows}.values())


def _explain_absence(files: StoreFiles, problems: Problems) -> None:
    """Say why a readable state.db holds no cycle: too old, too new, or never ran."""
    path = files.state or files.backups[-1]
    with open_readonly(path, check=False) as db:
        ledger = [str(row.get("id")) for row in fields.rows(db, "schema_migrations")]
        has_table = bool(db.execute("PRAGMA table_info(improve_cycle_metrics)").fetchall())
    newest = max(ledger, default="none")
    if has_table:
        detail = "akm's detector never wrote a cycle here (it needs a consolidation that processed memories)"
        problems.add(path, "no-cycles", detail, "use `canary snapshot`, which needs no akm run")
    elif newest >= _REMOVED_IN:
        detail = (
            f"migration {_REMOVED_IN} dropped the detector's tables (newest migration {newest}), no backup beside it"
        )
        problems.add(
            path, "detector-removed", detail, "look for state.db.pre-*.bak in backups; go on with `canary snapshot`"
        )
    else:
        detail = f"older than migration {_ADDED_IN} (newest migration {newest})"
        problems.add(path, "detector-not-yet", detail, "use `canary snapshot`")
