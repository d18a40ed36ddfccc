"""The release gate: paired, clustered, and strict about what may be compared."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from akm_harbor.errors import AkmHarborError, NotComparableError, UsageError
from akm_harbor.memory.backends.registry import parse_arm
from akm_harbor.memory.compare import BETTER, EQUAL, LEVEL, WORSE, Gate, compare
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import find_source
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.probe import Settings, probe
from akm_harbor.memory.results import Result, read_result
from akm_harbor.stats.results import NotEstimable


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """bm25 and bow at turn granularity, each under two names, over the shipped LoCoMo."""
    root = tmp_path_factory.mktemp("probes")
    store = Store(convert(find_source("demo-locomo").path, root / "data").path)
    made = {}
    for arm in ("bm25", "bow"):
        settings = Settings((parse_arm(arm),), ("turn",), repeats=2, topk=3, ks=(1, 3))
        made[arm] = read_result(probe(store, settings, root / arm).path)
    return made


def edited(result, change):
    trials = result.trials.copy()
    change(trials)
    return dataclasses.replace(result, trials=trials)


def test_a_result_equals_itself(results):
    (found,) = compare(results["bm25"], results["bm25"], Gate())
    assert (found.verdict, found.changed, found.failures) == (EQUAL, 0, ())
    assert isinstance(found.difference, NotEstimable)
    assert (found.name_dependent_a, found.name_dependent_b) == (0.0, 0.0)
    assert found.n == 19
    assert found.histories == 2


def test_two_arms_are_paired_by_question(results):
    (found,) = compare(results["bow"], results["bm25"], Gate("recall_frac"))
    wide = [
        r.trials[(r.trials["repeat"] == 0)].set_index("question_id")["recall_frac"]
        for r in (results["bow"], results["bm25"])
    ]
    delta = (wide[1] - wide[0]).dropna()
    assert found.mean_b - found.mean_a == pytest.approx(delta.mean())
    assert found.changed == (delta.abs() > 0).sum()
    assert (found.arm_a, found.arm_b) == ("bow", "bm25")


def test_cut_offs_come_from_the_retrieval_table(results):
    (found,) = compare(results["bow"], results["bm25"], Gate("recall_any", 1))
    at = results["bm25"].retrieval
    at = at[(at["k"] == 1) & (at["repeat"] == 0)]
    assert found.mean_b == pytest.approx(at["recall_any"].mean())
    with pytest.raises(UsageError, match="no metrics at k=7"):
        compare(results["bow"], results["bm25"], Gate("recall_any", 7))
    with pytest.raises(UsageError, match="mrr has no cut-off"):
        compare(results["bow"], results["bm25"], Gate("mrr", 3))
    with pytest.raises(UsageError, match="no metric 'accuracy'"):
        compare(results["bow"], results["bm25"], Gate("accuracy"))


def test_a_loss_beyond_the_allowance_fails_the_gate(results):
    def lose(trials):
        hit = trials.index[trials["recall_all"] == 1][:4]
        trials.loc[hit, "recall_all"] = 0.0

    (found,) = compare(results["bm25"], edited(results["bm25"], lose), Gate())
    assert found.verdict in (LEVEL, WORSE)
    assert "recall_all is lower by" in found.failures[0]
    (found,) = compare(results["bm25"], edited(results["bm25"], lose), Gate(max_loss=0.5, max_name_dependent=1))
    assert found.failures == ()
    (found,) = compare(edited(results["bm25"], lose), results["bm25"], Gate())
    assert found.failures == ()


def test_more_questions_without_a_hit_fail_the_gate(results):
    def lose(trials):
        trials.loc[trials.index[:2], "zero_hit"] = True

    (found,) = compare(results["bm25"], edited(results["bm25"], lose), Gate())
    assert "questions without a hit rise" in found.failures[0]
    (found,) = compare(results["bm25"], edited(results["bm25"], lose), Gate(max_zero_hit_rise=0.2))
    assert found.failures == ()


def test_scores_that_depend_on_names_fail_the_gate(results):
    def shift(trials):
        row = trials.index[(trials["repeat"] == 1) & (trials["recall_all"] == 1)][:3]
        trials.loc[row, "recall_all"] = 0.0

    (found,) = compare(results["bm25"], edited(results["bm25"], shift), Gate(max_loss=1))
    assert found.name_dependent_b == pytest.approx(3 / 19)
    assert "score otherwise under other names" in found.failures[0]
    (found,) = compare(results["bm25"], edited(results["bm25"], shift), Gate(max_loss=1, max_name_dependent=0.2))
    assert found.failures == ()


def test_one_repeat_leaves_the_names_unchecked(results):
    def first(result):
        return dataclasses.replace(result, trials=result.trials[result.trials["repeat"] == 0])

    (found,) = compare(first(results["bm25"]), first(results["bm25"]), Gate())
    assert found.name_dependent_b is None


def test_other_data_or_settings_are_refused_with_what_differs(results):
    def other_protocol(trials):
        trials["protocol_id"] = "x"

    b = edited(results["bm25"], other_protocol)
    manifest = {**b.manifest, "protocols": {"turn": {**b.manifest["protocols"]["turn"], "id": "x", "topk": 10}}}
    with pytest.raises(NotComparableError, match="topk: 3 and 10"):
        compare(results["bm25"], dataclasses.replace(b, manifest=manifest), Gate())
    with pytest.raises(NotComparableError, match="measured differently"):
        compare(dataclasses.replace(results["bm25"], manifest={}), dataclasses.replace(b, manifest={}), Gate())


def test_failed_rows_and_unshared_arms_are_refused(results):
    def fail(trials):
        trials.loc[0, ["status", "error_class"]] = ["search-failed", "contamination"]

    with pytest.raises(NotComparableError, match=r"1 of 44 rows failed \(contamination\)"):
        compare(results["bm25"], edited(results["bm25"], fail), Gate())

    def rename(trials):
        trials["granularity"] = "session"

    with pytest.raises(NotComparableError, match="share no arm"):
        compare(results["bm25"], edited(results["bm25"], rename), Gate())


def test_questions_of_one_side_only_are_counted(results):
    fewer = dataclasses.replace(
        results["bm25"], trials=results["bm25"].trials[results["bm25"].trials["question_id"] != "demo-1/qa1"]
    )
    (found,) = compare(results["bm25"], fewer, Gate())
    assert found.only_in_one == 1
    assert found.n == 18


def test_a_single_file_can_be_compared_too(results, tmp_path):
    inside = results["bm25"].path / "memory_trials" / "part-0.parquet"
    (found,) = compare(results["bow"], read_result(inside), Gate("recall_any", 1))  # its dataset is found
    assert found.n == 19
    moved = tmp_path / "new.parquet"
    moved.write_bytes(inside.read_bytes())
    alone = read_result(moved)
    assert alone.manifest == {}
    (found,) = compare(results["bow"], alone, Gate("recall_any"))
    assert found.n == 19


def test_what_is_no_result_is_refused(tmp_path):
    with pytest.raises(AkmHarborError, match="cannot be read as Parquet"):
        read_result(tmp_path / "gone.parquet")
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "other.parquet")
    with pytest.raises(AkmHarborError, match="is no memory_trials file: it lacks run_id"):
        read_result(tmp_path / "other.parquet")


def test_verdicts_follow_the_interval(results):
    def improve(trials):
        trials["recall_all"] = np.where(trials["gold_status"] == "ok", 1.0, np.nan)

    def ruin(trials):
        trials["recall_all"] = np.where(trials["gold_status"] == "ok", 0.0, np.nan)

    good, bad = edited(results["bm25"], improve), edited(results["bm25"], ruin)

    def jitter(trials):
        trials.loc[trials["question_id"] == "demo-1/qa0", "recall_all"] = 0.5

    (found,) = compare(edited(bad, jitter), good, Gate())
    assert found.verdict == BETTER
    (found,) = compare(good, edited(bad, jitter), Gate())
    assert found.verdict == WORSE
    assert "whole interval is below 0" in found.failures[0]
    assert isinstance(results["bm25"], Result)
