"""Attempts recorded before their directories went become superseded rows, each once."""

import copy
import json
from pathlib import Path

import pytest

from akm_harbor.tables import read_table
from akm_harbor.trials import collect
from akm_harbor.trials.attempts import FILE, record
from tests.trials.conftest import RESULT, Jobs, exception


@pytest.fixture
def jobs(tmp_path):
    return Jobs(tmp_path / "jobs")


def attempt(number=90, **over):
    return {
        **copy.deepcopy(RESULT),
        "id": f"00000000-0000-4000-8000-{number:012d}",
        "exception_info": exception("HealthcheckError"),
        "verifier_result": None,
        **over,
    }


def rows(tmp_path, **options):
    collect([tmp_path / "jobs"], tmp_path / "data", tasks=[], **options)
    return read_table(tmp_path / "data", "trials").to_pylist()


def test_a_retried_attempt_is_a_superseded_row_beside_the_one_that_counts(tmp_path, jobs):
    kept = jobs.trial()
    job = kept.parent
    record(job, attempt(), by="plugin", digest="sha256:t")
    survivor = json.loads((kept / "result.json").read_text())
    record(job, survivor, by="plugin")  # the plugin records every attempt, also the one that stays
    first, gone = rows(tmp_path)
    assert (first["status"], first["recorded_by"]) == ("scored", None)
    assert (gone["status"], gone["own_status"], gone["recorded_by"]) == ("superseded", "unscored", "plugin")
    assert gone["exception_type"] == "HealthcheckError"
    assert (gone["task_digest"], gone["arm"], gone["job_id"]) == ("sha256:t", "opencode", first["job_id"])
    assert gone["agent_seconds"] == 40.5
    assert gone["trial_path"] == f"{first['trial_path']}~gone-1"
    problems = read_table(tmp_path / "data", "problems").to_pylist()
    assert not [p for p in problems if FILE in p["path"]]


def test_collecting_again_notices_the_record_and_keeps_what_it_read(tmp_path, jobs):
    kept = jobs.trial()
    assert len(rows(tmp_path)) == 1
    record(kept.parent, attempt(), by="plugin")
    assert len(rows(tmp_path)) == 2
    again = collect([tmp_path / "jobs"], tmp_path / "data", tasks=[])
    assert again.n_trials == 2
    assert len(rows(tmp_path, fresh=True)) == 2


def test_a_trial_that_was_deleted_unfinished(tmp_path, jobs):
    kept = jobs.trial()
    config = {
        "trial_name": "x__1234567",
        "task": {"path": "tasks/x"},
        "agent": {"import_path": "akm_harbor:AkmOpenCode"},
    }
    record(kept.parent, {"trial_name": "x__1234567", "config": {**config, "job_id": "j"}}, by="resume")
    gone = rows(tmp_path)[1]
    assert (gone["own_status"], gone["trial_name"], gone["recorded_by"]) == ("unfinished", "x__1234567", "resume")
    assert gone["agent_name"] == "opencode-akm"
    assert gone["reward"] is None


def test_the_last_record_of_an_unreadable_trial_is_that_trial(tmp_path, jobs):
    broken = jobs.trial(raw=b"{")
    record(broken.parent, attempt(1), by="plugin")
    record(broken.parent, attempt(2), by="plugin")
    assert [(r["status"], r["recorded_by"]) for r in rows(tmp_path)] == [("unreadable", None), ("superseded", "plugin")]


def test_recorded_twice_is_one_row(tmp_path, jobs):
    kept = jobs.trial()
    for by in ("plugin", "resume"):
        record(kept.parent, attempt(), by=by)
    assert [r["recorded_by"] for r in rows(tmp_path)] == [None, "resume"]


def test_no_secret_is_written(tmp_path, jobs):
    kept = jobs.trial()
    secret = 'a "quoted" s3cret'
    info = exception("RuntimeError", f"curl -H {secret}; sk-abcdefghijklmnop123456 failed")
    config = {"agent": {"kwargs": {"opencode_config": {"apiKey": "plain-but-named"}}}}
    record(kept.parent, attempt(exception_info=info, config=config), by="plugin", secrets=["no", secret])
    text = (kept.parent / FILE).read_text()
    for part in ("s3cret", "sk-abc", "plain-but-named", "Traceback"):
        assert part not in text, part
    assert "HealthcheckError" not in text
    assert json.loads(text)["result"]["exception_info"]["exception_type"] == "RuntimeError"


def test_lines_that_are_none_are_problems_and_stop_nothing(tmp_path, jobs):
    kept = jobs.trial()
    record(kept.parent, attempt(), by="plugin")
    path = kept.parent / FILE
    path.write_text('[]\n{"version": 1}\n' + path.read_text() + '{"version": 1, "by": "plu')
    assert len(rows(tmp_path)) == 2
    kinds = [(p["kind"], Path(p["path"]).name) for p in read_table(tmp_path / "data", "problems").to_pylist()]
    assert [k for k in kinds if k[1] == FILE] == [
        ("not-an-attempt", FILE),
        ("not-an-attempt", FILE),
        ("invalid-json", FILE),
    ]


def test_a_link_in_its_place_is_neither_read_nor_written(tmp_path, jobs):
    kept = jobs.trial()
    target = tmp_path / "elsewhere"
    target.write_text("{}")
    (kept.parent / FILE).symlink_to(target)
    with pytest.raises(OSError, match="symbolic"):
        record(kept.parent, attempt(), by="plugin")
    assert len(rows(tmp_path)) == 1
