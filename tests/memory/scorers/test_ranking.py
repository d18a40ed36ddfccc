"""Retrieval metrics against what LongMemEval's own functions returned."""

import math

import pytest

from akm_harbor.memory.scorers import ranking
from tests.memory.support import lines

ROWS = lines("longmemeval_reference.jsonl")
SESSION = [row for row in ROWS if row["kind"] == "retrieval_session"]
TURN = [row for row in ROWS if row["kind"] == "retrieval_turn"]
NAMES = ("recall_any", "recall_all", "ndcg_any")


def test_every_session_row_is_reproduced():
    assert len(SESSION) == 36
    for row in SESSION:
        found = ranking.evaluate_lme(row["rankings"], row["correct_docs"], row["corpus_ids"], row["k"])
        assert found == pytest.approx([row[name] for name in NAMES], abs=1e-12), row


def test_every_turn_row_is_reproduced_on_both_levels():
    assert len(TURN) == 8
    for row in TURN:
        arguments = (row["rankings"], row["correct_docs"], row["corpus_ids"], row["k"])
        assert ranking.evaluate_lme(*arguments) == pytest.approx([row["turn"][n] for n in NAMES], abs=1e-12)
        found = ranking.evaluate_lme_turn2session(*arguments)
        assert found == pytest.approx([row["turn2session"][n] for n in NAMES], abs=1e-12)


def test_empty_gold_is_all_recalled_and_nothing_recalled_upstream():
    assert ranking.evaluate_lme([0, 1], [], ["a", "b"], 2) == (0.0, 1.0, 0.0)


def test_upstream_does_not_discount_rank_two_and_the_textbook_does():
    assert ranking.ndcg_lme([0, 1], 1, 5) == 1.0
    assert ranking.ndcg_std([0, 1], 1, 5) == pytest.approx(1 / math.log2(3))


def test_ideal_counts_relevant_documents_that_were_not_retrieved():
    assert ranking.ndcg_std([1, 0], 2, 5) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert ranking.ndcg_std([1, 1], 2, 1) == 1.0


def test_reciprocal_rank():
    assert ranking.reciprocal_rank([0, 0, 1, 1]) == pytest.approx(1 / 3)
    assert ranking.reciprocal_rank([0, 0]) == 0.0
    assert ranking.reciprocal_rank([]) == 0.0
