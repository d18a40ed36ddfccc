from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import binom, multivariate_normal

from akm_harbor.canary.alerts.exact import (
    Contrast,
    correlations,
    dependability,
    excess_p,
    lower_p,
    share,
    smallest_p,
)


def _by_hand(totals: list[int], recent: list[int], n: int, m: int) -> float:
    """Enumerate every way the hits of every canary can fall into the recent cycles."""
    weights = dependability(np.arange(n + 1), n)
    observed = sum(int(weights[s]) * y for s, y in zip(totals, recent, strict=True))
    below = 0.0
    for outcome in product(*(range(m + 1) for _ in totals)):
        mass = 1.0
        for s, y in zip(totals, outcome, strict=True):
            mass *= comb(m, y) * comb(n - m, s - y) / comb(n, s) if 0 <= s - y <= n - m else 0.0
        score = sum(int(weights[s]) * y for s, y in zip(totals, outcome, strict=True))
        below += mass * (1.0 if score < observed else 0.5 if score == observed else 0.0)
    return below


@pytest.mark.parametrize(
    ("totals", "recent", "n", "m"),
    [
        ([5, 5, 6, 0, 3], [0, 0, 1, 0, 1], 6, 1),
        ([5, 5, 6, 0, 3], [1, 1, 1, 0, 1], 6, 1),
        ([20, 21, 10, 23], [1, 2, 0, 3], 23, 3),
        ([2, 2, 2], [0, 0, 0], 3, 1),
    ],
)
def test_exact_against_enumeration(totals: list[int], recent: list[int], n: int, m: int) -> None:
    (p,) = lower_p(np.array([totals]), np.array([recent]), n, m)
    assert p == pytest.approx(_by_hand(totals, recent, n, m), abs=1e-12)


def test_always_and_never_found_say_nothing() -> None:
    (alone,) = lower_p(np.array([[5, 4]]), np.array([[0, 1]]), 6, 1)
    (crowd,) = lower_p(np.array([[5, 4, 6, 6, 0]]), np.array([[0, 1, 1, 1, 0]]), 6, 1)
    assert alone == pytest.approx(crowd, abs=1e-12)
    (silent,) = lower_p(np.array([[6, 0]]), np.array([[1, 0]]), 6, 1)
    assert silent == pytest.approx(0.5)


def test_the_dependable_canary_weighs_more() -> None:
    weights = dependability(np.arange(7), 6)
    assert (weights[0], weights[6]) == (3, 15)
    assert list(weights) == sorted(weights)
    lost_dependable, lost_flickering = lower_p(np.array([[5, 2], [5, 2]]), np.array([[0, 1], [1, 0]]), 6, 1)
    assert lost_dependable < lost_flickering


def test_weights_may_come_from_before_the_stretch() -> None:
    totals, recent = np.array([[5, 5], [5, 5]]), np.array([[0, 1], [1, 0]])
    first, second = lower_p(totals, recent, 6, 1, np.array([[15, 3], [15, 3]]))
    assert first < second
    same = lower_p(totals, recent, 6, 1, np.array([[9, 9], [9, 9]]))
    assert same[0] == pytest.approx(same[1])


def test_many_series_at_once_are_each_series_alone() -> None:
    rng = np.random.default_rng(0)
    hits = rng.random((50, 40, 23)) < 0.8
    totals, recent = hits.sum(axis=2), hits[:, :, -3:].sum(axis=2)
    together = lower_p(totals, recent, 23, 3)
    alone = [lower_p(totals[i : i + 1], recent[i : i + 1], 23, 3)[0] for i in range(50)]
    assert together == pytest.approx(alone, abs=1e-12)


CONTRASTS = (Contrast((54, 59), (59, 60)), Contrast((37, 57), (57, 60)), Contrast((0, 20), (50, 60)))


def test_correlations_come_from_the_design() -> None:
    found = np.array(correlations(CONTRASTS))
    rows = np.zeros((3, 60))
    for row, contrast in zip(rows, CONTRASTS, strict=True):
        row[slice(*contrast.recent)] = 1 / contrast.m
        row[slice(*contrast.reference)] = -1 / (contrast.n - contrast.m)
    assert found == pytest.approx(np.corrcoef(rows), abs=1e-8)


@pytest.mark.parametrize("count", [2, 3])
def test_the_smallest_of_several_p_values(count: int) -> None:
    correlated = correlations(CONTRASTS[:count])
    p = 0.01
    z = 2.3263478740408408
    joint = multivariate_normal(np.zeros(count), np.array(correlated))
    assert smallest_p(p, correlated) == pytest.approx(1 - joint.cdf(np.full(count, z)), abs=2e-5)
    assert smallest_p(p, ((1.0,),)) == p


@pytest.mark.parametrize("alpha", [0.01, 0.02, 0.05])
def test_sharing_the_rate_spends_all_of_it(alpha: float) -> None:
    correlated = correlations(CONTRASTS)
    alone = share(alpha, correlated)
    assert alpha / 3 < alone < alpha / 2
    assert smallest_p(alone, correlated) == pytest.approx(alpha, rel=1e-5)


def test_excess_is_the_binomial_split_of_two_counts() -> None:
    assert excess_p(5, 50, 1, 100) == pytest.approx(binom.sf(5, 6, 1 / 3) + binom.pmf(5, 6, 1 / 3) / 2)
    assert excess_p(0, 50, 0, 100) == 1.0
    assert excess_p(130, 10_000, 100, 10_000) > 0.01
    assert excess_p(150, 10_000, 100, 10_000) < 0.001
