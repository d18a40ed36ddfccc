"""Our own history of a store: a dataset beside it, appended to and replaced in one step."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.canary.actions import accepted_between, read_accepted
from akm_harbor.canary.columns import CYCLES, QUERIES, RANKS
from akm_harbor.canary.locate import StoreFiles
from akm_harbor.canary.lock import locked
from akm_harbor.canary.mint import DEFAULT_COUNT, Canary, CanarySet, mint, mint_as_akm
from akm_harbor.canary.refs import type_of
from akm_harbor.canary.score import DEFAULT_K
from akm_harbor.canary.snapshot import (
    DEFAULT_MAX_GENERATION,
    Reading,
    cycle_row,
    rank_rows,
    read_index,
    read_salience,
)
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.columns import Table
from akm_harbor.tables.dataset import read_manifest, read_table, replace_dataset
from akm_harbor.tables.problems import PROBLEMS, Problems
from akm_harbor.tables.redact import redact_text
from akm_harbor.tables.sqlite import StoreError

DEFAULT_RETENTION_DAYS = 365

type Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """How a store is asked. Kept in the history's manifest, so that every snapshot asks alike.

    Attributes:
        k: K of the top K.
        max_generation: merges allowed before an asset counts as over-generated.
        retention_days: cycles older than this are dropped on the next append; canaries never.
    """

    k: int = DEFAULT_K
    max_generation: int = DEFAULT_MAX_GENERATION
    retention_days: int = DEFAULT_RETENTION_DAYS


@dataclass(slots=True)
class Kept:
    """The history as it is on disk.

    Attributes:
        settings: as last written.
        cycles, queries, ranks: rows, oldest first.
    """

    settings: Settings = field(default_factory=Settings)
    cycles: list[Row] = field(default_factory=list)
    queries: list[Row] = field(default_factory=list)
    ranks: list[Row] = field(default_factory=list)

    def active(self) -> CanarySet | None:
        """The newest active set; akm's own rule when an interrupted refresh left two."""
        rows = [row for row in self.queries if row["active"]]
        if not rows:
            return None
        newest = max(rows, key=lambda row: (row["created_at"], row["id"]))["canary_set_id"]
        mine = sorted((row for row in rows if row["canary_set_id"] == newest), key=lambda row: row["id"])
        canaries = tuple(Canary(row["id"], row["anchor_ref"], row["query"]) for row in mine)
        return CanarySet(newest, mine[0]["created_at"], mine[0]["source"] or "auto", canaries)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a snapshot did.

    Attributes:
        cycle: the row of this index build.
        new: false when this build was already in the history.
        reading: what was read.
        dropped: cycles dropped for their age.
    """

    cycle: Row
    new: bool
    reading: Reading
    dropped: int


def load(history: Path) -> Kept:
    """Read a history; an absent one is an empty one.

    Raises:
        AkmHarborError: there is something else in its place, or it cannot be read.
    """
    if not history.exists():
        return Kept()
    manifest = read_manifest(history)
    settings = manifest.get("canary_settings")
    if not isinstance(settings, dict):
        raise AkmHarborError(
            "is a dataset, but not a snapshot history", path=history, hint="Name another folder with --history."
        )
    known = {name: int(settings[name]) for name in Settings.__slots__ if isinstance(settings.get(name), int)}
    return Kept(
        Settings(**known),
        read_table(history, CYCLES).to_pylist(),
        read_table(history, QUERIES).to_pylist(),
        read_table(history, RANKS).to_pylist(),
    )


def mint_set(
    files: StoreFiles,
    history: Path,
    problems: Problems,
    *,
    count: int = DEFAULT_COUNT,
    as_akm: bool = False,
    replace: bool = False,
    settings: Settings | None = None,
    now: datetime | None = None,
) -> CanarySet:
    """Mint a set and keep it; with `replace`, retire the one in use first.

    Nothing is retired when nothing can be minted: an empty index must not cost the baseline.

    Raises:
        AkmHarborError: there is a set already (and no `replace`), or nothing to mint.
        StoreError: the index cannot be read.
    """
    at = now or datetime.now(UTC)
    index = _index_of(files)
    with locked(history):
        kept = load(history)
        if kept.active() is not None and not replace:
            raise AkmHarborError(
                "already has a canary set, and canaries stay as they are",
                path=history,
                hint="`canary refresh` retires it and mints a new one; rows of the two are never compared.",
            )
        reading = read_index(index)
        salience = read_salience(files.state, problems)
        first = max((row["id"] for row in kept.queries), default=0) + 1
        if as_akm:
            made = mint_as_akm(reading.entries, at=at, count=count, salience=salience, first_id=first)
        else:
            made = mint(
                reading.entries,
                reading.index.layout,
                at=at,
                count=count,
                salience=salience,
                utility=reading.utility,
                first_id=first,
            )
        made = _without_secrets(made, index, problems)
        if made is None:
            raise AkmHarborError(
                "holds no memory, lesson or knowledge to make a canary from",
                path=index,
                hint="Run `akm index` first." if not reading.entries else "The set in use, if any, was kept.",
            )
        for row in kept.queries:
            row["active"] = 0
        kept.queries += [_query_row(files.label, made, canary) for canary in made.canaries]
        kept.settings = settings or kept.settings
        _write(history, files.label, kept, problems)
    return made


def take_snapshot(
    files: StoreFiles, history: Path, problems: Problems, *, now: datetime | None = None, wait_seconds: float = 3.0
) -> Taken:
    """Snapshot the store into its history; the same index build twice makes one row.

    Raises:
        AkmHarborError: no canary set yet.
        StoreError: the index cannot be read.
    """
    at = now or datetime.now(UTC)
    index = _index_of(files)
    with locked(history):
        kept = load(history)
        active = kept.active()
        if active is None:
            raise AkmHarborError("has no canary set yet", path=history, hint="First: `akm-harbor canary mint STORE`.")
        settings = kept.settings
        reading = read_index(
            index, active.canaries, k=settings.k, max_generation=settings.max_generation, wait_seconds=wait_seconds
        )
        if reading.unreadable:
            detail = f"{reading.unreadable} rows hold no readable document"
            problems.add(index, "documents-unreadable", detail, "left out, as akm leaves them out")
        mine = [row for row in kept.cycles if row["canary_set_id"] == active.id]
        for row in mine:
            if row["build_id"] == reading.build_id:
                return Taken(row, new=False, reading=reading, dropped=0)
        accepted = _accepted_since(files.state, mine[-1]["ts"] if mine else None, at, problems)
        cycle = cycle_row(
            files.label,
            reading,
            active.id,
            at=at,
            row_id=max((row["id"] for row in kept.cycles), default=0) + 1,
            k=settings.k,
            max_generation=settings.max_generation,
            accepted=accepted,
        )
        kept.cycles.append(cycle)
        kept.ranks += rank_rows(cycle, reading.answers)
        dropped = _retire(kept, at)
        _write(history, files.label, kept, problems)
    return Taken(cycle, new=True, reading=reading, dropped=dropped)


def _index_of(files: StoreFiles) -> Path:
    if files.index is None:
        raise AkmHarborError("holds no index.db", path=files.folder, hint="Run `akm index` first.")
    return files.index


def _accepted_since(
    state: Path | None, after: datetime | None, until: datetime, problems: Problems
) -> tuple[str, int] | None:
    """Accepted changes since the row before; unknown (None) without a state.db or for the first row."""
    if state is None or after is None:
        return None
    try:
        accepted = read_accepted(state, problems)
    except StoreError as error:
        problems.add(state, error.kind, error.message, "accepted changes left unknown")
        return None
    return None if accepted is None else (accepted.source, accepted_between(accepted, after, until))


def _without_secrets(made: CanarySet | None, index: Path, problems: Problems) -> CanarySet | None:
    """A question is stored for good and shown to people: one that looks like a secret is not kept."""
    if made is None:
        return None
    clean = tuple(canary for canary in made.canaries if redact_text(canary.query) == canary.query)
    for _ in range(len(made.canaries) - len(clean)):
        problems.add(index, "secret-in-canary", "a description or tag looks like a secret", "canary not minted")
    return CanarySet(made.id, made.minted_at, made.source, clean) if clean else None


def _query_row(label: str, made: CanarySet, canary: Canary) -> Row:
    return {
        "store": label,
        "id": canary.id,
        "canary_set_id": made.id,
        "anchor_ref": canary.anchor_ref,
        "query": canary.query,
        "source": made.source,
        "active": 1,
        "created_at": made.minted_at,
        "anchor_type": type_of(canary.anchor_ref),
    }


def _retire(kept: Kept, now: datetime) -> int:
    """Drop cycles past their time, with their ranks. A clock set back drops nothing."""
    cutoff = now - timedelta(days=kept.settings.retention_days)
    old = {row["run_id"] for row in kept.cycles if row["ts"] < cutoff}
    if old:
        kept.cycles = [row for row in kept.cycles if row["run_id"] not in old or row["ts"] >= cutoff]
        kept.ranks = [row for row in kept.ranks if row["run_id"] not in old or row["ts"] >= cutoff]
    return len(old)


def _write(history: Path, label: str, kept: Kept, problems: Problems) -> None:
    tables: tuple[tuple[Table, Sequence[Mapping[str, Any]]], ...] = (
        (CYCLES, kept.cycles),
        (QUERIES, kept.queries),
        (RANKS, kept.ranks),
    )
    with replace_dataset(history) as dataset:
        for table, rows in tables:
            dataset.write(table, table.from_rows(rows))
        dataset.write(PROBLEMS, problems.table())
        dataset.write_manifest(
            {
                "kind": "canary-snapshots",
                "akm_harbor": akm_harbor.__version__,
                "store": label,
                "canary_settings": {name: getattr(kept.settings, name) for name in Settings.__slots__},
            }
        )
