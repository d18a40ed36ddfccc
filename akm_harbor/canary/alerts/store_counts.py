"""The calibrated rule on whole-store counts: duplicates, size, merges below the floor, churn.

Bounds narrow with the square root of the store: as if the whole store were drawn anew each
cycle, which is on the safe side for one that keeps most of its assets.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction

from akm_harbor.canary.alerts.exact import excess_p
from akm_harbor.canary.alerts.model import Alert, Kind, Settings
from akm_harbor.canary.alerts.rows import Cycle

MIN_REFERENCE = 2
"""Cycles before a cycle can be judged at all: the test is exact from the first pair on."""

SHAPE_SHARE = 0.1
"""Share of the rate that each kind of store shape gets in a cycle in which it could fire."""

_FLAT_P = 0.1


def small(p: float) -> str:
    """A p value for people; below 1e-12 the arithmetic has no more digits to give."""
    return f"{p:.2g}" if p >= 1e-12 else "below 1e-12"


def shape_alerts(cycles: Sequence[Cycle], position: int, settings: Settings) -> list[Alert]:
    """Entropy and shrink of a cycle with their p values, left out where they could not fire at all (Tarone)."""
    if position < MIN_REFERENCE:
        return []
    references = [cycles[max(0, position - settings.window) : position]]
    if position >= 2 * settings.window:
        references.append(cycles[: settings.window])
    made = (_entropy(references, cycles[position], settings), _shrink(references, cycles[position], settings))
    return [alert for alert in made if alert is not None]


def _middle(cycles: Sequence[Cycle], key: Callable[[Cycle], Fraction | int]) -> Cycle:
    """The lower middle cycle by a key: one cycle, because neighbouring cycles share their assets."""
    return sorted(cycles, key=key)[(len(cycles) - 1) // 2]


def _entropy(references: Sequence[Sequence[Cycle]], now: Cycle, settings: Settings) -> Alert | None:
    """More duplicates than before, for the store's size."""
    middles = [_middle(window, lambda cycle: Fraction(cycle.duplicates, max(1, cycle.total))) for window in references]
    share_of_one = settings.rate * SHAPE_SHARE / len(middles)
    if all(excess_p(now.duplicates + b.duplicates, now.total, 0, b.total) > share_of_one for b in middles):
        return None
    p, before = min(
        ((excess_p(now.duplicates, now.total, b.duplicates, b.total), b) for b in middles), key=lambda pair: pair[0]
    )
    p = min(1.0, p * len(middles))
    rise = Fraction(now.duplicates, max(1, now.total)) - Fraction(before.duplicates, max(1, before.total))
    if rise < Fraction(repr(settings.entropy_floor)):
        p = 1.0
    detail = (
        f"{now.duplicates} of {now.total} assets say what another one says, {before.duplicates} of {before.total} "
        f"before (p {small(p)})"
    )
    metrics = {"duplicates": float(now.duplicates), "total": float(now.total)}
    return Alert(Kind.ENTROPY, detail, metrics | {"before": float(before.duplicates), "p": p}, p)


def _shrink(references: Sequence[Sequence[Cycle]], now: Cycle, settings: Settings) -> Alert | None:
    """Fewer assets while more of them are merged too often; shrinking alone is hygiene."""
    middles = [_middle(window, lambda cycle: cycle.total) for window in references]
    grown = [
        before
        for before, window in zip(middles, references, strict=True)
        if now.over_generation > window[0].over_generation
    ]
    if not grown:
        return None
    p, before = min(((excess_p(b.total, 1, now.total, 1), b) for b in grown), key=lambda pair: pair[0])
    p = min(1.0, p * len(grown))
    if now.total > (1 - Fraction(repr(settings.shrink_floor))) * before.total:
        p = 1.0
    detail = (
        f"{now.total} assets, {before.total} before, while {now.over_generation} are merged too often "
        f"({before.over_generation} before; p {small(p)})"
    )
    metrics = {"total": float(now.total), "before": float(before.total), "over_generation": float(now.over_generation)}
    return Alert(Kind.SHRINK, detail, metrics, p)


def facts(cycle: Cycle, settings: Settings) -> list[Alert]:
    """Merges below the floor: counted, not inferred, and so no part of the rate."""
    if cycle.violations < settings.floor_min:
        return []
    detail = f"{cycle.violations} merges lost references or words in this cycle (limit {settings.floor_min})"
    return [Alert(Kind.MERGE_FLOOR, detail, {"violations": float(cycle.violations)})]


def churn(cycles: Sequence[Cycle], position: int, window_p: float | None, settings: Settings) -> list[Alert]:
    """Many accepted changes, and neither recall nor the share of duplicates moves beyond its noise."""
    window = cycles[max(0, position - settings.window) : position]
    now, accepted = cycles[position], sum(cycle.accepted for cycle in window)
    if len(window) < settings.window or accepted < settings.churn_actions:
        return []
    flat = window_p is None or _FLAT_P <= window_p <= 1 - _FLAT_P
    before = window[0]
    more = excess_p(now.duplicates, now.total, before.duplicates, before.total)
    fewer = excess_p(before.duplicates, before.total, now.duplicates, now.total)
    if not flat or min(more, fewer) < _FLAT_P or abs(now.exact_ratio - before.exact_ratio) >= settings.flat:
        return []
    detail = (
        f"{accepted} accepted changes in {len(window)} cycles moved neither recall "
        f"({float(now.exact_recall):.3f}) nor distinct content ({float(now.exact_ratio):.3f})"
    )
    return [Alert(Kind.CHURN, detail, {"accepted": float(accepted), "recall": float(now.exact_recall)})]
