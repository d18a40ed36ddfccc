"""Made-up answers: which are wrong on purpose, and what the judge's verdicts on them say."""

import pytest

from akm_harbor.memory.answer.judge_probe import GOLD, IN_SENTENCE, OTHER, REFUSAL, TOPIC, VAGUE, fabricate, rates
from akm_harbor.memory.answer.result import read_study
from akm_harbor.memory.answer.scoring import Task
from tests.memory.answer.support import declare, execute

TASKS = [
    Task("a", "4", "single-hop", "Where does the red boat lie?", "north pier", (), False),
    Task("b", "4", "single-hop", "Who drinks green tea?", "Ann", (), False),
    Task("c", "5", "adversarial", "Who sank the ferry?", None, (), True),
    Task("d", "4", "single-hop", "What lies at the south end?", "the south pier", (), False),
]


def test_every_question_gets_answers_that_are_right_and_wrong_on_purpose():
    made = fabricate(TASKS, 10, 0)
    of_a = {one.kind: one for one in made if one.task.question_id == "a"}
    assert set(of_a) == {VAGUE, REFUSAL, TOPIC, OTHER, GOLD, IN_SENTENCE}
    assert of_a[OTHER].answer == "Ann"  # the other golds share a word with it or do not exist
    assert {kind for kind, one in of_a.items() if one.expected == "yes"} == {GOLD, IN_SENTENCE}
    of_c = {one.kind: one.expected for one in made if one.task.question_id == "c"}
    assert of_c[REFUSAL] == "yes"
    assert of_c[VAGUE] == "no"
    assert GOLD not in of_c


def test_the_same_seed_makes_the_same_answers():
    assert fabricate(TASKS, 2, 7) == fabricate(TASKS, 2, 7)
    assert len({one.task.question_id for one in fabricate(TASKS, 2, 7)}) == 2


def test_rates_count_undecided_and_failed_apart():
    rows = [{"kind": VAGUE, "expected": "no", "verdict": v} for v in ("yes", "no", "no", "undecided", None)]
    rows += [{"kind": GOLD, "expected": "yes", "verdict": v} for v in ("yes", "no")]
    found = rates(rows)
    wrong = found["false_positive"]
    assert (wrong["k"], wrong["n"], wrong["undecided"], wrong["failed"]) == (1, 3, 1, 1)
    assert wrong["low"] < 1 / 3 < wrong["high"]
    assert found["false_negative"]["rate"] == 0.5
    assert set(found["by_kind"]) == {VAGUE, GOLD}
    assert rates([])["false_positive"]["rate"] is None


@pytest.mark.usefixtures("direct")
@pytest.mark.parametrize(("judge", "caught"), [("strict", 0), ("lenient", 1)])
def test_a_lenient_judge_is_caught(scripted, stores, tmp_path, judge, caught):
    double = scripted("longmemeval", behaviours=("right",), judge=(judge,))
    path = declare(
        tmp_path, double.url, dataset="demo-longmemeval", arms=["oracle"], gates={"ceiling": 0.0},
        scorer={"name": "akm-harbor-judge"}, judge={"model": "openai/double-judge", "probe": 8},
    )  # fmt: skip
    report, _ = execute(path, stores["longmemeval"], tmp_path / "out")
    probe = report.manifest["judge_probe"]
    assert probe["by_kind"]["vague"]["rate"] == caught
    assert probe["by_kind"]["gold"]["rate"] == 0
    rows = read_study(tmp_path / "out").probe
    assert set(rows["expected"]) == {"yes", "no"}
    assert rows["judge_model_served"].eq("double-judge").all()
