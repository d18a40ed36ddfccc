"""The published table, by hand."""

import pandas as pd
import pytest

from akm_harbor.memory.answer.table import score_rows
from akm_harbor.memory.columns import TRIALS


def frame(*rows, benchmark="locomo"):
    base = {
        "run_id": "r", "benchmark": benchmark, "dataset_sha256": "d", "arm": "bm25", "backend": "bm25",
        "protocol_id": "p", "status": "ok", "repeat": 0, "answer": "a", "qtype": "single-hop", "qtype_raw": "4",
        "instance_id": "i", "ctx_tokens": 10, "usd": 0.5,
    }  # fmt: skip
    named = [{**base, "question_id": f"q{n}", **row} for n, row in enumerate(rows)]
    return TRIALS.from_rows(named).to_pandas()


def lines(*rows, **options):
    return {(r["arm"], r["budget"], r["group"]): r for r in score_rows(frame(*rows, **options))}


def test_a_mean_is_over_the_rows_that_have_a_score_and_the_bounds_over_all():
    found = lines(
        {"score_official": 1.0}, {"score_official": 0.0}, {"score_official": 1.0}, {"status": "undecided"},
        {"status": "reader-failed", "answer": None, "usd": None},
    )["bm25", None, "all"]  # fmt: skip
    assert (found["n"], found["asked"], found["failed"], found["undecided"]) == (3, 5, 1, 1)
    assert found["mean"] == pytest.approx(2 / 3)
    assert (found["low"], found["high"]) == (2 / 5, 4 / 5)
    assert found["usd_per_question"] == 0.5


def test_locomos_adversarial_questions_stand_apart():
    rows = [{"score_official": 1.0, "qtype_raw": "5", "qtype": "adversarial"}, {"score_official": 0.0}]
    found = lines(*rows)
    assert found["bm25", None, "all"]["mean"] == 0.5
    assert found["bm25", None, "without-adversarial"]["mean"] == 0.0
    assert found["bm25", None, "type:adversarial"]["n"] == 1


def test_questions_an_audit_takes_out_are_left_out_of_the_audited_mean_only():
    found = lines({"score_official": 0.0, "audit_flag": "wrong-answer"}, {"score_official": 1.0})
    assert found["bm25", None, "all"]["mean"] == 0.5
    assert found["bm25", None, "audited"]["mean"] == 1.0


def test_longmemevals_task_average_weighs_types_alike_and_needs_all_six():
    types = ["single-session-user", "single-session-assistant", "single-session-preference", "multi-session"]
    types += ["temporal-reasoning", "knowledge-update"]
    rows = [{"score_official": 1.0, "qtype": t} for t in types] + [{"score_official": 0.0, "qtype": types[0]}]
    assert lines(*rows, benchmark="longmemeval")["bm25", None, "task-averaged"]["mean"] == pytest.approx(5.5 / 6)
    assert lines(*rows[1:3], benchmark="longmemeval")["bm25", None, "task-averaged"]["mean"] is None


def test_arms_and_budgets_are_lines_of_their_own_and_judge_repeats_do_not_count_tokens_twice():
    found = lines(
        {"score_official": 1.0, "judge_repeat": 0, "in_tok": 10},
        {"score_official": 0.0, "judge_repeat": 1, "in_tok": 30},
        {"score_official": 1.0, "budget": 200}, {"score_official": 1.0, "arm": "full"},
    )  # fmt: skip
    assert found["bm25", None, "all"]["mean"] == 0.5
    assert found["bm25", None, "all"]["in_tok"] == 10
    assert found["bm25", 200, "all"]["n"] == 1
    assert found["full", None, "all"]["n"] == 1


def test_a_price_that_is_unknown_once_is_unknown_for_the_line():
    found = lines({"score_official": 1.0}, {"score_official": 1.0, "usd": None})["bm25", None, "all"]
    assert found["usd_per_question"] is None


def test_the_standard_error_is_clustered_by_history():
    rows = [{"score_official": float(i < 3), "instance_id": f"i{i // 2}"} for i in range(6)]
    found = lines(*rows)["bm25", None, "all"]
    assert found["se"] > pd.Series([1.0, 1, 1, 0, 0, 0]).std() / 6**0.5
    assert lines({"score_official": 1.0})["bm25", None, "all"]["se"] is None
