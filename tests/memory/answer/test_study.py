"""Whole studies over the shipped datasets: where every outcome lands, the order of spending, and what is paid once."""

import json

import pandas as pd
import pytest

from akm_harbor.errors import AkmHarborError, NotComparableError, UsageError
from akm_harbor.memory.answer.gates import GateError
from akm_harbor.memory.answer.protocol_label import labelled
from akm_harbor.memory.answer.result import read_study
from akm_harbor.memory.answer.spec import load_study
from akm_harbor.memory.answer.study import Options, StudyRun
from akm_harbor.memory.answer.verification import verify
from akm_harbor.memory.scorers import locomo
from tests.memory.answer.model_double import PROSE, REFUSAL, VAGUE, WRONG
from tests.memory.answer.support import declare, execute, stable

pytestmark = pytest.mark.usefixtures("direct")
ALL_ARMS = ["none", "full", "oracle", "bm25", "bow", "grep"]
OWN = {"scorer": {"name": "akm-harbor-judge"}, "judge": {"model": "openai/double-judge", "probe": 0}}
OPEN = {"gates": {"ceiling": 0.0, "retrieval": 0.0}}


def test_every_outcome_lands_where_it_should(scripted, stores, tmp_path):
    double = scripted()
    report, _ = execute(declare(tmp_path, double.url, arms=ALL_ARMS, **OPEN), stores["locomo"], tmp_path / "out")
    assert report.complete
    result = read_study(tmp_path / "out")
    behaviour = {q: known["behaviour"] for q, known in double.script.reader.items()}
    rows = result.trials[result.trials["arm"] == "oracle"]
    assert len(rows) == 22
    said = {
        "wrong": WRONG,
        "vague": VAGUE,
        "abstaining": "No information available",
        "malformed": "",
        "refusing": REFUSAL,
    }
    for row in rows.to_dict("records"):
        how = behaviour[row["question"]]
        assert row["answer"] == said.get(how, double.script.reader[row["question"]]["gold"])
        status = {"malformed": "empty-answer", "refusing": "refused"}.get(how, "ok")
        assert row["status"] == status
        assert row["score_official"] == locomo.score(int(row["qtype_raw"]), row["answer"], row["gold_answer"])
    none = result.trials[(result.trials["arm"] == "none") & (result.trials["gold_status"] == "ok")]
    assert set(none["answer"]) == {"No information available"}
    assert set(result.trials["status"]) == {"ok", "empty-answer", "refused"}
    assert verify(result) == []


def test_a_judge_decides_or_is_counted_as_undecided(scripted, stores, tmp_path):
    double = scripted(behaviours=("right", "wrong"), judge=("strict", "strict", "prose", "refusing"))
    path = declare(tmp_path, double.url, arms=["oracle"], **OWN, **OPEN)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    how = {q: double.script.judge[q] for q in rows["question"]}
    for row in rows.to_dict("records"):
        if how[row["question"]] in ("prose", "refusing"):
            assert (row["status"], row["verdict"]) == ("undecided", "undecided")
            assert pd.isna(row["score_official"])
            assert row["judge_raw"] in (PROSE, "I'm sorry, I can't judge that.")
        else:
            assert row["verdict"] in ("yes", "no")
            assert row["score_official"] == float(row["verdict"] == "yes")
    (everything,) = [r for r in report.scores.to_pylist() if r["group"] == "all"]
    assert everything["undecided"] == 10
    assert everything["n"] == 12
    assert everything["low"] < everything["mean"] < everything["high"]
    assert report.complete


def test_dates_reach_the_prompt_and_one_prompt_digest_serves_all_arms(scripted, stores, tmp_path):
    double = scripted("longmemeval")
    path = declare(tmp_path, double.url, dataset="demo-longmemeval", arms=ALL_ARMS, **OWN, **OPEN)
    execute(path, stores["longmemeval"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    assert len(set(rows["prompt_sha256"])) == 1
    asked = {p for p in double.prompts if "Excerpts:" in p}
    for row in rows.to_dict("records"):
        mine = [p for p in asked if f"\nQuestion: {row['question']}\n" in p]
        assert mine
        assert all(f"The question is asked on {row['question_date']}." in p for p in mine)
    for instance in stores["longmemeval"].read():
        for session in instance.sessions:
            if session.turns and session.date:
                assert any(f"[{session.date}]" in p for p in asked)


@pytest.mark.parametrize("order", ["time", "rank"])
def test_token_matched_contexts_are_within_two_percent(scripted, stores, tmp_path, order):
    double = scripted()
    path = declare(tmp_path, double.url, arms=ALL_ARMS, budgets=["as-is", 150, 300], order=order, **OPEN)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    filled = rows[rows["budget"].notna() & ~rows["arm"].isin(["none", "oracle"])]
    assert len(filled) == 22 * 2 * 4
    assert filled[filled["arm"].isin(["full", "bm25"])]["budget_filled"].all()
    short = filled[~filled["budget_filled"].astype(bool)]
    assert set(short["arm"]) <= {"grep", "bow"}  # they return only what shares a word with the question
    assert (short["n_hits"] < 20).all()
    enough = filled[filled["budget_filled"].astype(bool)]
    assert ((enough["ctx_tokens"] / enough["budget"]).between(0.98, 1.0)).all()
    means = enough.groupby(["budget", "arm"])["ctx_tokens"].mean()
    for budget in (150, 300):
        assert len(means[budget]) == 4
        assert means[budget].max() / means[budget].min() <= 1.02
    dry = rows[rows["budget"].notna() & rows["arm"].isin(["none", "oracle"])]
    assert not dry["budget_filled"].any()
    assert {p.kind for p in report.problems} >= {"budget-not-filled"}
    as_is = rows[rows["budget"].isna()]
    assert as_is["budget_filled"].isna().all()
    assert as_is.groupby("arm")["ctx_tokens"].mean().nunique() > 3
    assert rows["protocol_id"].nunique() == 3


def test_the_oracle_is_read_before_anything_else(scripted, stores, tmp_path):
    double = scripted(behaviours=("right",))
    execute(declare(tmp_path, double.url, arms=["full", "bm25", "oracle"], **OPEN), stores["locomo"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    started = rows.groupby("arm")["started_at"]
    assert started.max()["oracle"] <= started.min()["bm25"]


def test_no_ceiling_no_spending(scripted, stores, tmp_path):
    double = scripted(behaviours=("wrong",))
    path = declare(tmp_path, double.url, arms=["oracle", "bm25"])
    run = StudyRun(load_study(path), stores["locomo"], tmp_path / "out", Options())
    run.execute()
    run.close()
    assert isinstance(run.shut, GateError)
    assert "oracle-ceiling is shut" in str(run.shut)
    assert sum(double.requests.values()) == 22  # the oracle's questions and no more
    path = declare(tmp_path, double.url, arms=["bm25"])
    run = StudyRun(load_study(path), stores["locomo"], tmp_path / "none", Options())
    run.execute()
    run.close()
    assert "nobody knows" in str(run.shut)
    assert sum(double.requests.values()) == 22


def test_a_ceiling_from_an_earlier_result_counts_if_it_is_of_the_same_reader(scripted, stores, tmp_path):
    double = scripted(behaviours=("right",))
    execute(declare(tmp_path, double.url, arms=["oracle"]), stores["locomo"], tmp_path / "ceiling")
    path = declare(tmp_path, double.url, arms=["bm25"], gates={"ceiling_result": "ceiling"})
    report, run = execute(path, stores["locomo"], tmp_path / "out")
    assert report.complete
    assert [gate.passed for gate in run.gates] == [True, True]
    other = {"model": "openai/other-reader"}
    path = declare(tmp_path, double.url, arms=["bm25"], reader=other, gates={"ceiling_result": "ceiling"})
    run = StudyRun(load_study(path), stores["locomo"], tmp_path / "other", Options())
    run.execute()
    run.close()
    assert "another reader_model" in str(run.shut)


def test_a_shut_retrieval_gate_costs_nothing_and_a_waiver_is_loud(scripted, stores, tmp_path):
    double = scripted(behaviours=("right",))
    path = declare(tmp_path, double.url, gates={"retrieval": 0.99})
    run = StudyRun(load_study(path), stores["locomo"], tmp_path / "out", Options())
    with pytest.raises(GateError, match="bm25: finds"):
        run.execute()
    run.close()
    assert not double.requests
    assert not (tmp_path / "out").exists()
    said = []
    report, _ = execute(path, stores["locomo"], tmp_path / "out", waive=("retrieval-gate",), say=said.append)
    assert "WAIVED: the retrieval-gate is shut" in said[0]
    assert report.manifest["waived"] == ["retrieval-gate"]
    assert [g["waived"] for g in report.manifest["gates"]] == [True, False]
    assert "retrieval-gate" in {p.kind for p in report.problems}
    with pytest.raises(UsageError, match="no gate"):
        StudyRun(load_study(path), stores["locomo"], tmp_path / "x", Options(waive=("all",)))


def test_nothing_is_paid_twice(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, arms=ALL_ARMS, **OPEN)
    execute(path, stores["locomo"], tmp_path / "out")
    first = dict(double.requests)
    assert set(first.values()) == {1}  # arms that put the same words before the reader share its answer
    before = stable(read_study(tmp_path / "out").trials)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    assert dict(double.requests) == first
    assert report.manifest["calls"]["answered"] == 0
    assert report.manifest["calls"]["taken_over"] == len(first)
    assert stable(read_study(tmp_path / "out").trials).equals(before)
    execute(
        declare(tmp_path, double.url, arms=[*ALL_ARMS, "bm25:query=keywords"], **OPEN),
        stores["locomo"],
        tmp_path / "out",
    )
    assert set(double.requests.values()) == {1}


def test_another_prompt_endpoint_or_setting_is_another_call(scripted, stores, tmp_path):
    double = scripted()
    small = {"arms": ["oracle"], "sample": 4, **OPEN}
    execute(declare(tmp_path, double.url, **small), stores["locomo"], tmp_path / "out")
    (tmp_path / "mine.txt").write_text("Excerpts:\n{context}\n{date}\nQuestion: {question}\nAnswer:")
    for number, changes in enumerate(
        [{"prompt": "mine.txt"}, {"max_tokens": 99}, {"temperature": 0.5}, {"api_base": double.url + "/"}, {"seed": 3}]
    ):
        reader = {"model": "openai/double-reader", **changes}
        report, _ = execute(declare(tmp_path, double.url, reader=reader, **small), stores["locomo"], tmp_path / "out")
        assert report.manifest["calls"]["answered"] == 4, changes
        assert sum(double.requests.values()) == 4 * (number + 2)


def test_repeats_of_reader_and_judge_are_calls_of_their_own(scripted, stores, tmp_path):
    double = scripted(behaviours=("right",))
    path = declare(
        tmp_path, double.url, arms=["oracle"], sample=3, **OPEN,
        reader={"model": "openai/double-reader", "repeats": 2, "seed": 5},
        scorer={"name": "akm-harbor-judge"},
        judge={"model": "openai/double-judge", "repeats": 3, "probe": 0, "seed": 9},
    )  # fmt: skip
    execute(path, stores["locomo"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    assert len(rows) == 3 * 2 * 3
    assert {b.get("seed") for b in double.bodies} == {5, 6, 9, 10, 11}
    assert set(rows["repeat"]) == {0, 1}
    assert set(rows["judge_repeat"]) == {0, 1, 2}
    # both answers of the double are the same, so their judgements are too: 3 x 2 readings, 3 x 3 judgements
    assert sum(double.requests.values()) == 6 + 9
    assert verify(read_study(tmp_path / "out")) == []


def test_category_5_can_be_left_out_and_says_so(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, arms=["oracle"], category_5="exclude", **OPEN)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    assert "5" not in set(rows["qtype_raw"])
    assert report.manifest["protocols"]["as-is"]["category_5"] == "exclude"


def test_the_manifest_holds_the_whole_protocol_and_no_secret(scripted, stores, tmp_path):
    double = scripted()
    report, _ = execute(declare(tmp_path, double.url, **OWN, **OPEN), stores["locomo"], tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    protocol = manifest["protocols"]["as-is"]
    assert labelled(protocol)["id"] == protocol["id"]
    assert protocol["judge_served"] == ["double-judge"]
    assert protocol["reader_served"] == ["double-reader"]
    assert protocol["judge_prompt_ids"]
    assert protocol["topk"] == 3
    assert set(manifest["arms"]) == {"none", "full", "oracle", "bm25"}
    assert manifest["seeds"] == {"names_order_sample": 0, "reader": None}
    assert manifest["spent"]["usd"] == pytest.approx(
        report.manifest["spent"]["reader_usd"] + manifest["spent"]["judge_usd"]
    )
    text = json.dumps(manifest)
    assert "not-a-real-key" not in text
    assert str(tmp_path) not in text
    assert "not-a-real-key" not in (tmp_path / "out.calls.jsonl").read_text()


def test_a_dry_run_prices_every_call_and_makes_none(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, arms=["oracle", "bm25"], **OWN, **OPEN)
    run = StudyRun(load_study(path), stores["locomo"], tmp_path / "out", Options())
    lines = {line.what: line for line in run.estimate()}
    assert not double.requests
    assert lines["reader: oracle, as-is"].calls == 22
    assert lines["judge: bm25, as-is"].calls == 22
    most = sum(line.usd for line in lines.values())
    run.execute()
    run.close()
    assert 0 < run.book.spent() <= most
    assert {line.calls for line in run.estimate() if line.what.startswith("reader")} == {0}


@pytest.mark.parametrize("name", ["longmemeval", "beam", "convomem"])
def test_every_benchmark_can_be_judged_under_our_own_name(scripted, stores, tmp_path, name):
    double = scripted(name, behaviours=("right", "wrong"))
    path = declare(tmp_path, double.url, dataset=f"demo-{name}", arms=["oracle"], **OWN, **OPEN)
    report, _ = execute(path, stores[name], tmp_path / "out")
    assert report.complete
    assert set(read_study(tmp_path / "out").trials["scorer_id"]) == {"akm-harbor-judge/1"}


def test_a_scorer_of_another_benchmark_is_refused(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, dataset="demo-beam")
    with pytest.raises(UsageError, match="does not score beam"):
        StudyRun(load_study(path), stores["beam"], tmp_path / "out", Options())


def test_a_probe_is_no_study(tmp_path, stores):
    with pytest.raises(AkmHarborError, match="is no study"):
        read_study(stores["locomo"].path)
    assert issubclass(NotComparableError, AkmHarborError)
