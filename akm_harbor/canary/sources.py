"""Gather canary tables from wherever they are: state.db files, store folders, snapshot histories, datasets."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.canary.alerts.rows import read_ranks
from akm_harbor.canary.columns import ACTIONS, CYCLES, DETECTOR_EVENTS, QUERIES, RANKS, RUNS, TABLES
from akm_harbor.canary.history import History, read_history
from akm_harbor.canary.locate import StoreFiles, labels, locate
from akm_harbor.canary.mint import Canary
from akm_harbor.canary.snapshot import rank_rows, read_index
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.columns import Table
from akm_harbor.tables.dataset import read_table, replace_dataset
from akm_harbor.tables.layout import MANIFEST
from akm_harbor.tables.problems import PROBLEMS, Problems
from akm_harbor.tables.sqlite import StoreError

type Row = dict[str, Any]


@dataclass(slots=True)
class Gathered:
    """Rows by table name, and what could not be read.

    Attributes:
        rows: every canary table, by name.
        problems: found while reading, and those the datasets carry.
        sources: what was read, in the order given.
    """

    rows: dict[str, list[Row]] = field(default_factory=lambda: {table.name: [] for table in TABLES})
    problems: Problems = field(default_factory=Problems)
    sources: list[str] = field(default_factory=list)

    def add(self, history: History) -> None:
        """Take in one store's history."""
        for table, rows in _by_table(history):
            self.rows[table.name] += rows


def _by_table(history: History) -> tuple[tuple[Table, list[Row]], ...]:
    return (
        (CYCLES, history.cycles),
        (QUERIES, history.queries),
        (RANKS, history.ranks),
        (RUNS, history.runs),
        (DETECTOR_EVENTS, history.events),
        (ACTIONS, history.actions),
    )


def is_dataset(path: Path) -> bool:
    """Whether a path is a dataset of ours and not a store of akm's."""
    return (path / MANIFEST).is_file()


def gather(paths: Sequence[Path]) -> Gathered:
    """Read every source; a store's own snapshots, beside it, come along.

    Raises:
        AkmHarborError: nothing could be read at all, or a place that holds nothing of ours or akm's.
    """
    found = Gathered(sources=[path.name for path in paths])
    stores = [locate(path) for path in paths if not is_dataset(path)]
    names = iter(labels([files.folder for files in stores]))
    located = iter(stores)
    failure: AkmHarborError | None = None
    read = 0
    for path in paths:
        try:
            if is_dataset(path):
                _read_dataset(path, found)
            else:
                _read_store(next(located), next(names), found)
            read += 1
        except StoreError as error:
            found.problems.add(error.path or path, error.kind, error.message, "source left out")
            failure = error
    if failure is not None and not read:
        raise failure
    return found


def _read_dataset(path: Path, found: Gathered) -> None:
    if not any((path / table.name).is_dir() for table in TABLES):
        raise AkmHarborError(
            "is a dataset without a canary table", path=path, hint="Give a store, its state.db, or a snapshot history."
        )
    for table in TABLES:
        found.rows[table.name] += read_table(path, table).to_pylist()
    for row in read_table(path, PROBLEMS).to_pylist():
        found.problems.add(row["path"] or "", row["kind"] or "", row["detail"] or "", row["action"] or "")


def _read_store(files: StoreFiles, label: str, found: Gathered) -> None:
    """The store's own history, and the snapshots beside it under the same label."""
    has_snapshots = is_dataset(files.history)
    if files.state is not None or files.backups:
        quiet = Problems() if has_snapshots else found.problems  # an absent akm history is no problem then
        try:
            history = read_history(files, label, quiet)
        except StoreError:
            if not has_snapshots:
                raise
        else:
            _name_what_answers_now(files, history)
            found.add(history)
    elif not has_snapshots:
        raise AkmHarborError(
            "has an index and no history yet",
            path=files.folder,
            hint="`akm-harbor canary mint`, then `canary snapshot` after each consolidation.",
        )
    if has_snapshots:
        for table in (CYCLES, QUERIES, RANKS):
            rows = read_table(files.history, table).to_pylist()
            found.rows[table.name] += [{**row, "store": label} for row in rows]


def _name_what_answers_now(files: StoreFiles, history: History) -> None:
    """Akm stores ranks only. If the index is still the one of the newest cycle, it can say more.

    It is taken to be that one only when every canary comes out at the stored rank.
    """
    timed = [row for row in history.cycles if row["ts"] is not None]
    if files.index is None or not timed:
        return
    newest = max(timed, key=lambda row: (row["ts"], row["id"] or 0))
    asked = [row for row in history.queries if row["canary_set_id"] == newest["canary_set_id"]]
    canaries = [Canary(row["id"], row["anchor_ref"] or "", row["query"] or "") for row in asked]
    try:
        answers = read_index(files.index, canaries).answers
    except StoreError:
        return
    if [(a.canary.id, a.rank) for a in answers] != read_ranks(newest["canary_ranks_json"]):
        return
    told = {row["canary_id"]: row for row in rank_rows(newest, answers)}
    for row in history.ranks:
        if row["run_id"] == newest["run_id"] and row["ts"] == newest["ts"]:
            row.update(told[row["canary_id"]])


def write_dataset(found: Gathered, path: Path, version: str) -> None:
    """Write what was gathered as one dataset.

    Raises:
        AkmHarborError: the place cannot be written, or holds something else.
    """
    with replace_dataset(path) as dataset:
        for table in TABLES:
            dataset.write(table, table.from_rows(found.rows[table.name]))
        dataset.write(PROBLEMS, found.problems.table())
        dataset.write_manifest(
            {
                "kind": "canary-history",
                "akm_harbor": version,
                "sources": found.sources,
                "stores": sorted({row["store"] for row in found.rows[CYCLES.name]}),
                "cycles": len(found.rows[CYCLES.name]),
            }
        )
