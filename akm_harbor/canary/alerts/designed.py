"""The rule as it was designed: all five kinds, thresholds compared as fractions."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from akm_harbor.canary.alerts.model import DEFAULTS, Alert, Kind, Settings
from akm_harbor.canary.alerts.rows import Cycle


def evaluate(history: Sequence[Cycle], current: Cycle, settings: Settings = DEFAULTS) -> list[Alert]:
    """Judge one cycle against earlier ones of its set, oldest first, itself not among them."""
    alerts: list[Alert] = []
    if current.violations > 0:
        detail = f"{current.violations} merge(s) below the information floor in this cycle"
        alerts.append(Alert(Kind.MERGE_FLOOR, detail, {"violations": current.violations}))
    window = history[-settings.window :]
    if len(window) < settings.window:
        return alerts
    alerts += [
        alert
        for judge in (_recall, _entropy, _shrink, _churn)
        if (alert := judge(window, current, settings)) is not None
    ]
    return alerts


def _exactly(value: float) -> Fraction:
    """A threshold as it is written, 0.15 and not the nearest float."""
    return Fraction(repr(value))


def _recall(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    ordered = sorted(cycle.exact_recall for cycle in window)
    middle = len(ordered) // 2
    median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
    now = current.exact_recall
    if now > median - _exactly(settings.recall_drop):
        return None
    detail = (
        f"recall {float(now):.3f} is {float(median - now):.3f} below the median {float(median):.3f} "
        f"of {settings.window} cycles (limit {settings.recall_drop:g})"
    )
    return Alert(Kind.RECALL, detail, {"recall": float(now), "median": float(median), "drop": float(median - now)})


def _entropy(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    series = [*(cycle.exact_ratio for cycle in window), current.exact_ratio]
    decline = series[0] - series[-1]
    if any(later > earlier for earlier, later in pairwise(series)) or decline < _exactly(settings.entropy_drop):
        return None
    detail = (
        f"distinct-content ratio fell from {float(series[0]):.3f} to {float(series[-1]):.3f} over {settings.window} "
        f"cycles without a rise (limit {settings.entropy_drop:g})"
    )
    return Alert(Kind.ENTROPY, detail, {"before": float(series[0]), "now": float(series[-1]), "drop": float(decline)})


def _shrink(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    """The design counts memories; rows that do not tell types apart are judged by their total."""
    sizes = [_memories(cycle) for cycle in (*window, current)]
    largest, now = max(sizes[:-1]), sizes[-1]
    before = window[0].over_generation
    if now >= _exactly(settings.shrink_to) * largest or current.over_generation <= before:
        return None
    detail = (
        f"{now} memories, {largest} at the window's largest (limit {settings.shrink_to:g} of it), while assets merged "
        f"too often went from {before} to {current.over_generation}"
    )
    return Alert(Kind.SHRINK, detail, {"memories": now, "largest": largest, "over_generation": current.over_generation})


def _memories(cycle: Cycle) -> int:
    return cycle.memories if cycle.memories is not None else cycle.total


def _churn(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    accepted = sum(cycle.accepted for cycle in window)
    recall = abs(current.exact_recall - window[0].exact_recall)
    ratio = abs(current.exact_ratio - window[0].exact_ratio)
    flat = _exactly(settings.flat)
    if accepted < settings.churn_actions or recall >= flat or ratio >= flat:
        return None
    detail = (
        f"{accepted} accepted changes in {settings.window} cycles; recall moved by {float(recall):.3f} and the "
        f"distinct-content ratio by {float(ratio):.3f} (both below {settings.flat:g})"
    )
    return Alert(Kind.CHURN, detail, {"accepted": accepted, "recall": float(recall), "ratio": float(ratio)})
