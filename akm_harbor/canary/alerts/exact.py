"""Exact paired test: have the canaries been found less often lately than before.

The model: each canary is found with its own probability, which stays as it is, independently
from cycle to cycle. Given how often a canary was found in a stretch of N cycles, every
placing of those hits in the stretch is equally likely, whatever the probability; so the hits
among the last m are hypergeometric and no probability has to be estimated. A canary that was
always or never found says nothing and drops out.

The statistic is a whole number: the hits of the last m cycles, each counted 3 to 15 times by
how dependable the canary was. Losing an anchor that always came up weighs
more than missing one that flickers, and the finer grid lets the test reach the rate asked for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.fft import next_fast_len
from scipy.special import bdtrc, ndtr, ndtri
from scipy.stats import hypergeom

type Ints = NDArray[np.int64]
type Floats = NDArray[np.float64]

_LIGHT, _SPREAD = 3, 12
_HEAVY = _LIGHT + _SPREAD
_CHUNK = 4_000_000
"""Complex numbers held at once (64 MB)."""


@dataclass(frozen=True, slots=True)
class Contrast:
    """Which cycles are compared, as positions in a series.

    Attributes:
        reference: first and one past the last cycle of the reference.
        recent: first and one past the last cycle under test.
    """

    reference: tuple[int, int]
    recent: tuple[int, int]

    @property
    def m(self) -> int:
        """Cycles under test."""
        return self.recent[1] - self.recent[0]

    @property
    def n(self) -> int:
        """Cycles altogether."""
        return self.m + self.reference[1] - self.reference[0]

    @property
    def steps(self) -> tuple[tuple[tuple[int, int], float], tuple[tuple[int, int], float]]:
        """The contrast as a step function over cycles: mean of the recent minus mean of the reference."""
        return (self.recent, 1 / self.m), (self.reference, -1 / (self.n - self.m))


def dependability(hits: Ints, cycles: Ints | int) -> Ints:
    """How often one hit of a canary counts, by its record: 3 (never found) to 15 (always)."""
    return np.asarray(_LIGHT + (2 * _SPREAD * hits * hits + cycles * cycles) // (2 * cycles * cycles))


@lru_cache(maxsize=512)
def _spectrum(n: int, m: int, hits: int, weight: int, length: int) -> NDArray[np.complex128]:
    """Log transform of one canary's score, given its hits in the stretch and the weight of each."""
    frequency = np.arange(length // 2 + 1)
    turn = np.exp(-2j * np.pi * frequency * weight / length)
    mass = hypergeom.pmf(np.arange(m + 1), n, hits, m)
    spectrum = np.polynomial.polynomial.polyval(turn, mass.astype(complex))
    return np.asarray(np.log(np.maximum(np.abs(spectrum), 1e-300)) + 1j * np.angle(spectrum))


def lower_p(totals: Ints, recent: Ints, n: int, m: int, weights: Ints | None = None) -> Floats:
    """One-sided mid-p of every series: is the recent score low, given each canary's total.

    Args:
        totals: hits in the n cycles; shape (series, canaries).
        recent: hits in the last m of them; same shape.
        n: cycles of a stretch.
        m: cycles under test.
        weights: how often a hit counts, 3 to 15; same shape. May come from the totals and from
            anything before the stretch, never from where in the stretch the hits are. By
            default the dependability in the stretch.

    Returns:
        P(score < observed) + P(score = observed) / 2 under the model, shape (series,). Exact
        up to rounding of about 1e-13.
    """
    if weights is None:
        weights = dependability(totals, n)
    length = int(next_fast_len(totals.shape[1] * m * _HEAVY + 1, real=True))
    score = (recent * weights).sum(axis=1)
    kinds, of_kind = np.unique(totals * (_HEAVY + 1) + weights, return_inverse=True)
    of_kind = of_kind.reshape(totals.shape)
    logs = np.array([_spectrum(n, m, int(k) // (_HEAVY + 1), int(k) % (_HEAVY + 1), length) for k in kinds])
    result = np.empty(len(totals))
    step = max(1, _CHUNK // length)
    for start in range(0, len(totals), step):
        part = slice(start, start + step)
        counts = np.zeros((len(score[part]), len(kinds)))
        np.add.at(counts, (np.arange(len(counts))[:, None], of_kind[part]), 1.0)
        mass = np.fft.irfft(np.exp(counts @ logs), n=length, axis=1)
        below = np.cumsum(mass, axis=1)
        row, at = np.arange(len(counts)), score[part]
        result[part] = below[row, at] - mass[row, at] / 2
    return np.clip(result, 0.0, 1.0)


# --- several contrasts at once ------------------------------------------------------------

type Correlations = tuple[tuple[float, ...], ...]
"""A correlation matrix that can be a key."""


def correlations(contrasts: Sequence[Contrast]) -> Correlations:
    """Correlations of the contrasts when cycles are independent: they depend on the design only."""

    def product(one: Contrast, other: Contrast) -> float:
        return sum(
            max(0, min(a[1], b[1]) - max(a[0], b[0])) * left * right
            for a, left in one.steps
            for b, right in other.steps
        )

    scale = [product(one, one) ** 0.5 for one in contrasts]
    return tuple(
        tuple(round(product(one, other) / (scale[i] * scale[j]), 9) for j, other in enumerate(contrasts))
        for i, one in enumerate(contrasts)
    )


_NODE, _WEIGHT = np.polynomial.legendre.leggauss(48)
_NODE, _WEIGHT = (_NODE + 1) / 2, _WEIGHT / 2


@lru_cache(maxsize=8192)
def smallest_p(p: float, correlated: Correlations) -> float:
    """How likely the smallest of the p values is to be this small: one p value for all of them.

    The contrasts share cycles, so counting each in full (Bonferroni) would waste part of the
    rate. Their joint distribution is taken as normal with the known correlations (at most
    three of them); a fixed Gauss-Legendre grid over Genz's transform makes it the same number
    every time.
    """
    if len(correlated) == 1 or p <= 0 or p >= 1:
        return p
    root = np.linalg.cholesky(np.array(correlated))
    z = float(ndtri(1 - p))
    below = float(ndtr(z))
    first = ndtri(_NODE * below)
    second = ndtr((z - root[1, 0] * first) / root[1, 1])
    if len(correlated) == 2:
        return float(1 - below * (_WEIGHT @ second))
    inner = ndtri(_NODE[:, None] * second[None, :])
    third = ndtr((z - root[2, 0] * first[None, :] - root[2, 1] * inner) / root[2, 2])
    return float(1 - below * ((_WEIGHT @ third) * second @ _WEIGHT))


@lru_cache(maxsize=1024)
def share(alpha: float, correlated: Correlations) -> float:
    """The p value at which each contrast alone must fire so that together they keep to alpha."""
    low, high = alpha / len(correlated), alpha
    while high - low > 1e-7 * alpha:
        middle = (low + high) / 2
        if smallest_p(middle, correlated) > alpha:
            high = middle
        else:
            low = middle
    return low


# --- counts that belong to the whole store -------------------------------------------------


def excess_p(now: int, now_size: int, before: int, before_size: int) -> float:
    """One-sided mid-p: is a count high for its store's size, against one earlier count.

    Given their sum, two Poisson counts with equal rates split binomially by size; the bound on
    the share therefore narrows with the square root of the store.
    """
    total = now + before
    if total == 0 or now_size + before_size == 0:
        return 1.0
    q = now_size / (now_size + before_size)
    return float((bdtrc(now - 1, total, q) if now else 1.0) + bdtrc(now, total, q)) / 2
