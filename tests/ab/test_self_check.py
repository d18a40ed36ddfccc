"""The self-check measures what it says: exact p against the product's own test, intervals against its own interval."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from akm_harbor.ab.self_check import Measured, self_check
from akm_harbor.ab.self_check_draws import dealt, exact_p, flipped, intervals, padded, redrawn
from akm_harbor.ab.self_check_page import write_self_check
from akm_harbor.errors import UsageError
from akm_harbor.report.offline import external_references
from akm_harbor.stats.paired import paired_difference, paired_t
from akm_harbor.stats.results import Estimate, NotEstimable
from akm_harbor.stats.signflip import sign_flip, sign_flip_attempts

from .support import dataset, matrix, trial


def rng():
    return np.random.default_rng(7)


def by_name(found):
    return {c.name: c.result for c in found.checks}


@pytest.fixture
def data(tmp_path, arms):
    return dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.integers(-6, 6), min_size=3, max_size=9), min_size=1, max_size=4))
def test_exact_p_is_the_products_for_any_integers(rows):
    width = min(map(len, rows))
    whole = np.array([r[:width] for r in rows])
    for row, p in zip(whole, exact_p(whole), strict=True):
        expected = sign_flip(row.astype(float))
        assert p == pytest.approx(expected.p if isinstance(expected, Estimate) else 1.0, abs=1e-12)


def test_draws_give_the_products_interval_and_p(arms):
    groups = [row[: 1 + i % 3] for i, row in enumerate(arms[1])]  # one, two or three attempts
    a, b = padded(arms[0]), padded(groups)
    drawn = flipped(rng(), a, b, 50)
    centres, half, known = intervals(drawn.values, 0.9)
    p = exact_p(drawn.whole)
    for i in range(50):
        expected = paired_t(drawn.values[i], 0.9)
        assert known[i]
        assert (centres[i] - half[i], centres[i] + half[i]) == pytest.approx(
            (expected.interval.low, expected.interval.high)
        )
    # up to its signs each draw is the real comparison, whose exact p the report prints
    signs = np.sign(drawn.values) == np.sign(padded_means(b) - padded_means(a))
    same = np.flatnonzero(np.all(signs | (drawn.values == 0), axis=1) | np.all(~signs | (drawn.values == 0), axis=1))
    for i in same:
        assert p[i] == pytest.approx(sign_flip_attempts(arms[0], groups).p)


def padded_means(attempts):
    return attempts.scores.sum(axis=1) / attempts.counts


def test_whole_differences_are_the_values_scaled(arms):
    groups = [row[: 2 + i % 2] for i, row in enumerate(arms[0])]
    attempts = padded(groups)
    drawn = dealt(rng(), attempts, attempts.counts // 2, 40, either_way=True)
    assert drawn.whole == pytest.approx(drawn.values * 2)
    partial = dealt(rng(), padded([[0.25, 0.5, 1.0], [0.0, 0.75, 1.0]]), np.array([1, 2]), 40, either_way=False)
    assert partial.whole == pytest.approx(partial.values * 8)


def test_dealing_uses_every_attempt_once():
    attempts = padded([[1.0, 2.0, 4.0, 8.0, 16.0], [0.0, 0.0, 1.0]])
    first = np.array([2, 1])
    drawn = dealt(rng(), attempts, first, 300, either_way=False).values
    sums = {round(float(v), 9) for v in drawn[:, 0]}
    numbers = [1.0, 2.0, 4.0, 8.0, 16.0]
    expected = {round((x + y) / 2 - (31 - x - y) / 3, 9) for i, x in enumerate(numbers) for y in numbers[i + 1 :]}
    assert sums == expected
    assert set(drawn[:, 1]) == {-0.5, 1.0}


def test_redrawn_centres_on_the_measured_difference(arms):
    drawn = redrawn(rng(), padded(arms[0]), padded(arms[1]), 20_000)
    truth = paired_difference(*arms).value
    assert drawn.mean() == pytest.approx(truth, abs=4 * drawn.mean(axis=1).std() / np.sqrt(20_000))


def test_rates_on_the_reference_fixture(data):
    found = self_check(data, "control", "akm", draws=4_000, seed=1)
    results = by_name(found)
    assert set(results) == {"halves-baseline", "halves-treatment", "placebo-swap", "placebo-shuffle", "redrawn"}
    for name, measured in results.items():
        assert isinstance(measured, Measured)
        assert measured.n_tasks == 19 - measured.n_left_out
        assert measured.interval_wrong.interval.low < 0.07
        if name != "redrawn":
            assert measured.truth == 0.0
            assert measured.exact_wrong.value <= 0.05 + 0.01  # guaranteed, up to Monte-Carlo error
    assert results["redrawn"].truth == pytest.approx(8 / 57)
    assert isinstance(results["redrawn"].exact_wrong, NotEstimable)
    # a swap has the exact test's own distribution: its rate can be counted without any draw
    d = np.mean(np.array(data_rewards()[1]) - np.array(data_rewards()[0]), axis=1)
    moved = d[np.abs(d) > 1e-9]
    patterns = np.array(np.meshgrid(*[[-1, 1]] * len(moved))).reshape(len(moved), -1).T * np.abs(moved)
    sums = np.abs(patterns.sum(axis=1))
    p = np.array([(sums >= s - 1e-9).mean() for s in sums])
    exact = (p <= 0.05).mean()
    assert (
        results["placebo-swap"].exact_wrong.interval.low <= exact <= results["placebo-swap"].exact_wrong.interval.high
    )


def data_rewards():
    from pathlib import Path

    path = Path(__file__).parent.parent / "data" / "stats" / "stats_reference.json"
    fixture = json.loads(path.read_text())["fixtures"]["ab19x3"]
    return fixture["arm_a"], fixture["arm_b"]


def test_same_seed_same_numbers_and_another_seed_others(data):
    one, two, other = (self_check(data, "control", "akm", draws=500, seed=s) for s in (3, 3, 4))
    assert one == two
    assert one.checks != other.checks


def test_an_interval_that_errs_is_called_out(tmp_path):
    # five tasks flip a coin, thirty never move: the t interval trusts the thirty
    rewards = [[1.0, 0.0]] * 4 + [[0.0, 0.0]] * 30
    path = dataset(tmp_path, matrix("control", rewards))
    found = self_check(path, draws=2_000)
    halves = by_name(found)["halves-baseline"]
    # all four differ the same way in 2 of 16 draws, and then t = 2.06 with 33 degrees of freedom
    assert halves.interval_wrong.interval.low <= 0.125 <= halves.interval_wrong.interval.high
    assert halves.exact_wrong.value == 0.0
    assert halves.grade == "errs"
    assert found.exit_code == 3


def test_single_attempts_cannot_be_halved_but_arms_can_be_swapped(tmp_path, arms):
    path = dataset(tmp_path, [*matrix("a", [[r[0]] for r in arms[0]]), *matrix("b", [[r[1]] for r in arms[1]])])
    results = by_name(self_check(path, "a", "b", draws=200))
    assert results["halves-baseline"].reason == "one-attempt"
    assert "cannot be split" in results["halves-baseline"].detail
    assert isinstance(results["placebo-swap"], Measured)


@pytest.mark.parametrize(
    ("rewards", "reason", "code"),
    [
        ([[1.0, 1.0]] * 4, "silent", 4),
        ([[1.0, 0.0]], "one-attempt", 4),
        ([[1.0]] * 5, "one-attempt", 4),
    ],
)
def test_what_cannot_be_measured_is_typed(tmp_path, rewards, reason, code):
    found = self_check(dataset(tmp_path, matrix("control", rewards)), draws=200)
    halves = by_name(found)["halves-baseline"]
    assert (halves.grade if isinstance(halves, Measured) else halves.reason) == reason
    assert by_name(found)["placebo-swap"].reason == "one-arm"
    assert found.exit_code == code
    assert "not possible because" in found.text()


def test_arms_without_a_shared_task(tmp_path):
    rows = [*matrix("a", [[1.0, 0.0]] * 3), *(trial("b", f"other-{i}", k, 1.0) for i in range(3) for k in range(2))]
    results = by_name(self_check(dataset(tmp_path, rows), "a", "b", draws=200))
    assert results["placebo-shuffle"].reason == "few-tasks"


def test_rewards_without_a_common_denominator(tmp_path):
    rewards = np.random.default_rng(1).random((6, 4)).tolist()
    halves = by_name(self_check(dataset(tmp_path, matrix("control", rewards)), draws=200))["halves-baseline"]
    assert halves.exact_wrong.reason == "too-fine"
    assert isinstance(halves.coverage, Estimate)


def test_draws_and_progress(data):
    seen = []
    self_check(data, draws=1_500, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (7_500, 7_500)
    assert seen == sorted(seen)
    with pytest.raises(UsageError, match="at least 100"):
        self_check(data, draws=5)
    with pytest.raises(UsageError, match="two different arms"):
        self_check(data, "akm", "akm")


def test_page_and_numbers(data, tmp_path):
    found = self_check(data, draws=500)
    page, numbers = write_self_check(found, tmp_path / "out")
    html, plain = page.read_text(), json.loads(numbers.read_text())
    assert external_references(html) == []
    assert plain["exit_code"] == found.exit_code
    assert plain["checks"][0]["result"]["interval_wrong"]["value"] == found.measured[0].interval_wrong.value
    assert f"{100 * found.measured[0].interval_wrong.value:.1f}%" in html


def test_names_of_arms_are_shown_harmless(tmp_path, arms):
    name = "<script>alert(1)</script>"
    path = dataset(tmp_path, [*matrix(name, arms[0]), *matrix("control", arms[1])])
    page, _ = write_self_check(self_check(path, draws=200), tmp_path)
    assert "<script" not in page.read_text()
