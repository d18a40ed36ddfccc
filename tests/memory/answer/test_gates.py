"""The gates: what they look at, and what opens them."""

import pytest

from akm_harbor.memory.answer.gates import GateError, ceiling_gate, decide, retrieval_gate


def row(arm="bm25", evidence=0.5, **changes):
    return {"arm": arm, "backend": arm, "status": "ok", "gold_status": "ok", "evidence_in_ctx": evidence, **changes}


def test_arms_that_search_must_find_enough():
    assert retrieval_gate([row(), row(evidence=0.0)], 0.25).passed
    gate = retrieval_gate([row(evidence=0.2)], 0.25)
    assert not gate.passed
    assert gate.detail == "bm25: finds 20.0% of the evidence, 25.0% is needed"


def test_references_are_not_asked_to_find_anything_but_the_oracle_must_hold_the_evidence():
    assert retrieval_gate([row("none", 0.0), row("full", 0.0)], 0.5).passed
    assert "oracle: 90.0% of the evidence" in retrieval_gate([row("oracle", 0.9)], 0.0).detail


def test_a_failed_query_shuts_the_gate_and_questions_without_evidence_do_not_count():
    assert "1 queries failed" in retrieval_gate([row(), row(status="search-failed", evidence=None)], 0.1).detail
    gate = retrieval_gate([row(evidence=None, gold_status="none")], 0.5)
    assert gate.passed
    assert "no question has evidence" in gate.detail


def test_the_ceiling_is_the_oracles_mean():
    assert ceiling_gate([1.0, 0.0], 2, 0.5, where="oracle").passed
    assert not ceiling_gate([1.0, 0.0], 2, 0.6, where="oracle").passed
    assert not ceiling_gate([], 2, 0.0, where="oracle").passed


def test_a_gate_is_waived_by_its_own_name_only():
    shut = ceiling_gate([], 2, 0.5, where="oracle")
    assert decide(shut, ["oracle-ceiling"]).waived
    assert decide(ceiling_gate([1.0], 1, 0.5, where="oracle"), ["oracle-ceiling"]).waived is False
    with pytest.raises(GateError, match="oracle-ceiling is shut") as caught:
        decide(shut, ["retrieval-gate"])
    assert caught.value.exit_code == 4
