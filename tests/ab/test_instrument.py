"""The complier effect of attempts, with its assumptions."""

import numpy as np
import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.instrument import complier_effects
from akm_harbor.stats.results import Estimate, Interval, NotEstimable

from .support import dataset, matrix, trial
from .uses import attempt, lookup, opening, write

TASKS, K = 20, 3


def attempts(arm, taken, gain, *, seed, **over):
    """Attempts of which a share opens the gold asset; those gain."""
    rng = np.random.default_rng(seed)
    out = []
    for task in range(TASKS):
        for k in range(K):
            took = bool(rng.random() < taken)
            uses = (lookup(0, "knowledge/gold"), opening(1), write(2)) if took else (write(0),)
            score = float(rng.random() < 0.2 + gain * took)
            name = f"{arm}-{task}-{k}"
            out.append(attempt(*uses, arm=arm, task=f"t{task}", trial_name=name, score=score, **over))
    return out


@pytest.fixture
def trials():
    control = attempts("control", 0.0, 0.0, seed=1, delivered=None, exposed=False, offered=False)
    return [*control, *attempts("akm", 0.6, 0.7, seed=2)]


def test_the_effect_is_the_intention_to_treat_over_the_uptake(trials):
    called, opened = complier_effects(trials, "control", "akm")
    assert (called.uptake, opened.uptake, called.n_tasks) == ("called", "opened", TASKS)
    assert called.uptake_baseline == 0.0
    treated = [t for t in trials if t.arm == "akm"]
    assert called.uptake_treatment == pytest.approx(np.mean([t.called for t in treated]))
    assert called.effect.value == pytest.approx(called.itt.value / called.uptake_treatment)
    assert called.effect.interval.low < 0.7 < called.effect.interval.high
    assert called.first_stage_f > 10


def test_assumptions_are_stated_and_checked_where_they_can_be(trials):
    got = {a.name: a for a in complier_effects(trials, "control", "akm")[0].assumptions}
    assert {name: a.holds for name, a in got.items()} == {
        "assignment": True, "relevance": True, "monotonicity": True, "exclusion": None,
    }  # fmt: skip
    assert "0 of 60 baseline attempts" in got["monotonicity"].evidence
    assert "in the prompt of 60 of 60" in got["exclusion"].evidence


def test_use_in_the_baseline_leaves_monotonicity_open(trials):
    odd = attempt(lookup(0, "knowledge/gold"), arm="control", task="t0", trial_name="odd", score=0.0)
    got = {a.name: a for a in complier_effects([*trials, odd], "control", "akm")[0].assumptions}
    assert got["monotonicity"].holds is None
    assert got["assignment"].holds is None
    assert "1 of 20 tasks" in got["assignment"].evidence


@pytest.mark.parametrize(("limits", "holds"), [((-0.1, 0.1), None), ((0.05, 0.3), False), ((-0.3, -0.01), False)])
def test_a_placebo_that_acts_speaks_against_the_exclusion(trials, limits, holds):
    direct = Estimate(sum(limits) / 2, "t", "e", TASKS, Interval(*limits, 0.95))
    effects = complier_effects(trials, "control", "akm", direct=("Empty bundle against control", direct))
    (exclusion,) = (a for a in effects[1].assumptions if a.name == "exclusion")
    assert exclusion.holds is holds
    assert f"Empty bundle against control: {limits[0]:+.2f} to {limits[1]:+.2f}." in exclusion.evidence
    tied = NotEstimable("all-tied", "", "t", "e", TASKS, 0.0)
    effects = complier_effects(trials, "control", "akm", direct=("Empty bundle against control", tied))
    assert "no interval (+0.00)" in effects[0].assumptions[3].evidence


def test_hardly_any_uptake_is_refused():
    control = attempts("control", 0.0, 0.0, seed=1)
    got = complier_effects([*control, *attempts("akm", 0.03, 0.7, seed=2)], "control", "akm")[0]
    assert isinstance(got.effect, NotEstimable)
    assert got.effect.reason == "weak-instrument"
    assert isinstance(got.itt, Estimate)
    assert {a.name: a.holds for a in got.assumptions}["relevance"] is False


def test_attempts_that_tell_nothing_are_left_out(trials):
    blind = [attempt(arm="akm", task="t0", trial_name="x", score=1.0, called=None)]
    unscored = [attempt(lookup(0), arm="akm", task="t0", trial_name="y", score=None)]
    assert complier_effects([*trials, *blind, *unscored], "control", "akm") == complier_effects(
        trials, "control", "akm"
    )


def test_without_shared_tasks_there_is_nothing():
    got = complier_effects([attempt(lookup(0), arm="akm")], "control", "akm")[0]
    assert (got.n_tasks, got.uptake_baseline, got.effect.reason) == (0, None, "no-task")


def test_an_ab_report_has_the_placebos_of_its_dataset(tmp_path):
    rows = [
        *matrix("control", [[0], [0], [1], [0]]),
        *matrix("akm", [[1], [1], [1], [0]], treatment_delivered=True),
        *matrix("empty-bundle", [[0], [1], [1], [0]]),
        trial("irrelevant-bundle", "task-00", 0, None, status="install_only"),
    ]
    got = analyse(dataset(tmp_path, rows), "control", "akm")
    (placebo,) = got.placebos
    assert (placebo.arm, placebo.row.baseline, placebo.row.treatment) == ("empty-bundle", 0.5, 0.75)
    assert placebo.row.difference.value == 0.25
    evidence = {a.name: a.evidence for a in got.complier[0].assumptions}["exclusion"]
    assert "empty-bundle against control: " in evidence
