"""What must hold on any data, against independent computations."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from akm_harbor.stats.attempts import unequal_note
from akm_harbor.stats.means import arm_mean
from akm_harbor.stats.multiplicity import adjusted
from akm_harbor.stats.paired import paired_difference, paired_t
from akm_harbor.stats.passk import arm_pass_k, paired_pass_k, pass_at_k, pass_hat_k
from akm_harbor.stats.power import REFERENCE, Components, difference_components, mde_from_spread, minimum_detectable
from akm_harbor.stats.results import Estimate, NotEstimable
from akm_harbor.stats.sequential import boundaries, crossing_probability
from akm_harbor.stats.signflip import sign_flip, sign_flip_attempts

rewards = st.lists(st.integers(0, 1), min_size=1, max_size=5)
arms = st.integers(1, 8).flatmap(
    lambda n: st.tuples(st.lists(rewards, min_size=n, max_size=n), st.lists(rewards, min_size=n, max_size=n))
)


def brute_force(differences):
    """Every sign pattern, the slow way."""
    d = np.asarray(differences, dtype=float)
    observed = abs(d.sum()) - 1e-9
    sums = [abs((np.array(signs) * d).sum()) for signs in itertools.product((-1, 1), repeat=len(d))]
    return sum(s >= observed for s in sums) / len(sums)


@given(arms)
@settings(max_examples=150, deadline=None)
def test_sign_flip_is_exact_for_unequal_attempts(pair):
    a, b = pair
    d = [np.mean(y) - np.mean(x) for x, y in zip(a, b, strict=True)]
    found = sign_flip_attempts(a, b)
    if max(map(abs, d)) < 1e-12:
        assert isinstance(found, NotEstimable)
    else:
        assert found.p == pytest.approx(brute_force(d))
        assert found.method == "exact sign-flip test"


def test_sign_flip_without_a_common_denominator_is_enumerated_then_sampled():
    rng = np.random.default_rng(3)
    few, many = rng.normal(0.4, 1, 9), rng.normal(0.4, 1, 30)
    assert sign_flip(few).p == pytest.approx(brute_force(few))
    sampled = sign_flip(many)
    assert "sampled" in sampled.method
    assert sampled.p == pytest.approx(stats.ttest_1samp(many, 0).pvalue, abs=0.02)
    assert sign_flip(many, seed=1).p == sign_flip(many, seed=1).p


@given(arms)
@settings(max_examples=150, deadline=None)
def test_paired_difference_agrees_with_scipy(pair):
    a, b = pair
    found = paired_difference(a, b)
    means = [np.array([np.mean(t) for t in arm]) for arm in pair]
    if isinstance(found, Estimate):
        expected = stats.ttest_rel(means[1], means[0])
        limits = expected.confidence_interval(0.95)
        assert found.p == pytest.approx(expected.pvalue)
        assert (found.interval.low, found.interval.high) == pytest.approx((limits.low, limits.high))
        assert found.interval.low <= found.value <= found.interval.high
    elif found.value is not None:
        assert found.value == pytest.approx((means[1] - means[0]).mean())


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_k_by_enumeration(nck):
    n, c, k = nck
    draws = list(itertools.combinations([1] * c + [0] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, draws)) / len(draws))
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, draws)) / len(draws))


def test_pass_1_is_the_mean_and_pairs_like_the_headline():
    a, b = [[1, 0, 0], [0, 0, 0], [1, 1, 1]], [[1, 1, 0], [1, 0, 0], [1, 1, 1]]
    assert [arm_pass_k(a, 1, kind).value for kind in ("pass@k", "pass^k")] == pytest.approx([4 / 9, 4 / 9])
    assert paired_pass_k(a, b, 1).p == pytest.approx(paired_difference(a, b).p)


def test_interval_covers_more_at_a_higher_level():
    d = [0.1, 0.4, -0.2, 0.3, 0.0, 0.2]
    narrow, wide = paired_t(d, 0.8).interval, paired_t(d, 0.99).interval
    assert wide.low < narrow.low < narrow.high < wide.high


def test_minimum_detectable_has_its_power_in_simulation():
    found = minimum_detectable(19, Components(0.04, 0, 0, "test"))
    d = np.random.default_rng(0).normal(found.value, 0.2, (20_000, 19))
    p = stats.ttest_1samp(d, 0.0, axis=1).pvalue
    assert (p < 0.05).mean() == pytest.approx(0.8, abs=0.01)
    assert mde_from_spread(0.2 / np.sqrt(19), 19).value == pytest.approx(found.value)


@pytest.mark.parametrize("n", [3, 5, 19, 89])
def test_student_factor_against_the_noncentral_t(n):
    found = mde_from_spread(1.0, n).value
    critical = stats.t.ppf(0.975, n - 1)
    assert stats.nct.sf(critical, n - 1, found) + stats.nct.cdf(-critical, n - 1, found) == pytest.approx(0.8, abs=2e-4)


def test_two_tasks_need_an_enormous_difference():
    assert mde_from_spread(1.0, 2).value > 10


def test_more_tasks_and_more_attempts_see_smaller_differences():
    def mde(n, k):
        return minimum_detectable(n, REFERENCE, k, k).value

    assert mde(19, 3) > mde(46, 3) > mde(89, 5) > mde(500, 10)
    assert mde(19, 1) > mde(19, 3)


def test_difference_components_find_what_was_simulated():
    rng = np.random.default_rng(5)
    p_a = rng.uniform(0.2, 0.8, 3000)
    p_b = np.clip(p_a + rng.normal(0, 0.1, 3000), 0, 1)
    a, b = (rng.binomial(1, p[:, None], (3000, 3)) for p in (p_a, p_b))
    found = difference_components(a, b)
    assert found.between == pytest.approx(np.var(p_b - p_a), abs=0.01)
    assert found.within_baseline == pytest.approx(np.mean(p_a * (1 - p_a)), abs=0.01)
    single = difference_components(a[:, :1], b[:, :1])
    assert (single.within_baseline, len(single.notes)) == (0.0, 1)


def test_sequential_limits_are_the_published_ones():
    assert boundaries(5, "pocock") == pytest.approx([2.413] * 5, abs=2e-3)
    assert boundaries(5) == pytest.approx([2.040 * np.sqrt(5 / i) for i in range(1, 6)], abs=3e-3)
    assert boundaries(1) == pytest.approx([1.95996], abs=1e-4)
    assert crossing_probability(np.arange(1, 6) / 5, [1.959964] * 5) == pytest.approx(0.1417, abs=1e-3)
    with pytest.raises(ValueError, match="rise to 1"):
        boundaries([0.5, 0.4, 1.0])


def test_holm_on_three_contrasts():
    assert adjusted([0.012, 0.031, 0.044]) == pytest.approx((0.036, 0.062, 0.062))
    assert adjusted([]) == ()
    with pytest.raises(ValueError, match="between 0 and 1"):
        adjusted([0.1, float("nan")])


def test_an_arms_mean_and_its_error_weigh_tasks_alike():
    found = arm_mean([[1, 1, 1, 1, 0], [0, 0, 1], [1]])
    means = np.array([4 / 5, 1 / 3, 1])
    assert (found.value, found.se) == pytest.approx((means.mean(), stats.sem(means)))
    assert "tasks" in found.estimand
    assert "range from 1 to 5" in found.notes[0]


def test_unequal_attempts_are_noted():
    assert unequal_note([[1, 0]], [[1, 0]]) == ()
    assert "range from 1 to 3" in unequal_note([[1, 0, 0]], [[1]])[0]
