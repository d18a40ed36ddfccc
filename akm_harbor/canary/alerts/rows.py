"""What a rule looks at: cycles in order, and the stretches that may be compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from akm_harbor.json_toml import parse_json

_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle, as the rules need it.

    Attributes:
        run_id, ts, row_id: identity and order.
        set_id: the canary set.
        recall, ratio: floats as stored; akm's own rule compares these.
        ranks: 0-based rank by canary id, -1 a miss; empty when the row has none.
        total: assets of the learning types.
        memories: memories among them; None where the row does not say.
        distinct: distinct contents.
        over_generation: assets merged too often.
        violations: merges below the floor; 0 where unknown.
        accepted: accepted changes of this cycle; 0 where unknown.
        asked: how the store was asked (layout, K). A change makes rows incomparable.
    """

    run_id: str
    ts: datetime
    row_id: int
    set_id: str
    recall: float
    ratio: float
    total: int
    over_generation: int
    memories: int | None = None
    distinct: int | None = None
    violations: int = 0
    accepted: int = 0
    ranks: Mapping[int, int] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    @property
    def hits(self) -> int:
        """Canaries found."""
        return sum(rank >= 0 for rank in self.ranks.values())

    @property
    def exact_recall(self) -> Fraction:
        """Recall as a fraction of whole canaries, so that a boundary is a boundary."""
        if self.ranks:
            return Fraction(self.hits, len(self.ranks))
        return Fraction(self.recall).limit_denominator(10_000)

    @property
    def exact_ratio(self) -> Fraction:
        """Distinct-content ratio as a fraction of whole assets."""
        if self.distinct is not None and self.total > 0:
            return Fraction(self.distinct, self.total)
        return Fraction(self.ratio).limit_denominator(1_000_000)

    @property
    def duplicates(self) -> int:
        """Assets whose content another one has too, beyond the first."""
        distinct = self.distinct if self.distinct is not None else round(self.ratio * self.total)
        return max(0, self.total - distinct)


def from_row(row: Mapping[str, Any]) -> Cycle:
    """A cycle from a `canary_cycles` row, or from akm's own row with the same names."""
    by_type = _by_type(row.get("store_by_type_json"))
    ts = row["ts"]
    measured = row.get("accepted_measured")
    return Cycle(
        run_id=row["run_id"],
        ts=_NEVER if ts is None else datetime.fromisoformat(ts) if isinstance(ts, str) else ts,
        row_id=row.get("id") or 0,
        set_id=row["canary_set_id"],
        recall=_number(row.get("mean_recall")),
        ratio=_number(row.get("distinct_content_ratio"), 1.0),
        total=row.get("store_total") or 0,
        over_generation=row.get("over_generation_count") or 0,
        memories=by_type.get("memory", 0) if by_type else None,
        distinct=row.get("distinct_contents"),
        violations=row.get("merge_floor_violations") or 0,
        accepted=(measured if measured is not None else row.get("accepted_actions")) or 0,
        ranks=dict(read_ranks(row.get("canary_ranks_json")) or ()),
        asked=tuple(str(row[name]) for name in ("layout", "k") if row.get(name) is not None),
    )


def read_ranks(text: str | None) -> list[tuple[int, int]] | None:
    """Read `[[canary id, rank], ...]`; None when it is something else."""
    try:
        return [(int(canary), int(rank)) for canary, rank in parse_json(text or "")]
    except (ValueError, TypeError):
        return None


def _by_type(text: str | None) -> dict[str, int]:
    try:
        found = parse_json(text or "{}")
    except ValueError:
        return {}
    return {key: value for key, value in found.items() if isinstance(value, int)} if isinstance(found, dict) else {}


def _number(value: float | None, absent: float = 0.0) -> float:
    return absent if value is None else float(value)


def comparable(cycles: Sequence[Cycle]) -> list[list[int]]:
    """Positions of the cycles that may be compared with each other, one list a series.

    Two sets are never joined; within a set, a change in how the store is asked begins anew.
    """
    series: dict[tuple[str, tuple[str, ...], int], list[int]] = {}
    last: dict[str, tuple[tuple[str, ...], int]] = {}
    for position, cycle in enumerate(cycles):
        asked, part = last.get(cycle.set_id, (cycle.asked, 0))
        if asked != cycle.asked:
            part += 1
        last[cycle.set_id] = (cycle.asked, part)
        series.setdefault((cycle.set_id, cycle.asked, part), []).append(position)
    return list(series.values())


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones, in plain floating point."""
    ordered = sorted(values)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
