"""Long made-up histories: canaries with noise, a slow decline, a refresh; for benches, tests and the sample."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from akm_harbor.canary.mint import Canary, CanarySet
from akm_harbor.canary.refs import LEARNING_TYPES, concept_id, type_of
from akm_harbor.canary.score import score
from akm_harbor.canary.simulate.bundle import Bundle
from akm_harbor.canary.simulate.noise import Noise, Probabilities

type Row = dict[str, Any]

_START = datetime(2026, 1, 1, 3, 15, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Story:
    """What happens to a store, one cycle a day.

    Attributes:
        label: the store's label.
        days: cycles.
        recall: mean hit probability of a new set.
        decline_from: day from which recall falls; None for never.
        decline: how much it falls a day, as a share of all canaries.
        refresh_at: day on which a new set takes over; None for never.
        canaries: in a set.
        start: first day.
    """

    label: str
    days: int
    recall: float = 0.9
    decline_from: int | None = None
    decline: float = 0.0
    refresh_at: int | None = None
    canaries: int = 40
    start: datetime = _START

    def fallen(self, day: int) -> float:
        """Share of recall that is gone on a day."""
        if self.decline_from is None or day < self.decline_from:
            return 0.0
        return min(1.0, (day - self.decline_from) * self.decline / self.recall)


def tell(story: Story, seed: int = 0) -> dict[str, list[Row]]:
    """The story as `canary_cycles`, `canary_queries` and `canary_ranks` rows."""
    rng = np.random.default_rng(seed)
    sets = list(_sets(story, Bundle(seed), rng))
    made: dict[str, list[Row]] = {"canary_cycles": [], "canary_queries": [], "canary_ranks": []}
    for number, (canaries, _) in enumerate(sets, 1):
        made["canary_queries"] += _query_rows(story, canaries, active=number == len(sets))
    total = 240
    for day in range(story.days):
        canaries, p = sets[int(story.refresh_at is not None and day >= story.refresh_at)]
        found = rng.random(story.canaries) < p * (1 - story.fallen(day))
        ranks = [min(int(rng.geometric(0.8)) - 1, 9) if hit else -1 for hit in found]
        total += int(rng.poisson(1.2)) - int(rng.poisson(0.6))
        cycle = _cycle_row(story, day, canaries, ranks, total, accepted=int(rng.poisson(3)))
        made["canary_cycles"].append(cycle)
        made["canary_ranks"] += _rank_rows(cycle, canaries, ranks)
    return made


def _sets(story: Story, names: Bundle, rng: np.random.Generator) -> Iterator[tuple[CanarySet, Probabilities]]:
    starts = [0] if story.refresh_at is None else [0, story.refresh_at]
    for number, day in enumerate(starts):
        canaries = []
        for i in range(story.canaries):
            topic, thing = names.word(), names.word()
            ref = concept_id(LEARNING_TYPES[i % len(LEARNING_TYPES)], f"{topic}-{thing}")
            canaries.append(Canary(number * story.canaries + i + 1, ref, f"{topic} {thing}"))
        at = story.start + timedelta(days=day)
        p = Noise(story.recall, story.canaries).probabilities(1, rng)[0]
        yield CanarySet(f"canary-{story.label}-{number + 1}", at, "auto", tuple(canaries)), p


def _query_rows(story: Story, canaries: CanarySet, *, active: bool) -> list[Row]:
    return [
        {
            "store": story.label,
            "id": canary.id,
            "canary_set_id": canaries.id,
            "anchor_ref": canary.anchor_ref,
            "query": canary.query,
            "source": canaries.source,
            "active": int(active),
            "created_at": canaries.minted_at,
            "anchor_type": type_of(canary.anchor_ref),
        }
        for canary in canaries.canaries
    ]


def _cycle_row(story: Story, day: int, canaries: CanarySet, ranks: list[int], total: int, *, accepted: int) -> Row:
    means, fallen = score(ranks), story.fallen(day)
    duplicates = round((0.02 + 0.15 * fallen) * total)
    ts = story.start + timedelta(days=day)
    pairs = [[canary.id, rank] for canary, rank in zip(canaries.canaries, ranks, strict=True)]
    return {
        "store": story.label,
        "source": "snapshot",
        "id": day + 1,
        "run_id": f"simulated-{day:04d}",
        "ts": ts,
        "pass": "snapshot",
        "canary_set_id": canaries.id,
        "mean_recall": means.recall,
        "mean_ndcg": means.ndcg,
        "mean_mrr": means.mrr,
        "canary_ranks_json": json.dumps(pairs, separators=(",", ":")),
        "store_total": total,
        "store_by_type_json": json.dumps({"memory": total}),
        "distinct_content_ratio": (total - duplicates) / total,
        "mean_bigram_diversity": 0.95 + 0.02 * fallen,
        "over_generation_count": round(8 * fallen),
        "accepted_actions": accepted,
        "n_canaries": len(ranks),
        "n_hits": sum(rank >= 0 for rank in ranks),
        "accepted_measured": accepted,
        "accepted_source": "proposals",
        "distinct_contents": total - duplicates,
        "store_entries": total,
        "k": 10,
        "max_generation": 2,
        "layout": "entry-json",
    }


def _rank_rows(cycle: Row, canaries: CanarySet, ranks: list[int]) -> list[Row]:
    shared = {name: cycle[name] for name in ("store", "run_id", "ts", "canary_set_id")}
    return [
        {
            **shared,
            "canary_id": canary.id,
            "anchor_ref": canary.anchor_ref,
            "rank": rank,
            "hit": rank >= 0,
            "hit_ref": canary.anchor_ref if rank >= 0 else None,
            "hit_by": "anchor" if rank >= 0 else None,
            "first_ref": canary.anchor_ref if rank == 0 else None,
            "results": 10,
            "anchor_present": True,
            "followers": [],
        }
        for canary, rank in zip(canaries.canaries, ranks, strict=True)
    ]
