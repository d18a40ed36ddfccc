"""The LoCoMo score against rows that upstream's own code scored."""

import json
from pathlib import Path

import pytest

from akm_harbor.memory.scorers import locomo
from tests.memory.support import DATA, LOCOMO, LOCOMO_SCORES, lines, needs_locomo, needs_locomo_scores

SYNTHETIC = lines("locomo_reference_synthetic.jsonl")


def test_every_synthetic_row_is_reproduced():
    assert len(SYNTHETIC) == 250
    for row in SYNTHETIC:
        value = locomo.score(row["category"], row["prediction"], row["answer"])
        assert value == pytest.approx(row["official_score"], abs=1e-12), row
        assert round(value, 3) == pytest.approx(row["official_score_round3"], abs=1e-12), row
        assert locomo.recall(row["evidence"], row["prediction_context"]) == pytest.approx(row["official_recall"]), row
        assert locomo.normalize(row["prediction"]) == row["normalized_prediction"]
        assert locomo.normalize(str(row["answer"])) == row["normalized_answer"]


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("The 7,2023 and a", "72023"),
        ("rock-climbing", "rockclimbing"),
        ("Caroline\u2019s", "caroline\u2019s"),
        ("Caroline's", "carolines"),
        ("an apple AND the pear", "apple pear"),
    ],
)
def test_normalisation_keeps_upstreams_peculiarities(text, normal):
    assert locomo.normalize(text) == normal


def test_category_3_keeps_what_stands_before_the_semicolon():
    assert locomo.score(3, "likely yes", "Likely yes; because she said so") == 1.0
    assert locomo.score(4, "likely yes", "Likely yes; because she said so") < 1.0


def test_category_5_ignores_the_answer_and_looks_for_two_phrases():
    assert locomo.score(5, "That is Not Mentioned anywhere", None) == 1.0
    assert locomo.score(5, "no information available.", "x") == 1.0
    assert locomo.score(5, "I do not know", "I do not know") == 0.0


def test_integer_answers_score_as_text():
    assert locomo.score(2, "2022", 2022) == 1.0


def test_an_unknown_category_is_refused():
    with pytest.raises(ValueError, match="category 6"):
        locomo.score(6, "a", "a")


def test_recall_of_sessions_and_its_edges():
    assert locomo.recall(["D1:2", "D3:1"], ["S1", "S2"]) == 0.5
    assert locomo.recall([], ["D1:1"]) == 1.0
    assert locomo.recall(["D1:1"], None) == 1.0
    with pytest.raises(ValueError, match="empty context"):
        locomo.recall(["D1:1"], [])


def test_aggregates_keep_both_roundings():
    result = locomo.aggregate([(4, 1.0), (4, 2 / 3), (5, 1.0)])
    assert result.by_category[4] == pytest.approx(5 / 6, abs=1e-12)
    assert result.by_category_upstream[4] == 0.834  # (1 + 0.667) / 2
    assert result.overall_without_adversarial == pytest.approx(5 / 6)
    with pytest.raises(ValueError, match="no scores"):
        locomo.aggregate([])


@needs_locomo_scores
def test_every_real_row_is_reproduced():
    rows = [json.loads(line) for line in Path(LOCOMO_SCORES).read_text().splitlines()]
    assert len(rows) == 210
    for row in rows:
        value = locomo.score(row["category"], row["prediction"], row["answer"])
        assert value == pytest.approx(row["official_score"], abs=1e-12), row["sample_id"]
        assert locomo.normalize(row["prediction"]) == row["normalized_prediction"]


STRATEGIES = {
    "gold_copy": lambda qa, gold: gold,
    "gold_copy_cat5_abstain": lambda qa, gold: "No information available" if qa["category"] == 5 else gold,
    "always_no_information": lambda qa, gold: "No information available",
    "question_echo": lambda qa, gold: qa["question"],
    "gold_first_half": lambda qa, gold: " ".join(gold.split()[: max(1, len(gold.split()) // 2)]),
    "gold_commas_to_and": lambda qa, gold: gold.replace(",", " and"),
}


@needs_locomo
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_aggregates_over_all_questions_are_reproduced(strategy):
    reference = json.loads((DATA / "locomo_reference_aggregates.json").read_text())[strategy]
    scores = []
    for sample in json.loads(Path(LOCOMO).read_text()):
        for qa in sample["qa"]:
            gold = str(qa.get("answer", qa.get("adversarial_answer")))
            scores.append((qa["category"], locomo.score(qa["category"], STRATEGIES[strategy](qa, gold), gold)))
    found = locomo.aggregate(scores)
    assert found.n == reference["n"]
    assert {str(k): v for k, v in found.counts.items()} == reference["counts"]
    assert found.overall == pytest.approx(reference["overall_exact"], abs=1e-12)
    assert found.overall_upstream == reference["overall_upstream_rounded3"]
    assert found.overall_without_adversarial == pytest.approx(reference["overall_cat1_4_exact"], abs=1e-12)
    for category, value in reference["by_category_exact"].items():
        assert found.by_category[int(category)] == pytest.approx(value, abs=1e-12)
        assert found.by_category_upstream[int(category)] == reference["by_category_upstream"][category]
