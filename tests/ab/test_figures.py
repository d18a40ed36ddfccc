"""Figures: what is drawn, told without colour, and said to a screen reader."""

import re

import pytest

from akm_harbor.ab import figures
from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.figures.arms import contrast_plot, factorial_plot
from akm_harbor.ab.many import compare_arms

from .support import dataset, matrix, trial


def said(svg):
    return re.search(r"<desc>(.*?)</desc>", str(svg)).group(1)


def test_error_causes_stand_back_to_back_with_their_counts(tmp_path):
    late = {"status": "scored_with_error", "exception_type": "AgentTimeoutError", "exception_cause": "budget"}
    rows = [*matrix("a", [[1, 0], [0, 0]]), *matrix("b", [[1, 1], [0, 1]])]
    rows[0] |= late
    rows[4] |= late
    rows[5] |= {"status": "unscored", "reward": None, "exception_type": "Boom", "exception_cause": "provider"}
    drawn = figures.error_causes(analyse(dataset(tmp_path, rows), "a", "b"))
    assert said(drawn) == "budget: 1 of 4 and 1 of 4; provider: 0 of 4 and 1 of 4"
    assert "url(#" in str(drawn)  # the baseline's bars are hatched
    clean = analyse(dataset(tmp_path / "clean", [*matrix("a", [[1], [0]]), *matrix("b", [[1], [1]])]), "a", "b")
    assert figures.error_causes(clean) is None


def test_funnel_keeps_the_unknown_apart(tmp_path):
    rows = [trial("a", t, 0, 0.0) for t in ("one", "two")]
    rows += [trial("b", "one", 0, 1.0, tools_offered=True), trial("b", "two", 0, 1.0)]
    funnels = analyse(dataset(tmp_path, rows), "a", "b").behaviour.funnels
    drawn = said(figures.funnel(funnels))
    assert "a, akm tools offered to the model: not known" in drawn
    assert "b, akm tools offered to the model: 1 of 1, 1 unknown" in drawn
    assert "gold asset opened" not in drawn
    assert figures.funnel([]) is None


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    rewards = {
        "both": [[1, 1], [1, 0], [1, 1]],
        "one": [[1, 0], [0, 0], [1, 1]],
        "two": [[1, 1], [0, 0], [0, 1]],
        "none": [[0, 0], [0, 0], [0, 1]],
    }
    rows = [row for arm, table in rewards.items() for row in matrix(arm, table)]
    return dataset(tmp_path_factory.mktemp("four"), rows)


def test_contrasts_and_effects_are_drawn(four):
    r = compare_arms(four, baseline="none", factorial=("both", "one", "two", "none"))
    assert said(contrast_plot(r)).split(": ")[0] == "both"  # the largest on top
    effects = said(factorial_plot(r))
    assert effects.count(": ") == len(r.factorial) == 7
    assert "interaction: " in effects


def test_cost_is_drawn_with_all_tasks_together(tmp_path):
    rows = [*matrix("a", [[1], [0], [0]]), *matrix("b", [[1], [1], [0]], cost_usd=0.03)]
    r = analyse(dataset(tmp_path, rows), "a", "b")
    assert said(figures.cost_and_reward(r)).startswith("task-01: 3.00 times, +100.0")
