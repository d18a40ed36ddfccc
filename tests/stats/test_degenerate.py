"""Input that has no answer gets a reason, never NaN, infinity, p = 0 or an interval that looks certain."""

import warnings

import numpy as np
import pytest

from akm_harbor.stats.binomial import arm_proportion, newcombe_difference, proportion, unbalanced
from akm_harbor.stats.bootstrap import bootstrap_mean
from akm_harbor.stats.bounds import TaskCounts, difference_bounds
from akm_harbor.stats.equivalence import equivalence
from akm_harbor.stats.mcnemar import mcnemar
from akm_harbor.stats.means import arm_mean, fixed_task_mean, standard_errors, variance_components
from akm_harbor.stats.models import gee_log_odds, mixed_logit
from akm_harbor.stats.paired import fixed_task_difference, paired_difference, paired_t, pairing_gain
from akm_harbor.stats.passk import arm_pass_k, paired_pass_k, pass_at_k, pass_hat_k, usable_k
from akm_harbor.stats.power import REFERENCE, difference_components, minimum_detectable, sample_size
from akm_harbor.stats.ratios import geometric_ratio, ratio_of_means
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, clamp_p
from akm_harbor.stats.signflip import sign_flip, sign_flip_attempts

NONE: list[list[int]] = []
ONE = [[1, 0, 1]]
ZEROS, ONES = [[0, 0]] * 8, [[1, 1]] * 8
MIXED = [[0, 1], [1, 1], [0, 0], [1, 0]]
THIRDS_A, THIRDS_B = [[1, 0, 0], [1, 1, 0]], [[1, 1, 0], [1, 1, 1]]

TABLE = [
    ("no task, arm", lambda: arm_mean(NONE), "no-task"),
    ("one task, arm", lambda: arm_mean(ONE), "one-task"),
    ("all solved, arm", lambda: arm_mean(ONES), "all-tied"),
    ("no task, fixed", lambda: fixed_task_mean(NONE), "no-task"),
    ("single attempts, fixed", lambda: fixed_task_mean([[1], [0]]), "one-attempt"),
    ("attempts agree, fixed", lambda: fixed_task_mean([[1, 1], [0, 0]]), "no-within-variation"),
    ("one task, errors", lambda: standard_errors(ONE), "one-task"),
    ("all solved, errors", lambda: standard_errors(ONES), "all-tied"),
    ("task sums cancel", lambda: standard_errors([[0, 1], [1, 0]]), "all-tied"),
    ("one task, components", lambda: variance_components(ONE), "one-task"),
    ("single attempts, components", lambda: variance_components([[1], [0]]), "one-attempt"),
    ("all equal, components", lambda: variance_components(ZEROS), "all-tied"),
    ("no task, paired", lambda: paired_difference(NONE, NONE), "no-task"),
    ("one task, paired", lambda: paired_difference(ONE, ONE), "one-task"),
    ("tied, paired", lambda: paired_difference(MIXED, MIXED), "all-tied"),
    ("constant, paired", lambda: paired_difference(ZEROS, ONES), "constant-difference"),
    ("constant but for rounding", lambda: paired_difference(THIRDS_A, THIRDS_B), "constant-difference"),
    ("no task, fixed difference", lambda: fixed_task_difference(NONE, NONE), "no-task"),
    ("single attempts, fixed difference", lambda: fixed_task_difference([[1]], [[0]]), "one-attempt"),
    ("attempts agree, fixed difference", lambda: fixed_task_difference(ZEROS, ONES), "no-within-variation"),
    ("one task, pairing", lambda: pairing_gain(ONE, ONE), "one-task"),
    ("constant arm, pairing", lambda: pairing_gain(ZEROS, [[1, 0]] * 7 + [[1, 1]]), "all-tied"),
    ("no task, sign flip", lambda: sign_flip([]), "no-task"),
    ("tied, sign flip", lambda: sign_flip_attempts(MIXED, MIXED), "all-tied"),
    ("constant, bootstrap", lambda: bootstrap_mean([0.5] * 9, "BCa"), "constant-difference"),
    ("tied, bootstrap", lambda: bootstrap_mean([0.0] * 9), "all-tied"),
    ("one task, bootstrap", lambda: bootstrap_mean([0.5]), "one-task"),
    ("no task, bootstrap", lambda: bootstrap_mean([]), "no-task"),
    ("no attempt, proportion", lambda: proportion(0, 0), "no-attempt"),
    ("normal at zero", lambda: proportion(0, 20, "normal"), "boundary"),
    ("all solved, effective", lambda: arm_proportion(ONES), "all-tied"),
    ("empty arm, Newcombe", lambda: newcombe_difference(0, 0, 1, 3), "empty-arm"),
    ("empty arm, balance", lambda: unbalanced(0, 0, 1, 3), "empty-arm"),
    ("no error at all", lambda: unbalanced(0, 9, 0, 9), "no-event"),
    ("errors only", lambda: unbalanced(9, 9, 9, 9), "no-event"),
    ("fractional, pass@k", lambda: arm_pass_k([[0.5]], 1), "not-binary"),
    ("too few, pass@k", lambda: arm_pass_k([[1, 0], [1]], 2), "too-few-attempts"),
    ("no task, pass@k", lambda: arm_pass_k(NONE, 1), "no-task"),
    ("fractional treatment, pass@k", lambda: paired_pass_k([[1]], [[0.5]], 1), "not-binary"),
    ("constant, pass@k", lambda: paired_pass_k(ZEROS, ONES, 2), "constant-difference"),
    ("agree, McNemar", lambda: mcnemar([[5, 0], [0, 4]]), "all-tied"),
    ("empty, McNemar", lambda: mcnemar([[0, 0], [0, 0]]), "all-tied"),
    ("tied, equivalence", lambda: equivalence([0.0, 0.0], 0.1), "all-tied"),
    ("one task, components of d", lambda: difference_components(ONE, ONE), "one-task"),
    ("constant, components of d", lambda: difference_components(ZEROS, ONES), "all-tied"),
    ("one task, power", lambda: minimum_detectable(1, REFERENCE), "one-task"),
    ("no task, power", lambda: minimum_detectable(0, REFERENCE), "no-task"),
    ("no task, ratio", lambda: ratio_of_means([], []), "no-task"),
    ("one task, ratio", lambda: ratio_of_means([1.0], [2.0]), "one-task"),
    ("free baseline, ratio", lambda: ratio_of_means([0.0, 0.0], [1.0, 2.0]), "zero-baseline"),
    ("same ratio everywhere", lambda: ratio_of_means([1.0, 2.0], [2.0, 4.0]), "constant-ratio"),
    ("noisy baseline, Fieller", lambda: ratio_of_means([0.0, 100.0, 0.0], [1.0, 2.0, 3.0]), "unbounded"),
    ("zero, geometric", lambda: geometric_ratio([0.0, 1.0], [1.0, 1.0]), "not-positive"),
    ("same ratio, geometric", lambda: geometric_ratio([1.0, 2.0], [2.0, 4.0]), "constant-ratio"),
    ("one task, geometric", lambda: geometric_ratio([1.0], [2.0]), "one-task"),
    ("no task, geometric", lambda: geometric_ratio([], []), "no-task"),
    ("separation, GEE", lambda: gee_log_odds(ZEROS, ONES), "separation"),
    ("one arm all solved, GEE", lambda: gee_log_odds(MIXED, [[1, 1]] * 4), "separation"),
    ("one task, GEE", lambda: gee_log_odds(ONE, ONE), "one-task"),
    ("tied, GEE", lambda: gee_log_odds(MIXED, MIXED), "constant-difference"),
    (
        "tied with unequal attempts, GEE",
        lambda: gee_log_odds([[1, 0], [1, 1, 0]], [[1, 0], [1, 1, 0]]),
        "constant-difference",
    ),
    ("constant, GEE", lambda: gee_log_odds([[1, 0, 1]] * 5, [[1, 0, 0]] * 5), "constant-difference"),
    ("tasks that swap, GEE", lambda: gee_log_odds([[1], [0]], [[0], [1]]), "no-fit"),
    ("fractional, GEE", lambda: gee_log_odds([[0.5], [1]], [[0], [1]]), "not-binary"),
    ("separation, mixed", lambda: mixed_logit(ZEROS, ONES), "separation"),
]


@pytest.mark.parametrize(("call", "reason"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_reason_instead_of_a_number(call, reason):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = call()
    assert isinstance(found, NotEstimable)
    assert found.reason == reason
    assert found.detail.endswith(".")
    assert found.value is None or np.isfinite(found.value)


def test_point_estimate_survives_without_an_interval():
    assert paired_difference(ZEROS, ONES).value == 1.0
    assert sign_flip_attempts(ZEROS, ONES).p == pytest.approx(2 / 2**8)


def test_strong_but_not_perfect_separation_is_suppressed():
    found = gee_log_odds([[0]] * 56 + [[1]], [[1]] * 57)
    assert isinstance(found, NotEstimable)


def test_bounds_without_a_shared_task():
    assert difference_bounds([TaskCounts(0, 0, 0)], [TaskCounts(1, 1, 0)]) is None


@pytest.mark.parametrize(
    "bad",
    [
        lambda: paired_t([0.1, float("nan")]),
        lambda: arm_mean([[1, float("inf")]]),
        lambda: arm_mean([[]]),
        lambda: paired_difference([[1]], [[1], [0]]),
        lambda: sign_flip_attempts([[1]], [[1], [0]]),
        lambda: difference_bounds([TaskCounts(0, 1, 0)], []),
        lambda: proportion(4, 3),
        lambda: pass_at_k(3, 1, 4),
        lambda: pass_hat_k(3, 4, 1),
        lambda: pass_at_k(3, 1, 0),
        lambda: equivalence([0.1, 0.2], 0),
        lambda: sample_size(0.0, REFERENCE),
        lambda: ratio_of_means([1.0], [1.0, 2.0]),
        lambda: ratio_of_means([float("nan")], [1.0]),
        lambda: Interval(1.0, 0.0, 0.95),
        lambda: Interval(0.0, float("nan"), 0.95),
        lambda: Interval(0.0, 1.0, 1.0),
        lambda: Estimate(float("nan"), "m", "e", 1),
        lambda: Estimate(0.0, "m", "e", 1, se=0.0),
        lambda: Estimate(0.0, "m", "e", 1, p=0.0),
        lambda: NotEstimable("r", "d", "m", "e", 1, float("inf")),
        lambda: TaskCounts(0, 0, 0).mean(0.0),
    ],
)
def test_senseless_input_raises(bad):
    with pytest.raises(ValueError, match=r"."):
        bad()


def test_p_that_underflows_is_tiny_not_zero():
    assert 0 < clamp_p(0.0) < 1e-300
    assert paired_t([1.0 + 1e-9 * i for i in range(400)]).p > 0


def test_usable_k_stops_at_the_smallest_task():
    assert list(usable_k([[1, 0, 1], [1, 0]], [[1] * 4, [0] * 4])) == [1, 2]
    assert list(usable_k([])) == []
