"""One unit of work: its rows, its failures, and what names and order may not change."""

import dataclasses

import pytest

from akm_harbor.memory import unit as unit_module
from akm_harbor.memory.backends.lexical import Bm25
from akm_harbor.memory.backends.registry import parse_arm
from akm_harbor.memory.label import RetrievalProtocol
from akm_harbor.memory.protocol import BackendError, ContaminationError, Description
from akm_harbor.memory.unit import Source, Unit, run_unit
from tests.memory.histories import boats, ok, question

CLOCK = {"ingest_ms", "search_ms", "started_at"}


def unit(arm="bm25", seed=0, instance=None, benchmark="locomo", **protocol):
    base = RetrievalProtocol(benchmark, "ab" * 32, "turn", "all", 2, (1, 2, 3), None, "cl100k_base", "all")
    return Unit(
        instance or boats(),
        Source(benchmark, "demo", "ab" * 32, None),
        parse_arm(arm),
        Description(arm.partition(":")[0], "1"),
        dataclasses.replace(base, **protocol),
        seed,
        0,
    )


def rows(one):
    return run_unit(one).trials.to_pylist()


def test_a_row_tells_the_whole_story():
    (row,) = rows(unit())
    assert row["status"] == "ok"
    assert (row["instance_id"], row["question_id"], row["arm"]) == ("boats", "q", "bm25")
    assert row["retrieved_ids"][0] == "0:0"
    assert (row["recall_all"], row["mrr"], row["gold_ids"], row["gold_status"]) == (1.0, 1.0, ["s1_1"], "ok")
    assert row["ingest_docs"] == 6
    assert row["evidence_in_ctx"] == 1.0
    assert row["ctx_tokens"] > 5
    assert not row["zero_hit"]
    assert not row["k_ge_corpus"]


def test_metrics_at_every_k_go_to_their_own_table():
    at = run_unit(unit()).retrieval.to_pylist()
    assert [row["k"] for row in at] == [1, 2, 3]
    assert {row["question_id"] for row in at} == {"q"}
    assert at[0]["upstream_recall_frac"] == 1.0


@pytest.mark.parametrize("arm", ["bm25", "bow", "grep", "oracle", "none", "full"])
@pytest.mark.parametrize("granularity", ["turn", "session", "window:2"])
def test_neither_names_nor_document_order_change_a_row(arm, granularity):
    asked = [
        question(f"q{i}", text, evidence=ok(["s1_1", "s3_1"], ["s1"]))
        for i, text in enumerate(["red boat", "boat", "tea noted"])
    ]
    first, other = (
        [
            {k: v for k, v in row.items() if k not in {*CLOCK, "seed"}}
            for row in rows(unit(arm, seed, boats(*asked), granularity=granularity))
        ]
        for seed in (1, 2)
    )
    assert first == other


def test_whether_everything_was_retrieved_is_marked():
    (row,) = rows(unit(topk=6))
    assert row["k_ge_corpus"]
    (row,) = rows(unit(granularity="session", topk=2))
    assert not row["k_ge_corpus"]


def test_zero_hits_and_ties_are_marked():
    (row,) = rows(unit(instance=boats(question(text="zeppelin", evidence=ok(["s1_1"], ["s1"])))))
    assert row["zero_hit"]
    assert row["tied_topk"]  # six documents, all at 0
    (row,) = rows(unit("none"))
    assert row["zero_hit"]
    assert row["n_hits"] == 0


def test_full_context_is_no_ranking():
    (row,) = rows(unit("full"))
    assert row["recall_all"] is None
    assert row["mrr"] is None
    assert row["evidence_in_ctx"] == 1.0
    assert row["n_hits"] == 6
    assert run_unit(unit("full")).retrieval.num_rows == 0


def test_a_budget_cuts_the_context_at_documents():
    (whole,) = rows(unit("full"))
    (cut,) = rows(unit("full", budget=45))
    assert 0 < cut["ctx_tokens"] <= 45 < whole["ctx_tokens"]
    assert cut["protocol_id"] != whole["protocol_id"]


def test_questions_without_evidence_are_asked_and_not_scored():
    (row,) = rows(unit(instance=boats(question(text="red boat"))))
    assert (row["status"], row["gold_status"], row["recall_any"]) == ("ok", "none", None)
    (row,) = rows(unit("oracle", instance=boats(question(text="red boat"))))
    assert row["n_hits"] == 0


class BrokenBackendDouble(Bm25):
    """A backend that fails where it is told to."""

    fails = "search"

    def ingest(self, documents):
        if self.fails == "ingest":
            raise BackendError("the disk is full")
        return super().ingest(documents)

    def search(self, query, k):
        if "tea" in query.text:
            raise ContaminationError("found a stranger")
        return super().search(query, k)


def test_a_failed_search_is_a_row_and_the_rest_goes_on(monkeypatch):
    monkeypatch.setattr(unit_module, "make_backend", lambda *_: BrokenBackendDouble())
    asked = boats(
        question("q1", "tea", evidence=ok(["s2_1"], ["s2"])), question("q2", "red boat", evidence=ok(["s1_1"], ["s1"]))
    )
    result = run_unit(unit(instance=asked))
    one, two = result.trials.to_pylist()
    assert (one["status"], one["error_class"], one["error"]) == ("search-failed", "contamination", "found a stranger")
    assert one["recall_all"] is None
    assert (two["status"], two["recall_all"]) == ("ok", 1.0)
    assert [kind for kind, _, _ in result.problems] == ["contamination"]


def test_a_failed_ingest_fails_its_questions_and_nothing_else(monkeypatch):
    backend = BrokenBackendDouble()
    backend.fails = "ingest"
    monkeypatch.setattr(unit_module, "make_backend", lambda *_: backend)
    (row,) = rows(unit())
    assert (row["status"], row["error_class"], row["error"]) == ("ingest-failed", "backend-failed", "the disk is full")


def test_the_query_transform_reaches_the_backend(monkeypatch):
    seen = []

    class Listening(Bm25):
        def search(self, query, k):
            seen.append((query.text, query.gold))
            return super().search(query, k)

    monkeypatch.setattr(unit_module, "make_backend", lambda *_: Listening())
    rows(unit("bm25:query=keywords"))
    assert seen == [("red boat", ())]  # and it is not told the evidence


def test_the_key_follows_everything_the_result_depends_on():
    base = unit()
    others = [
        unit(seed=1),
        unit("bow"),
        unit(topk=3),
        unit(instance=boats(question("other"))),
        dataclasses.replace(base, description=Description("bm25", "2")),
        dataclasses.replace(base, repeat=1),
    ]
    assert base.key() == unit().key()
    assert len({base.key(), *(other.key() for other in others)}) == len(others) + 1
