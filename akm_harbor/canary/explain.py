"""What stands behind an alert: which anchors are lost, what took their place, where to look next."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from akm_harbor.canary.alerts.model import Alert, Kind
from akm_harbor.canary.refs import reduced
from akm_harbor.canary.score import DEFAULT_K

NEXT = {
    Kind.RECALL: "Compare the lost anchors with the last consolidation's merges; `canary merge-check` on the bundle "
    "before and after it shows which merge dropped words or references.",
    Kind.DECLINE: "The loss is spread over cycles: start with the anchors lost longest. If they were let go on "
    "purpose, retire the set with `canary refresh`.",
    Kind.ENTROPY: "Look for assets with the same description and tags; rewording has made them alike, or metadata "
    "is missing.",
    Kind.SHRINK: "Look at assets with a high `generation`: merges of merges. Restore from the bundle's history what "
    "they no longer say.",
    Kind.CHURN: "Accepted changes move nothing: raise the cooldown or the acceptance threshold of the improve run.",
    Kind.MERGE_FLOOR: "`canary merge-check` names the merges and what each of them dropped.",
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


def lost_canaries(
    alert: Alert, cycle: Mapping[str, Any], ranks: Sequence[Mapping[str, Any]], queries: Iterable[Mapping[str, Any]]
) -> tuple[Lost, ...]:
    """Name the canaries behind an alert.

    Args:
        alert: in which cycle `cycle`.
        cycle: the `canary_cycles` row.
        ranks: all `canary_ranks` rows of the set in its store, oldest first.
        queries: the `canary_queries` rows of the set.
    """
    wanted = set(alert.lost)
    asked = {row["id"]: row for row in queries}
    now: dict[int, Mapping[str, Any]] = {}
    found: dict[int, datetime] = {}
    for row in ranks:
        canary = row["canary_id"]
        if canary not in wanted or row["ts"] is None or row["ts"] > cycle["ts"]:
            continue
        if row["hit"]:
            found[canary] = row["ts"]
        if row["run_id"] == cycle["run_id"] and row["ts"] == cycle["ts"]:
            now[canary] = row
    k = cycle.get("k") or DEFAULT_K
    return tuple(_lost(canary, now.get(canary), asked.get(canary), found.get(canary), k) for canary in alert.lost)


def _lost(
    canary: int, row: Mapping[str, Any] | None, query: Mapping[str, Any] | None, last: datetime | None, k: int
) -> Lost:
    anchor = (query or {}).get("anchor_ref") or (row or {}).get("anchor_ref") or ""
    why, instead = why_lost(row, k)
    return Lost(canary, reduced(anchor), (query or {}).get("query") or "", last, why, instead)


def why_lost(row: Mapping[str, Any] | None, k: int = DEFAULT_K) -> tuple[str, str | None]:
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
