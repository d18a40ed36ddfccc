"""Each failure mode with the steps that decide it."""

import pytest

from akm_harbor.ab.failure_mode import MODES, failure_modes, mode_counts

from .uses import GOLD, attempt, lookup, opening, write

NEAR, FAR = ("a/1", GOLD), ("a/1", "a/2", "a/3", GOLD)
CASES = [
    (attempt(lookup(0, *NEAR), opening(1), write(2, "wax"), score=1.0), "solved", (2, 3, 4)),
    (attempt(write(0), score=1.0), "solved", ()),
    (attempt(write(0), score=None), "unscored", ()),
    (attempt(write(0), delivered=False, reasons=("plugin-not-loaded",)), "not-delivered", ()),
    (attempt(write(0)), "never-looked", ()),
    (attempt(write(0), offered=False), "never-looked", ()),
    (attempt(called=None), "unknown", ()),
    (attempt(lookup(0), write(1)), "gold-absent", (2,)),
    (attempt(lookup(0, "a/1"), opening(1, "a/1"), write(2)), "gold-absent", (2, 3)),
    (attempt(opening(0, answered=False), write(1)), "gold-absent", (2,)),
    (attempt(lookup(0, *FAR), write(1)), "gold-low", (2,)),
    (attempt(lookup(0, *FAR), lookup(1, *NEAR), write(2)), "found-not-opened", (3,)),
    (attempt(lookup(0, *NEAR), opening(1, "a/1"), write(2)), "opened-wrong", (2, 3)),
    (attempt(lookup(0, *NEAR), opening(1), write(2)), "opened-ignored", (3, 4)),
    (attempt(lookup(0, *NEAR), opening(1)), "opened-ignored", (3,)),
    (attempt(write(0, "wax"), opening(1)), "opened-ignored", (3,)),
    (attempt(opening(0), write(1, "wax", step=2)), "opened-ignored", (2,)),
    (attempt(opening(0), write(1, "wax"), write(2)), "followed-failed", (2, 3)),
    (attempt(opening(0), write(1), withheld=()), "followed-failed", (2, 3)),
    (attempt(opening(0), write(1, "wax"), withheld=("wax", "b", "c")), "opened-ignored", (2, 3)),
    (attempt(lookup(0, "a/1"), gold=()), "no-gold", (2,)),
    (attempt(write(0), arm="control", delivered=None, exposed=False, offered=False), "no-treatment", ()),
    (attempt(lookup(0), delivered=False, reasons=("bundle-empty", "placebo-as-declared")), "gold-absent", (2,)),
    (attempt(write(0, "wax"), given=True, offered=False), "followed-failed", (2,)),
    (attempt(write(0), given=True, offered=False), "opened-ignored", (2,)),
]


@pytest.mark.parametrize(("trial", "mode", "steps"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_an_attempt_has_one_mode_and_the_steps_that_decided_it(trial, mode, steps):
    (got,) = failure_modes([trial])
    assert (got.mode, got.steps) == (mode, steps)
    assert got.calls == tuple(step - 2 for step in steps) or trial.uses[1].step == 2
    assert got.why.endswith(".")


def test_every_mode_is_met_here():
    assert {mode for _, mode, _ in CASES} == set(MODES)


def test_steps_are_optional_but_calls_are_not():
    from dataclasses import replace

    (got,) = failure_modes([attempt(*(replace(u, step=None) for u in (lookup(0, *NEAR), opening(1), write(2, "wax"))))])
    assert (got.mode, got.steps, got.calls) == ("followed-failed", (), (1, 2))


def test_counts_by_arm_and_family():
    trials = [
        attempt(write(0), trial_name="a"),
        attempt(write(0), trial_name="b", score=1.0),
        attempt(lookup(0), trial_name="c", family="other"),
        attempt(write(0), trial_name="d", arm="control", delivered=None, exposed=False, family=None),
    ]
    got = {(c.arm, c.family): (c.n, c.counts) for c in mode_counts(trials, failure_modes(trials))}
    assert got == {
        ("akm", None): (3, {"solved": 1, "never-looked": 1, "gold-absent": 1}),
        ("akm", "family"): (2, {"solved": 1, "never-looked": 1}),
        ("akm", "other"): (1, {"gold-absent": 1}),
        ("control", None): (1, {"no-treatment": 1}),
    }
