"""LongMemEval's judge protocol against upstream's behaviour."""

import pytest

from akm_harbor.memory.scorers import longmemeval
from tests.memory.support import lines

ROWS = lines("longmemeval_reference.jsonl")


def of(kind):
    return [row for row in ROWS if row["kind"] == kind]


def test_prompt_routing_is_upstreams():
    assert len(of("judge_prompt")) == 8
    for row in of("judge_prompt"):
        index = longmemeval.prompt_index(row["question_type"], abstention=row["abstention"])
        assert index == row["prompt_index"]
        assert longmemeval.ANSWER_LABELS[index] == row["answer_label"]


def test_unknown_types_have_no_prompt_unless_they_abstain():
    for row in of("judge_prompt_error"):
        with pytest.raises(NotImplementedError):
            longmemeval.prompt_index(row["question_type"], abstention=row["abstention"])
    assert longmemeval.prompt_index("unheard-of", abstention=True) == longmemeval.ABSTENTION


def test_abstention_is_in_the_id_whatever_the_type():
    assert longmemeval.is_abstention("gpt4_abc_abs")
    assert longmemeval.is_abstention("x_abs_2")
    assert not longmemeval.is_abstention("absent")


def test_labels_are_parsed_as_upstream_does():
    assert len(of("label_parse")) == 5
    for row in of("label_parse"):
        assert longmemeval.label(row["judge_text"]) is row["label"]
    assert not longmemeval.label("")


def test_judge_models_are_upstreams():
    (row,) = of("model_zoo")
    assert {name: list(value) for name, value in longmemeval.JUDGE_MODELS.items()} == row["model_zoo"]


def test_accuracies_divide_by_the_rows_judged():
    rows = [(f"q{i}", name, i % 2 == 0) for i, name in enumerate(longmemeval.TYPES)]
    found = longmemeval.accuracy([*rows, ("q9_abs", "multi-session", True)])
    assert found.n == 7
    assert found.overall == pytest.approx(4 / 7)
    assert found.by_type["multi-session"] == (0.5, 2)
    assert found.task_averaged == pytest.approx((1 + 0 + 1 + 0.5 + 1 + 0) / 6)
    assert found.abstention == 1.0


def test_an_empty_type_leaves_no_task_average():
    found = longmemeval.accuracy([("q", "multi-session", True)])
    assert found.task_averaged is None
    assert found.by_type["knowledge-update"] == (None, 0)
    with pytest.raises(ValueError, match="no type"):
        longmemeval.accuracy([("q", "riddle", True)])
    with pytest.raises(ValueError, match="no verdicts"):
        longmemeval.accuracy([])
