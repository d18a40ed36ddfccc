"""The funnel by arm and family, the gold asset's rank at the first look, and the observational split."""

import pytest

from akm_harbor.ab.funnel import funnels, use_splits
from akm_harbor.stats.results import Estimate, NotEstimable

from .uses import GOLD, attempt, lookup, opening, write


@pytest.fixture
def trials():
    return [
        attempt(lookup(0, "a/1", GOLD), opening(1), write(2), trial_name="1", score=1.0),
        attempt(lookup(0, GOLD), write(1), trial_name="2", score=0.0),
        attempt(lookup(0), lookup(1, GOLD), trial_name="3", score=0.0),
        attempt(write(0), trial_name="4", score=0.0, family="other"),
        attempt(trial_name="5", score=None, called=None, delivered=None, offered=None, exposed=None),
        attempt(lookup(0, "a/1"), gold=(), trial_name="6", score=1.0, family="other"),
    ]


def test_each_stage_is_counted_with_the_unknown_apart(trials):
    whole = funnels(trials)[0]
    assert (whole.arm, whole.family, whole.n) == ("akm", None, 6)
    assert {s.name: (s.yes, s.no, s.unknown) for s in whole.stages} == {
        "delivered": (5, 0, 1),
        "offered": (5, 0, 1),
        "exposed": (5, 0, 1),
        "called": (4, 1, 1),
        "found": (3, 1, 2),
        "opened": (1, 3, 2),
        "wrote": (1, 3, 2),
    }


def test_families_have_their_own(trials):
    got = {f.family: f.n for f in funnels(trials)}
    assert got == {None: 6, "family": 4, "other": 2}


def test_rank_at_the_first_look_counts_an_absent_asset_below_every_rank(trials):
    first = funnels(trials)[0].first_look
    assert (first.n_looked, first.ranks, first.absent, first.median) == (3, {1: 1, 2: 1}, 1, 2.0)
    absent = funnels([attempt(lookup(0), trial_name=str(i)) for i in range(2)])[0].first_look
    assert (absent.n_looked, absent.median) == (2, None)


def test_what_was_given_in_the_prompt_is_not_looked_up():
    stages = {s.name: (s.yes, s.no, s.unknown) for s in funnels([attempt(write(0), given=True)])[0].stages}
    assert (stages["exposed"], stages["opened"], stages["wrote"]) == ((1, 0, 0), (0, 0, 1), (0, 0, 1))


def test_the_split_is_by_use_and_says_that_it_is_observational(trials):
    whole = use_splits(trials, 0.95)[0]
    assert (whole.n_used, whole.used, whole.n_unused, whole.unused) == (4, 0.5, 1, 0.0)
    assert isinstance(whole.difference, Estimate)
    assert whole.label.startswith("Observational")
    assert use_splits([attempt(write(0))], 0.95) == ()


def test_partial_rewards_have_no_binomial_interval():
    trials = [attempt(lookup(0), score=0.25, trial_name="1"), attempt(write(0), score=0.5, trial_name="2")]
    (whole, _) = use_splits(trials, 0.95)
    assert isinstance(whole.difference, NotEstimable)
    assert (whole.difference.reason, whole.difference.value) == ("not-binary", -0.25)
