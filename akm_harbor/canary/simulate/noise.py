"""Canaries with noise and nothing else: how often does a rule cry wolf, how soon does it see a drop.

Each canary is found with its own probability, which it keeps; the probabilities differ from
canary to canary (Beta). The harder case gives all of them the same probability, so that all
of the variation is noise and none of it is taken out by pairing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from akm_harbor.canary.alerts.calibrated import contrasts, design, record_weights, still_down
from akm_harbor.canary.alerts.exact import lower_p, share
from akm_harbor.canary.alerts.model import DEFAULTS, Settings
from akm_harbor.canary.alerts.persistence import discounted, inflation, persistence

type Hits = NDArray[np.bool_]
"""Found or not; shape (series, canaries, cycles)."""
type Probabilities = NDArray[np.float64]
"""Hit probability; shape (series, canaries)."""
type Verdicts = NDArray[np.bool_]
"""Whether the last cycle raises an alert; shape (series,)."""

CONCENTRATION = 2.0
_BATCH = 2000


class Drop(StrEnum):
    """How a drop in recall comes about. All take `size` off the mean in expectation."""

    SHIFT = "shift"
    """Every canary's probability falls by the same amount, down to 0."""
    SCALE = "scale"
    """Every probability falls by the same factor."""
    LOST = "lost"
    """A fixed number of canaries is never found again; the rest stay as they were."""


@dataclass(frozen=True, slots=True)
class Noise:
    """A healthy set of canaries.

    Attributes:
        recall: mean hit probability.
        canaries: how many.
        concentration: of the Beta the probabilities come from; None for one shared probability.
        carried: correlation of a canary's state from cycle to cycle; 0 for independent cycles.
    """

    recall: float
    canaries: int = 40
    concentration: float | None = CONCENTRATION
    carried: float = 0.0

    def probabilities(self, series: int, rng: np.random.Generator) -> Probabilities:
        """Draw each canary's own probability; shape (series, canaries)."""
        if self.concentration is None:
            return np.full((series, self.canaries), self.recall)
        a = self.recall * self.concentration
        return rng.beta(a, self.concentration - a, (series, self.canaries))


def draw(p: Probabilities, cycles: int, rng: np.random.Generator, carried: float = 0.0) -> Hits:
    """Cycles in a row; shape (series, canaries, cycles). With `carried` a state is kept that often as it was."""
    hits = np.asarray(rng.random((*p.shape, cycles), dtype=np.float32) < p[:, :, None])
    if carried:
        kept = rng.random(hits.shape, dtype=np.float32) < carried
        for cycle in range(1, cycles):
            hits[:, :, cycle] = np.where(kept[:, :, cycle], hits[:, :, cycle - 1], hits[:, :, cycle])
    return hits


def dropped(p: Probabilities, how: Drop, size: float, recall: float, rng: np.random.Generator) -> Probabilities:
    """The probabilities after a drop of `size` in mean recall."""
    match how:
        case Drop.SHIFT:
            return np.asarray(np.clip(p - size, 0, 1))
        case Drop.SCALE:
            return p * (recall - size) / recall
        case Drop.LOST:
            count = round(size / recall * p.shape[1])
            gone = np.argsort(rng.random(p.shape), axis=1)[:, :count]
            after = p.copy()
            np.put_along_axis(after, gone, 0.0, axis=1)
            return after


def calibrated_verdicts(hits: Hits, settings: Settings = DEFAULTS) -> Verdicts:
    """The calibrated rule's canary alerts in the last cycle, for many series at once."""
    wanted = contrasts(hits.shape[2] - 1, settings.window)
    limit = share(settings.rate, design(hits.shape[2] - 1, settings.window))
    before = hits[:, :, : max(0, hits.shape[2] - 3)]
    changes = (before[:, :, 1:] != before[:, :, :-1]).sum(axis=(1, 2))
    cycles = np.full(len(hits), before.shape[2])
    carried = persistence(changes, before.sum(axis=2, dtype=np.int64), cycles)
    fired = np.zeros(len(hits), dtype=bool)
    for contrast in wanted:
        reference = hits[:, :, slice(*contrast.reference)].sum(axis=2, dtype=np.int64)
        recent = hits[:, :, slice(*contrast.recent)].sum(axis=2, dtype=np.int64)
        weights = None
        if contrast.m == 1:
            start = contrast.reference[0]
            earlier = max(0, start - 20)
            before_it = hits[:, :, earlier:start].sum(axis=2, dtype=np.int64)
            cycles_before = np.full(len(hits), start - earlier)
            weights = record_weights(before_it, cycles_before, reference + recent, contrast.n)
        exact = lower_p(reference + recent, recent, contrast.n, contrast.m, weights)
        p = discounted(exact, inflation(contrast, carried))
        drop = reference * contrast.m - recent * (contrast.n - contrast.m)
        fired |= (p <= limit) & still_down(drop, settings.spared)
    return fired


def designed_verdicts(hits: Hits, settings: Settings = DEFAULTS) -> Verdicts:
    """The as-designed recall rule in the last cycle: whole canaries against the window's median."""
    found = hits.sum(axis=1, dtype=np.int64)
    middle = np.median(found[:, -1 - settings.window : -1], axis=1)
    limit = round(settings.recall_drop * hits.shape[1] * 1000)
    return np.asarray((middle - found[:, -1]) * 1000 >= limit)


type Judge = Callable[[Hits, Settings], Verdicts]


def _batches(series: int) -> Iterator[int]:
    for start in range(0, series, _BATCH):
        yield min(_BATCH, series - start)


def false_alarm_rate(
    noise: Noise, judge: Judge, settings: Settings = DEFAULTS, *, series: int = 20_000, history: int = 60, seed: int = 0
) -> float:
    """Share of cycles of a healthy store, with `history` cycles before them, that raise an alert."""
    rng = np.random.default_rng(seed)
    fired = sum(
        int(judge(draw(noise.probabilities(n, rng), history + 1, rng, noise.carried), settings).sum())
        for n in _batches(series)
    )
    return fired / series


def power(
    noise: Noise,
    judge: Judge,
    how: Drop,
    settings: Settings = DEFAULTS,
    *,
    size: float = 0.15,
    cycles: int = 3,
    series: int = 4_000,
    history: int = 60,
    seed: int = 1,
) -> tuple[float, ...]:
    """Share of series with an alert by the first, second, ... cycle after a lasting drop."""
    rng = np.random.default_rng(seed)
    seen = np.zeros(cycles)
    for n in _batches(series):
        p = noise.probabilities(n, rng)
        after = dropped(p, how, size, noise.recall, rng)
        hits = np.concatenate((draw(p, history, rng), draw(after, cycles, rng)), axis=2)
        fired = np.zeros(n, dtype=bool)
        for cycle in range(cycles):
            fired |= judge(hits[:, :, : history + cycle + 1], settings)
            seen[cycle] += fired.sum()
    return tuple(float(value) for value in seen / series)


def cycles_to_alert(
    noise: Noise,
    judge: Judge,
    slope: float,
    settings: Settings = DEFAULTS,
    *,
    limit: int = 60,
    series: int = 400,
    history: int = 60,
    seed: int = 2,
) -> tuple[float, float]:
    """A slow decline: recall falls by `slope` a cycle, evenly over the canaries.

    Returns:
        Median number of cycles to the first alert (infinite if fewer than half see one), and the
        share of series that see one within `limit` cycles.
    """
    rng = np.random.default_rng(seed)
    p = noise.probabilities(series, rng)
    steps = [draw(np.asarray(p * max(0.0, 1 - slope * i / noise.recall)), 1, rng) for i in range(1, limit + 1)]
    hits = np.concatenate((draw(p, history, rng), *steps), axis=2)
    first = np.full(series, np.inf)
    for cycle in range(limit):
        fired = judge(hits[:, :, : history + cycle + 1], settings)
        first[fired & np.isinf(first)] = cycle + 1
    return float(np.median(first)), float(np.isfinite(first).mean())
