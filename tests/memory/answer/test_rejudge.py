"""Stored answers are judged again: the reader is not asked, and what does not fit is said."""

import pytest

from akm_harbor.errors import NotComparableError, UsageError
from akm_harbor.memory.answer.agreement import agreement
from akm_harbor.memory.answer.protocol_label import protocol_differences
from akm_harbor.memory.answer.rejudge import Rejudging
from akm_harbor.memory.answer.result import read_study
from akm_harbor.memory.answer.spec import load_study
from akm_harbor.memory.answer.verification import verify
from tests.memory.answer.support import declare, execute

pytestmark = pytest.mark.usefixtures("direct")
OPEN = {"gates": {"ceiling": 0.0, "retrieval": 0.0}, "arms": ["oracle", "bm25"]}


def own(**judge):
    return {"scorer": {"name": "akm-harbor-judge"}, "judge": {"model": "openai/double-judge", "probe": 2, **judge}}


def rejudge(result, path, out):
    rejudging = Rejudging(read_study(result), load_study(path), out)
    estimate = rejudging.estimate()
    return rejudging.execute(), estimate


def test_another_scorer_gets_its_own_result_and_protocol(scripted, stores, tmp_path):
    double = scripted(judge=("strict", "prose"))
    execute(declare(tmp_path, double.url, **OPEN), stores["locomo"], tmp_path / "f1")
    read = sum(double.requests.values())
    report, estimate = rejudge(tmp_path / "f1", declare(tmp_path, double.url, **own(), **OPEN), tmp_path / "judged")
    assert report.complete
    assert estimate.calls > 44
    assert estimate.usd > report.manifest["spent"]["judge_usd"] > 0
    assert sum("Excerpts:" in p for p in double.prompts) == read
    assert verify(read_study(tmp_path / "judged")) == []
    old, new = read_study(tmp_path / "f1"), read_study(tmp_path / "judged")
    assert old.trials["answer"].tolist() == new.trials["answer"].tolist()
    assert new.manifest["rejudged_from"] == old.manifest["run_id"]
    differences = protocol_differences([old.manifest["protocols"]["as-is"], new.manifest["protocols"]["as-is"]])
    assert any(text.startswith("scorer:") for text in differences)
    assert not any(text.startswith("reader") for text in differences)


def test_a_judgement_is_not_paid_twice(scripted, stores, tmp_path):
    double = scripted()
    execute(declare(tmp_path, double.url, **OPEN), stores["locomo"], tmp_path / "f1")
    path = declare(tmp_path, double.url, **own(), **OPEN)
    rejudge(tmp_path / "f1", path, tmp_path / "judged")
    before = sum(double.requests.values())
    _, estimate = rejudge(tmp_path / "f1", path, tmp_path / "judged")
    assert sum(double.requests.values()) == before
    assert (estimate.calls, estimate.usd) == (0, 0.0)


def test_judges_are_compared_answer_by_answer(scripted, stores, tmp_path):
    double = scripted(behaviours=("right", "wrong", "vague"), judge=("strict", "strict", "strict", "prose"))
    execute(declare(tmp_path, double.url, **own(repeats=2, seed=1), **OPEN), stores["locomo"], tmp_path / "a")
    double.script.judge = dict.fromkeys(double.script.judge, "lenient")
    rejudge(tmp_path / "a", declare(tmp_path, double.url, **own(model="openai/lenient-judge"), **OPEN), tmp_path / "b")
    found = agreement([read_study(tmp_path / "a"), read_study(tmp_path / "b")])
    assert len(found.raters) == 3
    assert (found.n, found.left_out) == (44, 0)
    same, *others = found.pairs
    assert (same.agreed, same.kappa) == (1.0, 1.0)
    for pair in others:
        assert pair.agreed < 1
        assert 0 < pair.kappa < 1
        assert pair.low < pair.kappa < pair.high
        assert pair.counts["undecided", "yes"] + pair.counts["undecided", "no"] > 0  # counted, not dropped
    assert 0 < found.fleiss < 1


def test_what_has_no_verdicts_or_no_second_judge_is_refused(scripted, stores, tmp_path):
    double = scripted()
    execute(declare(tmp_path, double.url, **OPEN), stores["locomo"], tmp_path / "f1")
    execute(declare(tmp_path, double.url, **own(), **OPEN), stores["locomo"], tmp_path / "a")
    with pytest.raises(NotComparableError, match="no verdicts"):
        agreement([read_study(tmp_path / "f1")])
    with pytest.raises(NotComparableError, match="one judge alone"):
        agreement([read_study(tmp_path / "a")])


def test_a_result_is_not_judged_over_itself(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, **OPEN)
    execute(path, stores["locomo"], tmp_path / "f1")
    with pytest.raises(UsageError, match="not judged over itself"):
        Rejudging(read_study(tmp_path / "f1"), load_study(path), tmp_path / "f1")


def test_judges_that_always_say_the_same_have_no_kappa(scripted, stores, tmp_path):
    double = scripted(behaviours=("right",))
    path = declare(tmp_path, double.url, **own(repeats=2, seed=1), **{**OPEN, "arms": ["oracle"]}, category_5="exclude")
    execute(path, stores["locomo"], tmp_path / "a")
    (pair,) = agreement([read_study(tmp_path / "a")]).pairs
    assert (pair.agreed, pair.kappa) == (1.0, None)
