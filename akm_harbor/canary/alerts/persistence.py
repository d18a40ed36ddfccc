"""How much a canary's state carries over from one cycle to the next, and what that costs.

The exact test takes cycles to be independent. A canary near the edge of the first K stays on
one side of it for a while, and then ten misses in a row are less of a surprise than ten misses
apart. So the carry-over is estimated from the cycles before those under test, and the p value
of a contrast is read as if its variance were that much larger. Without carry-over nothing
changes.
"""

from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from akm_harbor.canary.alerts.exact import Contrast, Floats, Ints

_PRIOR = 5.0
"""Changes of state taken as seen beforehand, as many as expected: few changes prove little."""
_MOST = 0.95
_FAR = 200
"""Cycles after which nothing is carried over: 0.95 to this power is below 1e-4."""


def persistence(changes: Ints, totals: Ints, cycles: Ints) -> Floats:
    """Correlation of a canary's state from cycle to cycle, estimated over all canaries.

    Given its hits, a canary without carry-over changes state 2 s (n - s) / n times in n cycles.
    The estimate is the share of those changes that is missing, with the small-sample bias
    taken off.

    Args:
        changes: changes of state, all canaries together; shape (series,).
        totals: hits of each canary; shape (series, canaries).
        cycles: cycles looked at; shape (series,).

    Returns:
        0 (none) to 0.95; shape (series,).
    """
    n = np.maximum(cycles, 1).astype(float)
    expected = (2 * totals * (n[:, None] - totals)).sum(axis=1) / n
    seen = changes + np.sqrt(changes)  # one standard error more: what may be chance is not taken for carry-over
    missing = 1 - (seen + _PRIOR) / (expected + _PRIOR)
    return np.asarray(np.clip(missing * (1 + 4 / n), 0.0, _MOST))


@lru_cache(maxsize=1024)
def _lags(reference: int, gap: int, recent: int) -> tuple[Ints, Floats]:
    """Lags at which a contrast meets itself, and the products there over its product with itself."""
    weights = np.concatenate((np.full(reference, -1 / reference), np.zeros(gap), np.full(recent, 1 / recent)))
    products = np.correlate(weights, weights, "full")[len(weights) - 1 :]
    lags = np.flatnonzero(products)[1:]
    return lags, products[lags] / products[0]


def inflation(contrast: Contrast, carried: Floats) -> Floats:
    """How many times larger a contrast's variance is when states carry over; at least 1."""
    (first, until), (start, stop) = contrast.reference, contrast.recent
    lags, products = _lags(until - first, min(start - until, _FAR), stop - start)
    return np.maximum(1 + 2 * (products @ carried[None, :] ** lags[:, None]), 1.0)


def discounted(p: Floats, inflated: Floats) -> Floats:
    """The p value read on a normal scale stretched by the inflation."""
    z = ndtri(np.clip(p, 1e-300, 1.0))
    return np.where(inflated > 1.0, ndtr(z / np.sqrt(inflated)), p)
