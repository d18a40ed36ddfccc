"""The complier effect against statsmodels' two-stage least squares, and the cases in which there is none."""

import numpy as np
import pytest
from scipy import stats
from statsmodels.sandbox.regression.gmm import IV2SLS

from akm_harbor.stats.instrument import complier_effect, first_stage
from akm_harbor.stats.paired import paired_difference
from akm_harbor.stats.results import Estimate, NotEstimable

EFFECT, TAKEN = 0.5, 0.7


def trial_data(rng, n=24, k=3):
    """Compliers gain, nobody takes it up without the treatment: (baseline, treatment, no uptake, uptake)."""
    level = rng.uniform(0.1, 0.4, n)
    base = rng.binomial(1, level[:, None], (n, k)).astype(float)
    took = rng.binomial(1, TAKEN, (n, k)).astype(float)
    treated = rng.binomial(1, level[:, None] + EFFECT * took).astype(float)
    return base, treated, np.zeros((n, k)), took


@pytest.fixture
def data():
    return trial_data(np.random.default_rng(5))


def test_the_point_is_two_stage_least_squares_with_task_effects(data):
    base, treated, none, took = data
    n, k = base.shape
    y = np.concatenate([base.ravel(), treated.ravel()])
    d = np.concatenate([none.ravel(), took.ravel()])
    z = np.repeat([0.0, 1.0], n * k)
    tasks = np.tile(np.kron(np.eye(n), np.ones((k, 1))), (2, 1))
    two_stage = IV2SLS(y, np.column_stack([d, tasks]), np.column_stack([z, tasks])).fit()
    got = complier_effect(*data)
    assert got.value == pytest.approx(two_stage.params[0], abs=1e-10)
    itt = paired_difference(base, treated)
    assert got.value == pytest.approx(itt.value / took.mean())
    assert (got.p, got.statistic, got.df) == (itt.p, itt.statistic, n - 1)


def test_the_interval_is_what_the_anderson_rubin_test_does_not_reject(data):
    base, treated, none, took = data
    got = complier_effect(*data)
    outcome, uptake = (treated - base).mean(axis=1), (took - none).mean(axis=1)
    for limit, step in ((got.interval.low, 1e-6), (got.interval.high, -1e-6)):
        inside, outside = (stats.ttest_1samp(outcome - b * uptake, 0).pvalue for b in (limit + step, limit - step))
        assert outside < 0.05 < inside
    assert got.interval.low < got.value < got.interval.high


def test_full_uptake_is_the_intention_to_treat(data):
    base, treated, none, _ = data
    got, itt = complier_effect(base, treated, none, np.ones_like(none)), paired_difference(base, treated)
    assert got.value == pytest.approx(itt.value)
    assert (got.interval.low, got.interval.high) == pytest.approx((itt.interval.low, itt.interval.high))
    assert got.se == pytest.approx(itt.se)
    stage = first_stage(none, np.ones_like(none))
    assert (stage.f, stage.weak, stage.treatment) == (None, False, 1.0)


def test_uptake_in_the_baseline_is_taken_off(data):
    base, treated, none, took = data
    some = none.copy()
    some[:4, 0] = 1.0
    assert complier_effect(base, treated, some, took).value > complier_effect(*data).value


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda b, t, n, u: (b, t, n, n), "no-uptake"),
        (lambda b, t, n, u: (b, t, n, np.eye(24, 3) * u), "weak-instrument"),
        (lambda b, t, n, u: (b[:1], t[:1], n[:1], u[:1]), "one-task"),
        (lambda b, t, n, u: (b[:0], t[:0], n[:0], u[:0]), "no-task"),
        (lambda b, t, n, u: (n, u, n, u), "constant-difference"),
    ],
)
def test_what_cannot_be_estimated_says_why(data, change, reason):
    got = complier_effect(*change(*data))
    assert isinstance(got, NotEstimable)
    assert got.reason == reason


def test_a_weak_instrument_gives_no_number(data):
    base, treated, none, took = data
    got = complier_effect(base, treated, none, np.eye(24, 3) * took)
    assert got.value is None
    assert "below 10" in got.detail


def test_arms_must_have_the_same_tasks(data):
    base, treated, none, took = data
    with pytest.raises(ValueError, match="24 tasks with outcomes and 23"):
        complier_effect(base, treated, none[1:], took[1:])


def test_the_interval_covers_what_it_says():
    rng = np.random.default_rng(7)
    got = [complier_effect(*trial_data(rng)) for _ in range(400)]
    assert all(isinstance(g, Estimate) for g in got)
    covered = np.mean([g.interval.low <= EFFECT <= g.interval.high for g in got])
    assert 0.92 <= covered <= 0.98
