"""Cycles made by hand."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from akm_harbor.canary.alerts.rows import Cycle

START = datetime(2026, 1, 1, tzinfo=UTC)


def cycle(number: int, found: int = 40, canaries: int = 40, **more: object) -> Cycle:
    """A cycle in which the first `found` of `canaries` were found."""
    fields: dict[str, object] = {
        "run_id": f"r{number}", "ts": START + timedelta(days=number), "row_id": number, "set_id": "s",
        "recall": found / canaries, "ratio": 1.0, "total": 100, "over_generation": 0, "distinct": 100,
        "ranks": {i: 0 if i < found else -1 for i in range(canaries)},
    }  # fmt: skip
    return Cycle(**{**fields, **more})  # type: ignore[arg-type]


def series(found: Sequence[int], **more: object) -> list[Cycle]:
    """Cycles by how many canaries were found."""
    return [cycle(number, count, **more) for number, count in enumerate(found)]
