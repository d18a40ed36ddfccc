"""What happens to a store over time: named scenarios, each a series of cycles from a real index file."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from akm_harbor.canary.alerts.rows import Cycle, from_row
from akm_harbor.canary.mint import CanarySet, mint
from akm_harbor.canary.simulate.bundle import BLAND, Asset, Bundle, healthy, thirty_topics
from akm_harbor.canary.simulate.index_file import write_index
from akm_harbor.canary.snapshot import cycle_row, rank_rows, read_index

_START = datetime(2026, 1, 1, 3, 15, tzinfo=UTC)
_INTERVAL = timedelta(days=3)


@dataclass(slots=True)
class Run:
    """A scenario being played: a bundle, its index file, the frozen set and the rows so far.

    Attributes:
        label: the store's label in the rows.
        bundle: the store.
        index: its index file, rebuilt each cycle.
        canaries: minted at the first cycle.
        rows, ranks: `canary_cycles` and `canary_ranks` rows.
    """

    label: str
    bundle: Bundle
    index: Path
    canaries: CanarySet | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    ranks: list[dict[str, Any]] = field(default_factory=list)

    def cycle(self, *, accepted: int = 0, violations: int = 0) -> Cycle:
        """Index the bundle, ask the canaries, keep the row."""
        number = len(self.rows)
        at = _START + number * _INTERVAL
        write_index(self.bundle, self.index, at, first_id=1 + 7 * number)
        if self.canaries is None:
            reading = read_index(self.index)
            self.canaries = mint(reading.entries, reading.index.layout, at=_START)
            if self.canaries is None:
                raise ValueError("an empty store has nothing to ask about")
            self.canaries = replace(self.canaries, id=f"canary-{self.label}")
        reading = read_index(self.index, self.canaries.canaries)
        row = cycle_row(
            self.label, reading, self.canaries.id, at=at, row_id=number + 1, accepted=("proposals", accepted)
        )
        row["merge_floor_violations"] = violations
        self.rows.append(row)
        self.ranks += rank_rows(row, reading.answers)
        return from_row(row)

    @property
    def cycles(self) -> list[Cycle]:
        """All cycles so far."""
        return [from_row(row) for row in self.rows]


def design_collapse(folder: Path) -> Run:
    """The design's test plan: two quiet cycles, one faithful merge pass, then three lossy ones."""
    run = Run("design-collapse", thirty_topics(), folder / "index.db")
    run.cycle()
    run.cycle()
    for group in range(3):
        members = [
            run.bundle.assets[f"memories/topic-{number:02d}-notes"] for number in range(group * 3, group * 3 + 3)
        ]
        names = [member.name for member in members]
        refs = [member.ref for member in members]
        run.bundle.delete(refs)
        run.bundle.add(
            Asset(
                f"merged-{group}",
                description=f"Merged notes about {' '.join(names)}",
                tags=tuple(names),
                xrefs=tuple(refs),
                generation=1,
                body=" ".join(member.body for member in members),
            )
        )
    run.cycle()
    left = [ref for ref in run.bundle.refs() if "topic" in ref]
    for number in range(2, 5):
        count = (len(left) + 1) // 2
        gone, left = left[:count], left[count:]
        run.bundle.delete(gone)
        for copy in range(3):
            run.bundle.add(Asset(f"generic-{number}-{copy}", description=BLAND, generation=number, body=BLAND))
        run.cycle(violations=3)
    return run


def churn(folder: Path) -> Run:
    """Rewrites are accepted cycle after cycle and nothing that can be found or counted changes."""
    run = Run("churn", healthy(seed=1), folder / "index.db")
    for _ in range(8):
        run.cycle(accepted=8)
        run.bundle.paraphrase(run.bundle.pick(8))
    return run


def faithful_merge(folder: Path) -> Run:
    """Consolidation as it should be: every merge keeps words and references."""
    run = Run("faithful-merge", healthy(seed=2), folder / "index.db")
    for number in range(12):
        run.cycle(accepted=2)
        if number == 5:
            for _ in range(3):
                run.bundle.merge([ref for ref in run.bundle.pick(6, "memory") if "merged" not in ref][:3])
    return run


def rename(folder: Path) -> Run:
    """Assets get other names and say which ones they had."""
    run = Run("rename", healthy(seed=3), folder / "index.db")
    for number in range(12):
        run.cycle()
        if number >= 5:
            run.bundle.rename([ref for ref in run.bundle.pick(6) if "renamed" not in ref])
    return run


def growth(folder: Path) -> Run:
    """From 60 to 5,000 assets in five cycles."""
    run = Run("growth", healthy(seed=4), folder / "index.db")
    for number in range(11):
        run.cycle()
        if number >= 5:
            wanted = 60 * (5000 / 60) ** (min(number - 4, 5) / 5)
            run.bundle.grow(round(wanted) - len(run.bundle.assets))
    return run


def reindex(folder: Path) -> Run:
    """The same store indexed again and again: new row ids, new build times, nothing else."""
    run = Run("re-index", healthy(seed=5), folder / "index.db")
    for _ in range(12):
        run.cycle()
    return run


def lossy_merge(folder: Path) -> Run:
    """Merges that keep neither references nor words, three a cycle."""
    run = Run("lossy-merge", healthy(seed=6), folder / "index.db")
    for number in range(14):
        run.cycle(accepted=3, violations=3 if number > 6 else 0)
        if number >= 6:
            for _ in range(3):
                picked = run.bundle.pick(3, "memory")
                if len(picked) == 3:
                    run.bundle.merge(picked, keep_provenance=False, keep_words=False)
    return run


def bland_rewording(folder: Path) -> Run:
    """Each cycle a few descriptions become the same sentence; every name stays."""
    run = Run("bland-rewording", healthy(seed=7), folder / "index.db")
    for number in range(16):
        run.cycle(accepted=4)
        if number >= 6:
            run.bundle.reword_blandly(run.bundle.pick(4))
    return run


def hygiene(folder: Path) -> Run:
    """Deletion hygiene: one asset a cycle goes for good while others come."""
    run = Run("hygiene", healthy(120, seed=8), folder / "index.db")
    for number in range(16):
        run.cycle()
        if number >= 5:
            run.bundle.delete(run.bundle.pick(1))
            run.bundle.grow(2)
    return run


type Scenario = Callable[[Path], Run]

SCENARIOS: dict[str, Scenario] = {
    "design-collapse": design_collapse,
    "lossy-merge": lossy_merge,
    "bland-rewording": bland_rewording,
    "churn": churn,
    "faithful-merge": faithful_merge,
    "rename": rename,
    "growth": growth,
    "re-index": reindex,
    "hygiene": hygiene,
}


def play(folder: Path) -> Iterator[Run]:
    """Play every scenario in a folder of its own."""
    for name, scenario in SCENARIOS.items():
        place = folder / name
        place.mkdir()
        yield scenario(place)
