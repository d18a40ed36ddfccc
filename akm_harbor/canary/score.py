"""Ask the canaries: where does each one's anchor, or what it was merged into, come up."""

import math
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from akm_harbor.canary.layout import Entry, Index
from akm_harbor.canary.mint import Canary
from akm_harbor.canary.query import search
from akm_harbor.canary.refs import reduced

DEFAULT_K = 10
MISS = -1


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back for one canary.

    Attributes:
        canary: the question.
        rank: 0-based place of the first result that counts, -1 for a miss.
        hit_ref: the asset that counted; None for a miss.
        hit_by: `anchor`, or `xref` when a result names the anchor as its source.
        first_ref: the best result, whatever it is; None when nothing came back.
        results: how many results came back, at most K.
        anchor_present: the anchor is still indexed.
        followers: assets that name the anchor as their source, found or not.
    """

    canary: Canary
    rank: int
    hit_ref: str | None
    hit_by: str | None
    first_ref: str | None
    results: int
    anchor_present: bool
    followers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Scores:
    """Means over a set: recall@K, nDCG@K and MRR with one relevant asset a canary; a miss adds 0."""

    recall: float
    ndcg: float
    mrr: float


def ask(
    db: sqlite3.Connection, index: Index, entries: Sequence[Entry], canaries: Sequence[Canary], k: int = DEFAULT_K
) -> list[Answer]:
    """Ask every canary and follow merges one level: a source of a source does not count."""
    by_row = {entry.row_id: entry for entry in entries}
    present = {entry.ref for entry in entries}
    followers: dict[str, list[str]] = {}
    for entry in entries:
        for source in entry.document.sources:
            followers.setdefault(reduced(source), []).append(entry.ref)
    answers = []
    for canary in canaries:
        # An undecodable row never becomes a result, in akm neither: the ones after it move up.
        found = [by_row[row_id] for row_id in search(db, index, canary.query, k) if row_id in by_row]
        answers.append(_answer(canary, found, present, followers))
    return answers


def _answer(canary: Canary, found: Sequence[Entry], present: set[str], followers: Mapping[str, list[str]]) -> Answer:
    anchor = reduced(canary.anchor_ref)
    rank, hit_ref, hit_by = MISS, None, None
    for place, entry in enumerate(found):
        if entry.ref == anchor or any(reduced(source) == anchor for source in entry.document.sources):
            rank, hit_ref, hit_by = place, entry.ref, "anchor" if entry.ref == anchor else "xref"
            break
    return Answer(
        canary=canary,
        rank=rank,
        hit_ref=hit_ref,
        hit_by=hit_by,
        first_ref=found[0].ref if found else None,
        results=len(found),
        anchor_present=anchor in present,
        followers=tuple(ref for ref in followers.get(anchor, ()) if ref != anchor),
    )


def score(ranks: Sequence[int]) -> Scores:
    """Mean recall, nDCG and MRR of 0-based ranks (-1 a miss), added up in order as akm does."""
    recall = ndcg = mrr = 0.0
    for rank in ranks:
        if rank >= 0:
            recall += 1
            mrr += 1 / (rank + 1)
            ndcg += 1 / math.log2(rank + 2)
    n = max(1, len(ranks))
    return Scores(recall / n, ndcg / n, mrr / n)
