"""The spread of scores comes apart: simulated with known components."""

import numpy as np
import pandas as pd
import pytest

from akm_harbor.memory.answer.variance import components


def simulated(questions=400, reader=3, judge=4, sds=(0.3, 0.2, 0.1), seed=1):
    rng = np.random.default_rng(seed)
    rows = []
    for q in range(questions):
        level = 0.5 + rng.normal(0, sds[0])
        for r in range(reader):
            answer = level + rng.normal(0, sds[1])
            rows += [(f"q{q}", r, j, answer + rng.normal(0, sds[2])) for j in range(judge)]
    frame = pd.DataFrame(rows, columns=["question_id", "repeat", "judge_repeat", "score_official"])
    return frame.assign(arm="bm25", budget=None, verdict="yes")


def test_known_components_are_found():
    (found,) = components(simulated())
    assert found.question == pytest.approx(0.09, rel=0.2)
    assert found.reader == pytest.approx(0.04, rel=0.15)
    assert found.judge == pytest.approx(0.01, rel=0.1)
    assert found.noise_se == pytest.approx(np.sqrt((0.04 / 3 + 0.01 / 12) / 400), rel=0.15)
    assert (found.questions, found.reader_repeats, found.judge_repeats, found.notes) == (400, 3, 4, ())


def test_a_judge_that_never_changes_its_mind_adds_nothing():
    (found,) = components(simulated(sds=(0.3, 0.2, 0.0)))
    assert found.judge == 0
    assert found.reader == pytest.approx(0.04, rel=0.15)


def test_a_reader_that_never_changes_its_answer_adds_nothing():
    (found,) = components(simulated(sds=(0.3, 0.0, 0.1)))
    assert found.reader < 0.002
    assert found.judge == pytest.approx(0.01, rel=0.1)


def test_without_repeats_nothing_is_made_up():
    (found,) = components(simulated(reader=1, judge=1))
    assert (found.question, found.reader, found.judge, found.noise_se) == (None, None, None, None)
    assert set(found.notes) == {"judge: one judgement an answer", "reader: one answer a question"}


def test_arms_and_budgets_are_taken_apart_separately():
    both = pd.concat([simulated(20), simulated(20).assign(budget=500), simulated(20).assign(arm="full")])
    assert [(c.arm, c.budget) for c in components(both)] == [("bm25", None), ("bm25", 500), ("full", None)]
