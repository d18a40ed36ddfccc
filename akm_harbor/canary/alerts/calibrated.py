"""The calibrated rule: whole canaries, a known false-alarm rate, the slow decline too.

Recall is judged by up to three contrasts, each an exact paired test (`exact.py`):

* window: this cycle against the window before it, for a sudden loss;
* recent: the last three cycles against up to twenty before them, for a loss the noise hides;
* since mint: the last ten against the first twenty of the set, for the slow decline. Its
  reference never moves, so a store that sank slowly does not become its own measure.

Where states carry over from cycle to cycle the p values are discounted for it (`persistence.py`).

Store shape is judged by counts whose bounds narrow with the square root of the store's size.
The rate is for the whole cycle: each kind of store shape gets a tenth of it in a cycle in
which it could fire at all (Tarone), the canaries get the rest, and within the canaries the
contrasts share it by their joint distribution. Merge-floor
violations are facts and churn is advice; neither takes part in the rate.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from akm_harbor.canary.alerts.exact import (
    Contrast,
    Correlations,
    Floats,
    Ints,
    correlations,
    dependability,
    lower_p,
    share,
    smallest_p,
)
from akm_harbor.canary.alerts.model import DEFAULTS, Alert, Evaluated, Kind, Rule, Settings
from akm_harbor.canary.alerts.persistence import discounted, inflation, persistence
from akm_harbor.canary.alerts.rows import Cycle
from akm_harbor.canary.alerts.store_counts import MIN_REFERENCE, SHAPE_SHARE, churn, facts, shape_alerts, small

_RECENT, _RECENT_REFERENCE = 3, 20
_LATE, _EARLY, _SINCE_MINT_FROM = 10, 20, 25


@dataclass(frozen=True, slots=True)
class _Tested:
    """One contrast in one cycle.

    Attributes:
        contrast: which cycles.
        p: one-sided p value of this contrast alone, carry-over discounted.
        carried: the carry-over from cycle to cycle it was discounted by.
        drop: per canary, its loss of hits: share of the reference minus share of the recent,
            times both lengths, so that it is a whole number.
        expected, found: canaries found in a cycle, mean over the reference and over the recent.
    """

    contrast: Contrast
    p: float
    carried: float
    drop: Ints
    expected: float
    found: float


def contrasts(position: int, window: int) -> tuple[Contrast, ...]:
    """The contrasts that apply to a cycle with `position` cycles before it in its series."""
    length = position + 1
    made = [Contrast((position - min(window, position), position), (position, length))]
    if length >= window + _RECENT:
        start = length - _RECENT
        made.append(Contrast((start - min(_RECENT_REFERENCE, start), start), (start, length)))
    if length >= _SINCE_MINT_FROM:
        made.append(Contrast((0, min(_EARLY, length - _LATE)), (length - _LATE, length)))
    return tuple(made)


@lru_cache(maxsize=1024)
def _design(position: int, window: int) -> Correlations:
    return correlations(contrasts(position, window))


def design(position: int, window: int) -> Correlations:
    """Correlations of a cycle's contrasts. Once the first cycles are out of reach of the others, they stay the same."""
    settled = _EARLY + _LATE + _RECENT + _RECENT_REFERENCE + window
    return _design(min(position, settled), window)


def still_down(drop: Ints, spared: int) -> NDArray[np.bool_]:
    """Whether recall is down even without the `spared` canaries that lost most; shape (series,).

    One anchor gone for good is far beyond chance and still nobody's emergency.
    """
    if drop.shape[1] <= spared:
        return np.zeros(len(drop), dtype=bool)
    ordered = np.sort(drop, axis=1)
    return np.asarray(ordered[:, : drop.shape[1] - spared].sum(axis=1) > 0)


def evaluate(cycles: Sequence[Cycle], settings: Settings = DEFAULTS) -> Evaluated:
    """Judge every cycle of one comparable series, oldest first."""
    canaries, hits, asked = _matrix(cycles)
    tested = _test_all(hits, asked, settings.window)
    alerts: list[tuple[Alert, ...]] = []
    family: list[float | None] = []
    for position, cycle in enumerate(cycles):
        shape = shape_alerts(cycles, position, settings)
        mine = tested[position]
        correlated = design(position, settings.window) if mine else ()
        found = _shared(mine, correlated, canaries, shape, settings) or churn(
            cycles, position, _window_p(mine), settings
        )
        alerts.append(tuple(sorted((*facts(cycle, settings), *found), key=lambda alert: list(Kind).index(alert.kind))))
        family.append(smallest_p(min(one.p for one in mine), correlated) if mine else None)
    judged = tuple(position >= MIN_REFERENCE for position in range(len(cycles)))
    return Evaluated(Rule.CALIBRATED, tuple(alerts), judged, tuple(family))


def _matrix(cycles: Sequence[Cycle]) -> tuple[list[int], Ints, Ints]:
    """Canary ids, and hits and asked as arrays of shape (canaries, cycles)."""
    canaries = sorted({canary for cycle in cycles for canary in cycle.ranks})
    row = {canary: i for i, canary in enumerate(canaries)}
    hits = np.zeros((len(canaries), len(cycles)), dtype=np.int64)
    asked = np.zeros_like(hits)
    for column, cycle in enumerate(cycles):
        for canary, rank in cycle.ranks.items():
            hits[row[canary], column] = rank >= 0
            asked[row[canary], column] = 1
    return canaries, hits, asked


def _test_all(hits: Ints, asked: Ints, window: int) -> list[list[_Tested]]:
    """Every contrast of every cycle; those of one size are tested together, which is what makes years cheap."""
    tested: list[list[_Tested]] = [[] for _ in range(hits.shape[1])]
    if not len(hits):
        return tested
    carried = _carried(hits, asked)
    sizes: dict[tuple[int, int], list[tuple[int, Contrast]]] = {}
    for position in range(MIN_REFERENCE, hits.shape[1]):
        for contrast in contrasts(position, window):
            sizes.setdefault((contrast.n, contrast.m), []).append((position, contrast))
    for (n, m), wanted in sizes.items():
        reference, recent = _counts(hits, asked, [contrast for _, contrast in wanted])
        here = carried[[position for position, _ in wanted]]
        exact = lower_p(reference + recent, recent, n, m, _weights(hits, wanted, reference + recent))
        p = [
            float(discounted(exact[i : i + 1], inflation(contrast, here[i : i + 1]))[0])
            for i, (_, contrast) in enumerate(wanted)
        ]
        for index, (position, contrast) in enumerate(wanted):
            drop = reference[index] * m - recent[index] * (n - m)
            expected, found = reference[index].sum() / (n - m), recent[index].sum() / m
            tested[position].append(
                _Tested(contrast, p[index], float(here[index]), drop, float(expected), float(found))
            )
    for found_here in tested:
        found_here.sort(key=lambda one: (one.contrast.m, one.contrast.reference[0] == 0))
    return tested


def _weights(hits: Ints, wanted: Sequence[tuple[int, Contrast]], totals: Ints) -> Ints | None:
    """Dependability for contrasts of one cycle: five cycles say little, so the ones before them speak too."""
    if wanted[0][1].m > 1:
        return None
    summed = np.concatenate((np.zeros((len(hits), 1), dtype=np.int64), np.cumsum(hits, axis=1)), axis=1)
    start = np.array([contrast.reference[0] for _, contrast in wanted])
    earlier = np.maximum(start - _RECENT_REFERENCE, 0)
    before = (summed[:, start] - summed[:, earlier]).T
    return record_weights(before, start - earlier, totals, wanted[0][1].n)


def record_weights(before: Ints, cycles: Ints, totals: Ints, n: int) -> Ints:
    """How often a hit counts, by a canary's record in the stretch and before it.

    Args:
        before: hits before the stretch; shape (series, canaries).
        cycles: how many cycles those are; shape (series,).
        totals: hits in the stretch; shape (series, canaries).
        n: cycles of the stretch.
    """
    return dependability(before + totals, (cycles + n)[:, None])


def _carried(hits: Ints, asked: Ints) -> Floats:
    """Carry-over before each cycle's last three, which are under test themselves; shape (cycles,)."""
    cycles = np.maximum(np.arange(hits.shape[1]) + 1 - _RECENT, 0)
    start = np.zeros((len(hits), 1), dtype=np.int64)
    summed = np.concatenate((start, np.cumsum(hits, axis=1)), axis=1)[:, cycles]
    whole = np.concatenate((start, np.cumsum(asked, axis=1)), axis=1)[:, cycles] == cycles
    changed = np.cumsum(np.abs(np.diff(hits, axis=1, prepend=hits[:, :1])), axis=1)[:, np.maximum(cycles - 1, 0)]
    return persistence((changed * whole).sum(axis=0), (summed * whole).T, cycles)


def _counts(hits: Ints, asked: Ints, wanted: Sequence[Contrast]) -> tuple[Ints, Ints]:
    """Hits in reference and recent cycles; shape (contrasts, canaries). A canary not asked throughout counts as 0."""
    summed = np.concatenate((np.zeros((len(hits), 1), dtype=np.int64), np.cumsum(hits, axis=1)), axis=1)
    there = np.concatenate((np.zeros((len(hits), 1), dtype=np.int64), np.cumsum(asked, axis=1)), axis=1)

    def between(sums: Ints, spans: Sequence[tuple[int, int]]) -> Ints:
        start, stop = np.array(spans).T
        return np.asarray((sums[:, stop] - sums[:, start]).T)

    before, now = [c.reference for c in wanted], [c.recent for c in wanted]
    whole = between(there, before) + between(there, now) == wanted[0].n
    return between(summed, before) * whole, between(summed, now) * whole


def _window_p(tested: Sequence[_Tested]) -> float | None:
    return next((one.p for one in tested if one.contrast.m == 1), None)


def _shared(
    tested: Sequence[_Tested],
    correlated: Correlations,
    canaries: Sequence[int],
    shape: Sequence[Alert],
    settings: Settings,
) -> list[Alert]:
    """Collapse alerts of one cycle, the rate shared out over what could fire in it."""
    rate = settings.rate * (1 - SHAPE_SHARE * len(shape))
    alerts = _canaries(tested, correlated, canaries, rate, settings.spared)
    return alerts + [alert for alert in shape if alert.p is not None and alert.p <= settings.rate * SHAPE_SHARE]


def _canaries(
    tested: Sequence[_Tested], correlated: Correlations, canaries: Sequence[int], rate: float, spared: int
) -> list[Alert]:
    if not tested:
        return []
    limit = share(rate, correlated)
    alerts: dict[Kind, Alert] = {}
    for one in sorted(tested, key=lambda one: one.p):
        kind = Kind.RECALL if one.contrast.m == 1 else Kind.DECLINE
        if one.p <= limit and kind not in alerts and still_down(one.drop[None], spared)[0]:
            alerts[kind] = _canary_alert(kind, one, smallest_p(one.p, correlated), canaries)
    return list(alerts.values())


def _canary_alert(kind: Kind, one: _Tested, p: float, canaries: Sequence[int]) -> Alert:
    contrast = one.contrast
    span = contrast.n - contrast.m
    order = np.argsort(-one.drop, kind="stable")
    lost = tuple(canaries[i] for i in order if one.drop[i] > 0 and 2 * one.drop[i] >= contrast.m * span)
    when = "this cycle" if contrast.m == 1 else f"the last {contrast.m} cycles"
    early = contrast.reference[0] == 0 and contrast.m == _LATE
    before = f"the first {span} cycles of the set" if early else f"the {span} cycles before"
    detail = (
        f"{one.found:.4g} of {len(canaries)} canaries found in {when}, {one.expected:.4g} in {before}; "
        f"{len(lost)} lost (p {small(p)})"
    )
    metrics = {"found": one.found, "expected": one.expected, "canaries": float(len(canaries)), "lost": float(len(lost))}
    metrics["carried_over"] = round(one.carried, 3)
    return Alert(kind, detail, metrics, p, lost)


def recall_limits(cycles: Sequence[Cycle], settings: Settings = DEFAULTS) -> list[float | None]:
    """The recall at about which each cycle of a series would raise a window alert, for a chart.

    The exact test weighs canaries, so there is no one level: this is the normal approximation,
    at least as far down as the canaries that are spared.
    """
    canaries, hits, _ = _matrix(cycles)
    made: list[float | None] = [None] * len(cycles)
    if not canaries:
        return made
    summed = np.concatenate((np.zeros((len(canaries), 1), dtype=np.int64), np.cumsum(hits, axis=1)), axis=1)
    for position in range(MIN_REFERENCE, len(cycles)):
        wanted = contrasts(position, settings.window)
        span = wanted[0].n - 1
        share_found = (summed[:, position] - summed[:, position - span]) / span
        noise = float((share_found * (1 - share_found)).sum() * (1 + 1 / span)) ** 0.5
        limit = share(settings.rate, design(position, settings.window))
        down = max(float(ndtri(1 - limit)) * noise, settings.spared + 0.5)
        made[position] = max(0.0, (float(share_found.sum()) - down) / len(canaries))
    return made
