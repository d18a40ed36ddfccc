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
    missing = 1 - (changes + _PRIOR) / (expected + _PRIOR)
    return np.asarray(np.clip(missing * (1 + 4 / n), 0.0, _MOST))


@lru_cache(maxsize=1024)
def _lags(contrast: Contrast) -> tuple[tuple[int, float], ...]:
    """The contrast's products by lag, over its product with itself."""
    (first, until), (start, stop) = contrast.reference, contrast.recent
    weights = np.zeros(stop - first)
    weights[: until - first] = -1 / (until - first)
    weights[start - first :] = 1 / contrast.m
    products = np.correlate(weights, weights, "full")[len(weights) - 1 :]
    return tuple((lag, float(value / products[0])) for lag, value in enumerate(products) if lag and value)


def inflation(contrast: Contrast, carried: Floats) -> Floats:
    """How many times larger a contrast's variance is when states carry over; at least 1."""
    made = np.ones_like(carried)
    for lag, product in _lags(contrast):
        made += 2 * product * carried**lag
    return np.maximum(made, 1.0)


def discounted(p: Floats, inflated: Floats) -> Floats:
    """The p value read on a normal scale stretched by the inflation."""
    z = ndtri(np.clip(p, 1e-300, 1.0))
    return np.where(inflated > 1.0, ndtr(z / np.sqrt(inflated)), p)
