"""What goes wrong in a study: typed, counted, and nothing lost: the next run takes over every answer."""

import errno

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer.journal import Journal
from akm_harbor.memory.answer.price import PriceUnknownError
from akm_harbor.memory.answer.result import read_study
from akm_harbor.memory.answer.spec import load_study
from akm_harbor.memory.answer.study import Options, StudyRun
from akm_harbor.memory.answer.verification import verify
from tests.memory.answer.support import declare, execute, stable

pytestmark = pytest.mark.usefixtures("here")
OPEN = {
    "gates": {"ceiling": 0.0, "retrieval": 0.0},
    "arms": ["oracle", "bm25"],
    "concurrency": 1,
    "sample": 7,
    "seed": 2,
}
ASKED = 7
OWN = {"scorer": {"name": "akm-harbor-judge"}, "judge": {"model": "openai/double-judge", "probe": 0}}
READS, JUDGES = "Excerpts:", "Answer to be judged:"


@pytest.fixture
def whole(scripted, stores, tmp_path):
    """The table of a run in which nothing goes wrong."""
    double = scripted()
    path = declare(tmp_path, double.url, **OWN, **OPEN)
    execute(path, stores["locomo"], tmp_path / "whole")
    return stable(read_study(tmp_path / "whole").trials)


CASES = [
    # (fault, of whose calls, how often, status, error class, the run is stopped)
    ("401", READS, 1, "not-run", "unauthorized", True),
    ("404", READS, 1, "reader-failed", "not-found", True),
    ("quota", READS, 1, "reader-failed", "quota", True),
    ("429", READS, 99, "reader-failed", "rate-limited", True),
    ("500", READS, 99, "reader-failed", "server-error", True),
    ("cut", READS, 99, "reader-failed", "cut-stream", True),
    ("html", READS, 99, "reader-failed", "malformed-response", True),
    ("400", READS, 1, "reader-failed", "bad-request", False),
    ("long", READS, 1, "reader-failed", "context-too-long", False),
    ("401", JUDGES, 1, "judge-failed", "unauthorized", True),
    ("429", JUDGES, 99, "judge-failed", "rate-limited", True),
    ("400", JUDGES, 1, "judge-failed", "bad-request", False),
    ("other-model", READS, 1, "other-model", "other-model", True),
    ("other-model", JUDGES, 1, "judge-failed", "other-model", True),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]} {case[1].split()[0]}")
def test_a_failure_is_typed_and_counted_and_the_next_run_finishes(scripted, stores, tmp_path, whole, case):
    fault, whose, times, status, kind, stopped = case
    double = scripted()
    double.script.faults[whose] = [fault] * times
    path = declare(
        tmp_path, double.url, **OPEN,
        reader={"model": "openai/double-reader", "attempts": 2},
        scorer={"name": "akm-harbor-judge"}, judge={"model": "openai/double-judge", "probe": 0, "attempts": 2},
    )  # fmt: skip
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    assert not report.complete
    assert (report.manifest["stopped"] is not None) is stopped
    rows = read_study(tmp_path / "out").trials
    assert len(rows) == len(whole)  # no row is missing
    failed = rows[rows["error_class"] == kind]
    assert len(failed)
    if fault != "401" or whose != READS:
        assert set(failed["status"]) == {status}
    assert failed["score_official"].isna().all()
    assert failed["error"].notna().all()
    (everything,) = [r for r in report.scores.to_pylist() if r["group"] == "all" and r["arm"] == "oracle"]
    assert everything["failed"] >= 1
    assert everything["n"] + everything["failed"] + everything["undecided"] == everything["asked"] == ASKED
    assert verify(read_study(tmp_path / "out")) == []
    assert status in {p.kind for p in report.problems}

    double.script.faults.clear()
    before = {digest: n for digest, n in double.answers.items() if n}
    changes = {"reader": {}, "judge": {}}
    if fault == "other-model":
        changes["reader" if whose == READS else "judge"] = {
            "serves": ["double-reader", "double-judge", "another-model"]
        }
    path = declare(
        tmp_path, double.url, **OPEN,
        reader={"model": "openai/double-reader", **changes["reader"]},
        scorer={"name": "akm-harbor-judge"}, judge={"model": "openai/double-judge", "probe": 0, **changes["judge"]},
    )  # fmt: skip
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    assert report.complete
    for digest in before:  # what was answered is not asked again
        assert double.answers[digest] == 1
    columns = ["question_id", "arm", "answer", "score_official", "status", "verdict"]
    assert stable(read_study(tmp_path / "out").trials)[columns].equals(whole[columns])


@pytest.mark.parametrize("case", [("429", 2), ("500", 1), ("cut", 2), ("html", 1), ("no-choice", 1)])
def test_what_passes_is_waited_out(scripted, stores, tmp_path, whole, case):
    fault, times = case
    double = scripted()
    double.script.faults[READS] = [fault] * times
    report, _ = execute(declare(tmp_path, double.url, **OWN, **OPEN), stores["locomo"], tmp_path / "out")
    assert report.complete
    assert report.manifest["calls"]["retried"] == times
    columns = ["question_id", "arm", "answer", "score_official", "status"]
    assert stable(read_study(tmp_path / "out").trials)[columns].equals(whole[columns])


def test_a_model_that_was_not_asked_for_costs_one_call_and_no_more_on_the_next_run(scripted, stores, tmp_path):
    double = scripted()
    double.script.served = "somebody-else"
    path = declare(tmp_path, double.url, **OPEN)
    for _ in range(2):
        report, _ = execute(path, stores["locomo"], tmp_path / "out")
        assert sum(double.requests.values()) == 1
        assert report.manifest["stopped"][0] == "other-model"
        assert report.statuses["other-model"] >= 1
        assert report.statuses["not-run"] == 2 * ASKED - report.statuses["other-model"]


def test_the_cap_is_reached_midway_and_a_larger_one_goes_on(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, spending={"max_usd": 0.0025}, **OPEN)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    assert not report.complete
    assert 0 < report.statuses["not-run"] < 2 * ASKED
    assert set(read_study(tmp_path / "out").trials["error_class"].dropna()) == {"cap-reached"}
    assert report.manifest["spent"]["usd"] <= 0.0025
    report, _ = execute(
        declare(tmp_path, double.url, spending={"max_usd": 1.0}, **OPEN), stores["locomo"], tmp_path / "out"
    )
    assert report.complete
    assert max(double.requests.values()) == 1


def test_a_price_nobody_knows_is_refused_before_the_first_call(scripted, stores, tmp_path):
    double = scripted()
    path = declare(tmp_path, double.url, reader={"model": "openai/double-reader", "price": None}, **OPEN)
    with pytest.raises(PriceUnknownError, match="price of openai/double-reader is not known"):
        StudyRun(load_study(path), stores["locomo"], tmp_path / "out", Options())
    assert not double.requests


def test_a_price_said_to_be_unknown_is_counted_and_calls_are_capped(scripted, stores, tmp_path):
    double = scripted()
    reader = {"model": "openai/double-reader", "price": "unknown"}
    path = declare(tmp_path, double.url, reader=reader, spending={"max_calls": 5}, **OPEN)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    assert sum(double.requests.values()) == 5
    assert report.manifest["spent"]["unpriced_calls"] == 5
    rows = read_study(tmp_path / "out").trials
    assert rows["usd"].isna().all()
    assert (rows["error_class"] == "cap-reached").any()


def test_a_server_that_does_not_count_tokens_leaves_prices_empty(scripted, stores, tmp_path):
    double = scripted()
    double.script.usage = False
    report, _ = execute(declare(tmp_path, double.url, **OPEN), stores["locomo"], tmp_path / "out")
    assert report.complete
    assert read_study(tmp_path / "out").trials["reader_usd"].isna().all()
    assert report.manifest["spent"]["unpriced_calls"] == report.manifest["calls"]["answered"]
    assert report.manifest["spent"]["usd"] > 0  # the cap counts the most each can have cost


def test_a_prompt_that_does_not_fit_is_not_sent(scripted, stores, tmp_path):
    double = scripted()
    changes = {**OPEN, "arms": ["oracle", "full"]}
    reader = {"model": "openai/double-reader", "context_window": 600}
    report, _ = execute(declare(tmp_path, double.url, reader=reader, **changes), stores["locomo"], tmp_path / "out")
    rows = read_study(tmp_path / "out").trials
    too_long = rows[rows["error_class"] == "context-too-long"]
    assert set(too_long["arm"]) == {"full"}
    assert set(too_long["status"]) == {"reader-failed"}
    assert sum(double.requests.values()) <= 2 * ASKED - len(too_long)
    assert not report.complete


def test_a_key_that_is_not_set_is_named_before_any_call(scripted, stores, tmp_path, monkeypatch):
    double = scripted()
    monkeypatch.delenv("DOUBLE_KEY")
    run = StudyRun(load_study(declare(tmp_path, double.url, **OPEN)), stores["locomo"], tmp_path / "out", Options())
    with pytest.raises(AkmHarborError, match="DOUBLE_KEY"):
        run.execute()
    assert not double.requests


def test_a_full_disk_stops_the_sending_and_loses_no_answer(scripted, stores, tmp_path, monkeypatch):
    double = scripted()
    real, written = Journal._append, []

    def append(journal, line):
        if len(written) >= 9 and journal._reserve.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(line)
        real(journal, line)

    path = declare(tmp_path, double.url, **{**OPEN, "concurrency": 4})
    monkeypatch.setattr(Journal, "_append", append)
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setenv("DOUBLE_KEY", "not-a-real-key")
    assert report.manifest["stopped"][0] == "disk-full"
    assert "No space left" in report.manifest["stopped"][1]
    assert not report.complete
    report, _ = execute(path, stores["locomo"], tmp_path / "out")
    assert report.complete
    assert max(double.requests.values()) == 1


def test_a_full_disk_under_the_result_keeps_the_old_one_and_every_answer(scripted, stores, tmp_path, monkeypatch):
    double = scripted()
    path = declare(tmp_path, double.url, **OPEN)
    execute(path, stores["locomo"], tmp_path / "out")
    before = stable(read_study(tmp_path / "out").trials)

    def full(*_args, **_kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("akm_harbor.tables.dataset.write_file", full)
    larger = declare(tmp_path, double.url, **{**OPEN, "arms": ["oracle", "bm25", "full"]})
    with pytest.raises(AkmHarborError, match="No space left"):
        execute(larger, stores["locomo"], tmp_path / "out")
    monkeypatch.undo()
    monkeypatch.setenv("DOUBLE_KEY", "not-a-real-key")
    assert stable(read_study(tmp_path / "out").trials).equals(before)
    report, _ = execute(larger, stores["locomo"], tmp_path / "out")
    assert report.complete
    assert max(double.requests.values()) == 1
