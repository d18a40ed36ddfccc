"""Take one snapshot of a live store: ask the canaries, measure the shape, one row a build.

Works without akm. The store is read from a private copy, so a writer may be at it.
"""

import hashlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from akm_harbor.canary.layout import Entry, Index, detect, read_entries, read_utility
from akm_harbor.canary.mint import Canary
from akm_harbor.canary.refs import LEARNING_TYPES, reduced, type_of
from akm_harbor.canary.score import DEFAULT_K, Answer, ask, score
from akm_harbor.canary.shape import Shape, store_shape
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import StoreSchemaError, open_readonly

DEFAULT_MAX_GENERATION = 2


@dataclass(frozen=True, slots=True)
class Reading:
    """Everything a snapshot or a mint needs from one index.

    Attributes:
        index: layout, version, build time.
        build_id: digest of version, build time and every document: one build, one id.
        entries: every readable asset.
        unreadable: rows whose document could not be read, left out as akm leaves them out.
        shape: store shape.
        utility: utility by row id.
        answers: one a canary, in the order asked.
    """

    index: Index
    build_id: str
    entries: tuple[Entry, ...]
    unreadable: int
    shape: Shape
    utility: Mapping[int, float]
    answers: tuple[Answer, ...]


def read_index(
    path: Path,
    canaries: Sequence[Canary] = (),
    *,
    k: int = DEFAULT_K,
    max_generation: int = DEFAULT_MAX_GENERATION,
    wait_seconds: float = 3.0,
) -> Reading:
    """Read an index and ask the canaries, all from one consistent copy.

    Raises:
        StoreError: it cannot be read; UnknownLayoutError if its layout is not known.
    """
    try:
        with open_readonly(path, wait_seconds=wait_seconds) as db:
            index = detect(db)
            rows = list(read_entries(db, index))
            entries = tuple(row for row in rows if isinstance(row, Entry))
            return Reading(
                index=index,
                build_id=_build_id(db, index),
                entries=entries,
                unreadable=len(rows) - len(entries),
                shape=store_shape(entries, max_generation),
                utility=read_utility(db),
                answers=tuple(ask(db, index, entries, canaries, k)),
            )
    except StoreSchemaError as error:
        if error.path is None:
            error.path = path
        raise


def _build_id(db: sqlite3.Connection, index: Index) -> str:
    """`remember` changes rows without a new build time, so the documents are part of the identity."""
    digest = hashlib.sha256(f"{index.layout.value}\n{index.version}\n{index.built_at}\n".encode())
    column = "entry_json" if index.layout.value == "entry-json" else "document_json"
    for row_id, raw in db.execute(f"SELECT id, CAST({column} AS BLOB) FROM entries ORDER BY id"):  # noqa: S608
        digest.update(b"%d:" % row_id + (raw or b""))
    return digest.hexdigest()[:24]


def read_salience(state: Path | None, problems: Problems) -> dict[str, float]:
    """Salience by reference as stored; empty where it cannot be read, which minting survives."""
    if state is None:
        return {}
    try:
        with open_readonly(state) as db:
            if not db.execute("PRAGMA table_info(asset_salience)").fetchall():
                return {}
            rows = db.execute("SELECT asset_ref, rank_score FROM asset_salience").fetchall()
    except AkmHarborError as error:
        problems.add(state, "salience-unreadable", error.message, "minted by utility and name instead")
        return {}
    return {str(ref): float(value) for ref, value in rows if isinstance(value, int | float)}


def cycle_row(
    label: str,
    reading: Reading,
    set_id: str,
    *,
    at: datetime,
    row_id: int,
    k: int = DEFAULT_K,
    max_generation: int = DEFAULT_MAX_GENERATION,
    accepted: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """The `canary_cycles` row of a snapshot.

    Args:
        label: the store's label.
        reading: what was read, with the answers.
        set_id: the set that was asked.
        at: now, UTC.
        row_id: number of the row in the history.
        k: K of the top K.
        max_generation: as used for the shape.
        accepted: where accepted changes are recorded, and how many since the row before.
    """
    ranks = [answer.rank for answer in reading.answers]
    means = score(ranks)
    pairs = [[answer.canary.id, answer.rank] for answer in reading.answers]
    return {
        "store": label,
        "source": "snapshot",
        "id": row_id,
        "run_id": f"snapshot-{reading.build_id}",
        "ts": at,
        "pass": "snapshot",
        "canary_set_id": set_id,
        "mean_recall": means.recall,
        "mean_ndcg": means.ndcg,
        "mean_mrr": means.mrr,
        "canary_ranks_json": json.dumps(pairs, separators=(",", ":")),
        "store_total": reading.shape.total,
        "store_by_type_json": json.dumps(reading.shape.by_type, separators=(",", ":")),
        "distinct_content_ratio": reading.shape.ratio,
        "mean_bigram_diversity": reading.shape.diversity,
        "over_generation_count": reading.shape.over_generation,
        "accepted_actions": accepted[1] if accepted else None,
        "merge_floor_violations": None,
        "alerts_json": None,
        "n_canaries": len(ranks),
        "n_hits": sum(rank >= 0 for rank in ranks),
        "accepted_measured": accepted[1] if accepted else None,
        "accepted_source": accepted[0] if accepted else None,
        "distinct_contents": reading.shape.distinct,
        "store_entries": sum(reading.shape.by_type.values()),
        "k": k,
        "max_generation": max_generation,
        "layout": reading.index.layout.value,
        "index_version": reading.index.version,
        "index_built_at": _time(reading.index.built_at),
        "build_id": reading.build_id,
    }


def rank_rows(cycle: Mapping[str, Any], answers: Sequence[Answer]) -> list[dict[str, Any]]:
    """The `canary_ranks` rows of a snapshot."""
    return [
        {
            "store": cycle["store"],
            "run_id": cycle["run_id"],
            "ts": cycle["ts"],
            "canary_set_id": cycle["canary_set_id"],
            "canary_id": answer.canary.id,
            "anchor_ref": reduced(answer.canary.anchor_ref),
            "rank": answer.rank,
            "hit": answer.rank >= 0,
            "hit_ref": answer.hit_ref,
            "hit_by": answer.hit_by,
            "first_ref": answer.first_ref,
            "results": answer.results,
            "anchor_present": answer.anchor_present,
            "followers": list(answer.followers),
        }
        for answer in answers
    ]


def by_type(answers: Sequence[Answer]) -> dict[str, tuple[int, int]]:
    """Hits and canaries of each learning type."""
    found = dict.fromkeys(LEARNING_TYPES, (0, 0))
    for answer in answers:
        type_ = type_of(answer.canary.anchor_ref)
        if type_ in found:
            hits, asked = found[type_]
            found[type_] = (hits + (answer.rank >= 0), asked + 1)
    return {type_: pair for type_, pair in found.items() if pair[1]}


def _time(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
