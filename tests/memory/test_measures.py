"""What a ranking is worth: recall, gain, context, and each benchmark's rule for missing evidence."""

import math
import random

import pytest

from akm_harbor.memory.documents import History
from akm_harbor.memory.measures import Judged, evidence_in_context
from akm_harbor.memory.scorers import ranking
from tests.memory.histories import boats, ok, question


def judged(asked, order, benchmark="locomo", granularity="turn", corpus="all"):
    history = History(boats(asked), benchmark, granularity, corpus)
    by_key = {piece.key: piece for piece in history.pieces}
    return Judged(history, asked, history.gold(asked), [by_key[key] for key in order])


TWO = question(evidence=ok(["s1_1", "s3_1"], ["s1"]))


def test_recall_any_all_and_share():
    at = judged(TWO, ["1:0", "0:0", "0:1", "2:0"]).at
    assert (at(1).recall_any, at(1).recall_all, at(1).recall_frac) == (0, 0, 0)
    assert (at(2).recall_any, at(2).recall_all, at(2).recall_frac) == (1, 0, 0.5)
    assert (at(4).recall_any, at(4).recall_all, at(4).recall_frac) == (1, 1, 1)
    assert (at(9).recall_any, at(9).recall_all) == (1, 1)


def test_gain_by_both_formulas():
    at = judged(TWO, ["1:0", "0:0", "0:1", "2:0"]).at(4)
    assert at.ndcg_lme == pytest.approx((1 / math.log2(2) + 1 / math.log2(4)) / 2)
    assert at.ndcg_std == pytest.approx((1 / math.log2(3) + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))
    assert judged(TWO, ["1:0", "0:0"]).reciprocal_rank == 0.5


def test_two_copies_of_a_session_are_one_piece_of_evidence():
    asked = question(evidence=ok(["s1_1"], ["s1"]))
    found = judged(asked, ["2", "0"], "longmemeval", "session")
    assert found.at(1).recall_all == 1
    assert found.at(2).recall_frac == 1
    assert found.at(2).ndcg_std == 1.0  # never above 1


def test_without_evidence_our_recall_is_empty_and_longmemevals_is_not():
    at = judged(question(), ["0:0"], "longmemeval").at(5)
    assert (at.recall_any, at.recall_all, at.ndcg_std) == (None, None, None)
    assert (at.upstream_recall_any, at.upstream_recall_all, at.upstream_ndcg) == (0.0, 1.0, 0.0)
    assert judged(question(), ["0:0"]).reciprocal_rank is None


def test_longmemevals_metrics_equal_upstreams_functions_on_whole_rankings():
    rng = random.Random(4)
    for granularity in ("turn", "session"):
        for _ in range(60):
            asked = question(evidence=ok(*rng.choice([(["s1_1"], ["s1"]), (["s1_1", "s2_1"], ["s1", "s2"]), ((), ())])))
            history = History(boats(asked), "longmemeval", granularity, "user")
            gold = history.gold(asked)
            rankings = rng.sample(range(len(history.pieces)), len(history.pieces))
            ids = [history.covers(piece)[0] for piece in history.pieces]
            found = Judged(history, asked, gold, [history.pieces[i] for i in rankings])
            for k in (1, 2, 3, 10):
                at = found.at(k)
                mine = (at.upstream_recall_any, at.upstream_recall_all, at.upstream_ndcg)
                assert mine == pytest.approx(ranking.evaluate_lme(rankings, gold.units, ids, k), abs=1e-12)


def test_locomos_recall_counts_missing_evidence_as_recalled():
    assert judged(question(), ["0:0"]).at(5).upstream_recall_frac == 1.0
    assert judged(TWO, ["0:0"]).at(5).upstream_recall_frac == 0.5
    assert judged(TWO, []).at(5).upstream_recall_frac is None  # upstream stops with an IndexError
    assert judged(TWO, ["0:0"]).at(5).upstream_recall_any is None


def test_the_audited_recall_stands_beside_the_official_one():
    mended = question(evidence=ok(["s1_1"], ["s1"], repaired=("s1_1", "s3_1"), status="malformed"))
    at = judged(mended, ["0:0"]).at(1)
    assert (at.recall_frac, at.recall_frac_audited) == (None, 0.5)
    flagged = question(evidence=ok(["s1_1"], ["s1"]), audit_flag="hallucination")
    at = judged(flagged, ["0:0"]).at(1)
    assert (at.recall_frac, at.recall_frac_audited) == (1.0, None)


def test_evidence_is_looked_for_in_the_context_itself():
    texts = ("User: The red boat", "User: sank")
    assert evidence_in_context(texts, "[date]\nUser:  The red\nboat lies") == 0.5
    assert evidence_in_context((), "anything") is None
    assert evidence_in_context(texts, "") == 0.0
