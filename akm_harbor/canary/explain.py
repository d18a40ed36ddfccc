"""What stands behind an alert: which anchors are lost, what took their place, where to look next."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from akm_harbor.canary.alerts.model import Alert, Kind
from akm_harbor.canary.refs import reduced
from akm_harbor.canary.score import DEFAULT_K

type Row = Mapping[str, Any]

NEXT = {
    Kind.RECALL: "Compare the lost anchors with the last consolidation's merges: akm-harbor canary merge-check, given "
    "the bundle before and after it, names the merges that dropped words or references.",
    Kind.DECLINE: "The loss is spread over cycles: start with the anchors lost longest. If they were let go on "
    "purpose, retire the set with akm-harbor canary refresh.",
    Kind.ENTROPY: "Look for assets with the same description and tags; rewording has made them alike, or metadata "
    "is missing.",
    Kind.SHRINK: "Look at assets with a high generation: merges of merges. Restore from the bundle's history what "
    "they no longer say.",
    Kind.CHURN: "Accepted changes move nothing: raise the cooldown or the acceptance threshold of the improve run.",
    Kind.MERGE_FLOOR: "Run akm-harbor canary merge-check: it names the merges and what each of them dropped.",
}


@dataclass(frozen=True, slots=True)
class Lost:
    """One canary behind an alert.

    Attributes:
        canary_id: the canary.
        anchor_ref: its asset, as a short id.
        query: its question.
        last_found: the last cycle in which it was found; None if never.
        why: one short sentence.
        replaced_by: what answers the question now, or what the anchor was merged into; None if nothing.
    """

    canary_id: int
    anchor_ref: str
    query: str
    last_found: datetime | None
    why: str
    replaced_by: str | None


class RankIndex:
    """The `canary_ranks` rows of one store, found by canary and time without reading them all again."""

    def __init__(self, ranks: Iterable[Row], queries: Iterable[Row]) -> None:
        self._queries = {(row["canary_set_id"], row["id"]): row for row in queries}
        self._rows: dict[tuple[str, int], list[Row]] = {}
        for row in sorted((row for row in ranks if row["ts"] is not None), key=lambda row: row["ts"]):
            self._rows.setdefault((row["canary_set_id"], row["canary_id"]), []).append(row)

    def lost(self, alert: Alert, cycle: Row) -> tuple[Lost, ...]:
        """Name the canaries behind an alert of a cycle."""
        k = cycle.get("k") or DEFAULT_K
        return tuple(self._one((cycle["canary_set_id"], canary), cycle["ts"], k) for canary in alert.lost)

    def _one(self, key: tuple[str, int], ts: datetime, k: int) -> Lost:
        rows = self._rows.get(key, [])
        until = bisect_right(rows, ts, key=lambda row: row["ts"])
        now = rows[until - 1] if until and rows[until - 1]["ts"] == ts else None
        last = next((row["ts"] for row in reversed(rows[:until]) if row["hit"]), None)
        query = self._queries.get(key)
        anchor = (query or {}).get("anchor_ref") or (now or {}).get("anchor_ref") or ""
        why, instead = why_lost(now, k)
        if instead is not None and reduced(instead) == reduced(anchor):
            instead = None
        return Lost(key[1], reduced(anchor), (query or {}).get("query") or "", last, why, instead)


def why_lost(row: Row | None, k: int = DEFAULT_K) -> tuple[str, str | None]:
    """Why a canary is not found, and what stands in its place, from its `canary_ranks` row."""
    if row is None or row.get("anchor_present") is None:
        return "not found; akm records no more than the rank", None
    first = row.get("first_ref")
    followers = row.get("followers") or []
    if row["hit"]:
        return "found again in this cycle, missing in most of the others", row.get("hit_ref")
    if row["anchor_present"]:
        if (row.get("results") or 0) >= k:
            return f"still there, but {k} others come first", first
        return "still there, but reworded: it no longer has the words of its question", first
    if followers:
        return f"merged or renamed into {followers[0]}, which does not answer its question", followers[0]
    return "gone, and no asset names it as its source", first
