import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.resources import sample_jobs
from akm_harbor.tables import read_frame, read_table
from akm_harbor.tables.layout import STATE
from akm_harbor.tables.problems import PROBLEMS
from akm_harbor.trials import collect
from akm_harbor.trials.columns import ALL, STATUSES, TRIALS
from tests.trials.conftest import RECORDINGS, Jobs, exception


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return tmp_path / "dataset"


def settle_clock(root: Path) -> None:
    """Make everything old enough for its stamps to prove something."""
    past = time.time() - 10
    for path in [*root.rglob("*"), root]:
        if not path.is_symlink():
            os.utime(path, (past, past))


def trials_of(dataset: Path) -> pd.DataFrame:
    return read_frame(dataset, "trials").set_index("trial_path")


def everything(dataset: Path) -> dict[str, list[dict[str, Any]]]:
    """All rows of all tables, in an order that does not depend on how they were made."""
    tables = {}
    for table in (*ALL, PROBLEMS):
        rows = read_table(dataset, table).to_pylist()
        tables[table.name] = sorted(rows, key=lambda row: json.dumps(row, default=str, sort_keys=True))
    return tables


def test_every_table_has_exactly_its_declared_schema(jobs: Jobs, dataset: Path) -> None:
    jobs.trial()
    collect([jobs.root], dataset)
    import pyarrow.parquet as pq

    for table in (*ALL, PROBLEMS):
        (part,) = (dataset / table.name).glob("*.parquet")
        schema = pq.read_schema(part)
        assert schema.names == table.names
        assert schema.equals(table.schema())
        assert schema.metadata[b"akm_harbor.schema_version"] == f"{table.name}/{table.version}".encode()


def test_arms(jobs: Jobs, dataset: Path) -> None:
    path = jobs.trial("one")
    result = json.loads((path / "result.json").read_text())
    result["config"]["agent"]["kwargs"] = {"arm": "treated"}
    (path / "result.json").write_text(json.dumps(result))
    jobs.trial("two", "task-a__BBBBBBB")
    expected = {
        "auto": ["treated", "opencode"],
        "kwarg": ["treated", None],
        "agent": ["opencode", "opencode"],
        "job": ["one", "two"],
        "model": ["prov/model", "prov/model"],
        "submission": [None, None],
    }
    for arm_by, arms in expected.items():
        collect([jobs.root], dataset, arm_by=arm_by)
        assert [None if pd.isna(a) else a for a in read_frame(dataset, "trials").arm] == arms
    with pytest.raises(UsageError, match="unknown --arm-by"):
        collect([jobs.root], dataset, arm_by="colour")


def test_in_a_tree_of_submissions_the_arm_is_the_submission(tmp_path: Path, dataset: Path) -> None:
    for sub in ("x__m", "y__m"):
        Jobs(tmp_path / "submissions" / "b" / sub).trial("run")
    collect([tmp_path / "submissions"], dataset)
    rows = read_frame(dataset, "trials")
    assert list(rows.arm) == list(rows.submission) == ["x__m", "y__m"]


def test_a_job_without_config_keeps_its_rows_and_says_what_is_missing(jobs: Jobs, dataset: Path) -> None:
    for i in range(300):
        fields: dict[str, Any] = {"verifier_result": None} if i < 3 else {}
        trial = jobs.trial("big", f"task-{i}__{i:07d}", **fields)
    (trial.parent / "config.json").unlink()
    result = collect([jobs.root], dataset)
    assert result.statuses == {"scored": 297, "unscored": 3}
    assert result.problems == {"job-config-missing": 1}
    rows = read_frame(dataset, "trials")
    assert rows.max_retries.isna().all()
    assert rows.n_concurrent.isna().all()
    assert set(rows.job_name) == {"big"}


def test_a_driver_that_stopped_before_the_end_loses_no_trial(jobs: Jobs, dataset: Path) -> None:
    for i in range(5):
        trial = jobs.trial("stopped", f"t{i}__AAAAAA{i}")
    (trial.parent / "result.json").unlink()
    jobs.trial("stopped", "t5__AAAAAA5").joinpath("result.json").unlink()
    result = collect([jobs.root], dataset)
    assert result.statuses == {"scored": 5, "unfinished": 1}
    assert result.problems == {"job-result-missing": 1}


def test_problems_name_their_file_below_the_input_as_given(
    jobs: Jobs, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.trial("one", raw=b"{")
    monkeypatch.chdir(jobs.root.parent)
    collect(["jobs"], dataset)
    (problem,) = read_table(dataset, PROBLEMS).to_pylist()
    assert problem == {
        "path": "jobs/one/task-a__AAAAAAA/result.json",
        "kind": "invalid-json",
        "detail": problem["detail"],
        "action": "row kept, status unreadable, no reward",
    }
    assert "line 1 column 2" in problem["detail"]
    row = read_frame(dataset, "trials").iloc[0]
    assert (jobs.root.parent / row.root / row.trial_path).is_dir()


def test_minor_findings_are_told_once_a_job(jobs: Jobs, dataset: Path) -> None:
    for i in range(4):
        jobs.trial("one", f"t{i}__AAAAAA{i}", started_at="2026-01-01T00:00:00")
    assert collect([jobs.root], dataset).problems == {"naive-timestamp": 1}
    (problem,) = read_table(dataset, PROBLEMS).to_pylist()
    assert problem["detail"].startswith("4 trial(s), the first t0__AAAAAA0")


def test_statuses_are_the_declared_ones(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("a", "t1__AAAAAA1")
    jobs.trial("a", "t2__AAAAAA2", exception_info=exception("AgentTimeoutError"))
    jobs.trial("a", "t3__AAAAAA3", verifier_result=None)
    jobs.trial("a", "t4__AAAAAA4", raw=b"")
    jobs.trial("a", "t5__AAAAAA5", verifier_result=None, exception_info=exception("CancelledError"))
    result = collect([jobs.root], dataset)
    assert set(result.statuses) <= set(STATUSES)
    assert result.statuses == {"scored": 1, "scored_with_error": 1, "unscored": 1, "unreadable": 1, "cancelled": 1}


# --- reading again ---------------------------------------------------------------------------


def test_nothing_changed_reads_and_writes_nothing(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one")
    settle_clock(jobs.root)
    first = collect([jobs.root], dataset)
    assert (first.n_read, first.unchanged) == (1, False)
    before = {p: p.stat().st_mtime_ns for p in dataset.rglob("*")}
    again = collect([jobs.root], dataset)
    assert (again.n_read, again.n_reused, again.unchanged) == (0, 1, True)
    assert (again.statuses, again.arms, again.n_trials, again.n_jobs) == (first.statuses, first.arms, 1, 1)
    assert {p: p.stat().st_mtime_ns for p in dataset.rglob("*")} == before


def test_nothing_changed_does_not_even_load_arrow(jobs: Jobs, dataset: Path) -> None:
    import subprocess
    import sys

    jobs.trial("one")
    settle_clock(jobs.root)
    collect([jobs.root], dataset)
    code = (
        "import sys; from akm_harbor.trials import collect;"
        f"r = collect([{str(jobs.root)!r}], {str(dataset)!r}); assert r.unchanged;"
        "assert not {'pyarrow', 'pandas', 'numpy', 'harbor'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path.cwd())


CHANGES = {
    "a new trial": lambda r: shutil.copytree(r / "one" / "t0__AAAAAA0", r / "one" / "t9__AAAAAA9"),
    "a new job": lambda r: shutil.copytree(r / "one", r / "three"),
    "a result rewritten": lambda r: (r / "one" / "t1__AAAAAA1" / "result.json").write_text("{"),
    "a result gone": lambda r: (r / "one" / "t1__AAAAAA1" / "result.json").unlink(),
    "a trial gone": lambda r: shutil.rmtree(r / "one" / "t1__AAAAAA1"),
    "a job gone": lambda r: shutil.rmtree(r / "two"),
    "a trajectory appears": lambda r: _write(r / "one" / "t1__AAAAAA1" / "agent" / "trajectory.json", ATIF),
    "a verifier file appears": lambda r: _write(r / "two" / "t0__AAAAAA0" / "verifier" / "ctrf.json", CTRF),
    "the job's lock appears": lambda r: _write(r / "one" / "lock.json", '{"harbor": {"version": "0.26.0"}}'),
    "the job's config changes": lambda r: _write(r / "two" / "config.json", '{"job_name": "renamed"}'),
    "a link appears": lambda r: (r / "one" / "linked__AAAAAAA").symlink_to(r / "two"),
    "a folder renamed": lambda r: (r / "one" / "t1__AAAAAA1").rename(r / "one" / "t1__BBBBBBB"),
}
ATIF = json.dumps({"steps": [{"source": "agent", "tool_calls": [{"function_name": "bash", "arguments": {}}]}]})
CTRF = json.dumps({"results": {"tests": [{"name": "a", "status": "passed"}]}})


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("change", sorted(CHANGES))
def test_collecting_again_gives_what_collecting_afresh_gives(
    jobs: Jobs, dataset: Path, tmp_path: Path, change: str
) -> None:
    for job in ("one", "two"):
        for i in range(3):
            trial = jobs.trial(job, f"t{i}__AAAAAA{i}", started_at="2026-01-01T00:00:00")
            if i == 2:
                _write(trial / "agent" / "trajectory.json", ATIF)
                _write(trial / "verifier" / "ctrf.json", CTRF)
    settle_clock(jobs.root)
    collect([jobs.root], dataset)
    CHANGES[change](jobs.root)
    again = collect([jobs.root], dataset)
    assert not again.unchanged
    assert again.n_read <= 3
    collect([jobs.root], tmp_path / "afresh")
    assert everything(dataset) == everything(tmp_path / "afresh")


def test_only_the_changed_trial_is_read_again(jobs: Jobs, dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(4):
        jobs.trial("one", f"t{i}__AAAAAA{i}")
    settle_clock(jobs.root)
    collect([jobs.root], dataset)
    changed = jobs.root / "one" / "t2__AAAAAA2"
    (changed / "result.json").write_text("[]")
    from akm_harbor.trials import worker

    seen: list[str] = []
    original = worker.read_trial
    monkeypatch.setattr(worker, "read_trial", lambda t, *a: seen.append(t.path) or original(t, *a))
    result = collect([jobs.root], dataset)
    assert seen == [str(changed)]
    assert (result.n_read, result.n_reused) == (1, 3)


def test_a_file_written_just_now_is_read_again_although_its_stamp_may_repeat(jobs: Jobs, dataset: Path) -> None:
    """On a coarse clock a second write can leave the same mtime and size."""
    trial = jobs.trial("one")
    stamp = (trial / "result.json").stat().st_mtime_ns
    collect([jobs.root], dataset)
    text = (trial / "result.json").read_text().replace('"reward": 1.0', '"reward": 0.0')
    (trial / "result.json").write_text(text)
    os.utime(trial / "result.json", ns=(stamp, stamp))
    collect([jobs.root], dataset)
    assert read_frame(dataset, "trials").reward.tolist() == [0.0]


def test_other_options_read_again(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one", verifier_result={"rewards": {"reward": 1.0, "score": 0.25}})
    settle_clock(jobs.root)
    collect([jobs.root], dataset)
    assert collect([jobs.root], dataset, reward_key="score").n_read == 1
    assert read_frame(dataset, "trials").reward.tolist() == [0.25]
    assert collect([jobs.root], dataset, reward_key="score").unchanged
    assert collect([jobs.root], dataset, reward_key="score", fresh=True).n_read == 1


def test_another_input_keeps_the_rows_of_the_first(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one")
    jobs.trial("two")
    settle_clock(jobs.root)
    collect([jobs.root / "one"], dataset)
    both = collect([jobs.root / "one", jobs.root / "two"], dataset)
    assert (both.n_read, both.n_reused) == (1, 1)
    assert collect([jobs.root / "two"], dataset).n_reused == 1
    assert list(trials_of(dataset).index) == ["two/task-a__AAAAAAA"]


def test_changed_tasks_read_everything_again(jobs: Jobs, dataset: Path, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks"
    shutil.copytree(RECORDINGS / "p0-tasks", tasks)
    settle_clock(tasks)
    shutil.copytree(RECORDINGS / "p0" / "p0-treatment", jobs.root / "p0")
    settle_clock(jobs.root)
    collect([jobs.root], dataset, tasks=[tasks])
    ranks = read_frame(dataset, "tool_calls").gold_rank
    assert ranks.notna().sum() > 0
    for toml in tasks.glob("*/task.toml"):
        toml.write_text(toml.read_text().replace("akm_gold_refs", "no_longer"))
    assert collect([jobs.root], dataset, tasks=[tasks]).n_read == 3
    assert read_frame(dataset, "tool_calls").gold_rank.notna().sum() == 0


@pytest.mark.parametrize("state", [b"", b"garbage", b"\x80", b"\xc1" * 100])
def test_a_broken_memory_means_reading_again(jobs: Jobs, dataset: Path, state: bytes) -> None:
    jobs.trial("one")
    settle_clock(jobs.root)
    collect([jobs.root], dataset)
    (dataset / STATE).write_bytes(state)
    assert collect([jobs.root], dataset).n_read == 1


def test_a_table_somebody_deleted_is_made_again(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one")
    settle_clock(jobs.root)
    collect([jobs.root], dataset)
    shutil.rmtree(dataset / "trials")
    assert collect([jobs.root], dataset).n_trials == 1
    assert len(read_frame(dataset, "trials")) == 1


def test_a_dataset_inside_its_own_input_settles(jobs: Jobs) -> None:
    jobs.trial("one")
    settle_clock(jobs.root)
    inside = jobs.root / "dataset"
    assert collect([jobs.root], inside).problems == {}
    time.sleep(0.06)
    collect([jobs.root], inside)
    time.sleep(0.06)
    assert collect([jobs.root], inside).unchanged
    assert collect([jobs.root], inside).n_trials == 1


# --- one trial in several places -------------------------------------------------------------


def plan(job: Path, *digests: str, attempts: int = 1) -> None:
    agent = {"name": "opencode", "model_name": "prov/model"}
    trials = [{"task": {"digest": d}, "agent": agent} for d in digests for _ in range(attempts)]
    (job / "lock.json").write_text(json.dumps({"harbor": {"version": "0.22.0"}, "trials": trials}))


def planned(path: Path, digest: str) -> Path:
    agent = {"name": "opencode", "model_name": "prov/model"}
    (path / "lock.json").write_text(json.dumps({"task": {"digest": digest}, "agent": agent}))
    return path


def test_a_trial_that_a_resume_ran_again_is_superseded(jobs: Jobs, dataset: Path) -> None:
    job = jobs.job("resumed")
    plan(job, "sha256:a", "sha256:b", attempts=2)
    planned(jobs.trial(job, "a__AAAAAA1", verifier_result={"rewards": {"reward": None}}), "sha256:a")
    planned(jobs.trial(job, "a__AAAAAA2"), "sha256:a")
    planned(jobs.trial(job, "a__AAAAAA3"), "sha256:a")
    planned(jobs.trial(job, "b__AAAAAA4", verifier_result={"rewards": {"reward": None}}), "sha256:b")
    planned(jobs.trial(job, "b__AAAAAA5"), "sha256:b")
    collect([jobs.root], dataset)
    rows = trials_of(dataset)
    assert rows.status.to_dict() == {
        "resumed/a__AAAAAA1": "superseded",
        "resumed/a__AAAAAA2": "scored",
        "resumed/a__AAAAAA3": "scored",
        "resumed/b__AAAAAA4": "unscored",
        "resumed/b__AAAAAA5": "scored",
    }
    assert rows.own_status["resumed/a__AAAAAA1"] == "unscored"


def test_an_unreadable_trial_is_superseded_before_a_readable_one(jobs: Jobs, dataset: Path) -> None:
    job = jobs.job("resumed")
    plan(job, "sha256:a")
    planned(jobs.trial(job, "a__AAAAAA1", raw=b""), "sha256:a")
    planned(jobs.trial(job, "a__AAAAAA2", verifier_result={"rewards": {"reward": None}}), "sha256:a")
    collect([jobs.root], dataset)
    assert list(trials_of(dataset).status) == ["superseded", "unscored"]


def test_readable_trials_beyond_the_plan_stay_and_are_a_problem(jobs: Jobs, dataset: Path) -> None:
    job = jobs.job("odd")
    plan(job, "sha256:a")
    planned(jobs.trial(job, "a__AAAAAA1"), "sha256:a")
    planned(jobs.trial(job, "a__AAAAAA2"), "sha256:a")
    result = collect([jobs.root], dataset)
    assert result.statuses == {"scored": 2}
    assert result.problems == {"more-trials-than-planned": 1}


def test_one_trial_copied_into_two_jobs_counts_once(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one")
    shutil.copytree(jobs.root / "one", jobs.root / "two")
    result = collect([jobs.root], dataset)
    assert result.statuses == {"scored": 1, "superseded": 1}
    assert result.problems == {"duplicate-trial": 1}
    assert list(trials_of(dataset).own_status) == ["scored", "scored"]


def test_a_trial_graded_again_keeps_both_gradings_and_counts_the_last(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one", id="same", verifier_result={"rewards": {"reward": 0.0}})
    jobs.trial("regraded", id="same", finished_at="2026-01-02T00:00:00Z")
    collect([jobs.root], dataset)
    rows = trials_of(dataset)
    assert rows.status.to_dict() == {"one/task-a__AAAAAAA": "superseded", "regraded/task-a__AAAAAAA": "scored"}
    assert rows.reward.to_list() == [0.0, 1.0]


def test_a_regrade_under_a_new_id_takes_the_place_of_its_source(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one", id="source")
    path = jobs.trial("regraded", id="new")
    result = json.loads((path / "result.json").read_text())
    result["config"]["source_trial"] = {"action": "regrade", "type": "local", "trial_id": "source"}
    (path / "result.json").write_text(json.dumps(result))
    collect([jobs.root], dataset)
    rows = trials_of(dataset)
    assert list(rows.status) == ["superseded", "scored"]
    assert rows.regrade_of["regraded/task-a__AAAAAAA"] == "source"


def test_repeated_trial_names_under_different_ids_are_two_trials(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one", "task-a__AAAAAA1", trial_name="task-a__AAAAAAA")
    jobs.trial("one", "task-a__AAAAAA2", trial_name="task-a__AAAAAAA")
    result = collect([jobs.root], dataset)
    assert result.statuses == {"scored": 2}
    assert result.problems == {"renamed-trial": 1}


def test_tasks_that_share_their_first_letters_stay_apart(jobs: Jobs, dataset: Path) -> None:
    long = "a" * 32
    jobs.trial("one", f"{long}__AAAAAA1", task_name=f"org/{long}-one")
    jobs.trial("one", f"{long}__AAAAAA2", task_name=f"org/{long}-two")
    collect([jobs.root], dataset)
    assert list(read_frame(dataset, "trials").attempt) == [1, 1]


# --- hostile and huge ------------------------------------------------------------------------


def test_hostile_content_reaches_the_tables_as_plain_text(jobs: Jobs, dataset: Path) -> None:
    hostile = "<script>alert(1)</script></style>{{ 7*7 }}\x00\u202e" + "x" * 1_000_000
    for i, name in enumerate(("</style><script>__AAAAAAA", "new\nline__AAAAAAA", "t\udcff__AAAAAA1")):
        try:
            jobs.trial("one", name, task_name=hostile[:100], exception_info=exception("RuntimeError", hostile))
        except (UnicodeEncodeError, OSError):
            jobs.trial("one", f"plain{i}__AAAAAAA")
    result = collect([jobs.root], dataset)
    assert result.n_trials == 3
    rows = read_frame(dataset, "trials")
    assert rows.task_name.str.contains("<script>", regex=False).any()
    assert rows.exception_message.dropna().str.len().max() == 2000


def test_a_name_that_is_not_utf8_is_kept_readable(jobs: Jobs, dataset: Path) -> None:
    job = jobs.job("one")
    try:
        os.mkdir(os.fsencode(job) + b"/t\xff__AAAAAAA")  # noqa: PTH102
    except OSError:
        pytest.skip("this file system takes only UTF-8 names")
    assert collect([jobs.root], dataset).statuses == {"unfinished": 1}
    assert read_frame(dataset, "trials").trial_name.tolist() == ["t\ufffd__AAAAAAA"]


def test_one_huge_result_among_small_ones(jobs: Jobs, dataset: Path) -> None:
    jobs.trial("one", "big__AAAAAAA", exception_info=exception("RuntimeError", "x" * 5_000_000))
    jobs.trial("one", "small__AAAAAAA")
    assert collect([jobs.root], dataset).n_trials == 2


def test_mixed_reward_types_across_jobs(jobs: Jobs, dataset: Path) -> None:
    for i, reward in enumerate((1, 0.5, "INVALID", True, None)):
        jobs.trial(f"job{i}", verifier_result={"rewards": {"reward": reward}})
    collect([jobs.root], dataset)
    assert [None if pd.isna(r) else r for r in read_frame(dataset, "trials").reward] == [1.0, 0.5, None, 1.0, None]


# --- output and options ----------------------------------------------------------------------


def test_an_output_that_is_something_else_is_left_alone(jobs: Jobs, tmp_path: Path) -> None:
    jobs.trial()
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.txt").touch()
    with pytest.raises(AkmHarborError, match="not a dataset"):
        collect([jobs.root], precious)
    assert (precious / "thesis.txt").exists()
    with pytest.raises(AkmHarborError, match="is a file"):
        collect([jobs.root], precious / "thesis.txt")
    with pytest.raises(AkmHarborError, match="cannot be written"):
        collect([jobs.root], precious / "thesis.txt" / "below")


def test_a_bad_input_writes_nothing(jobs: Jobs, dataset: Path, tmp_path: Path) -> None:
    jobs.trial()
    with pytest.raises(AkmHarborError, match="no such file"):
        collect([jobs.root, tmp_path / "none"], dataset)
    with pytest.raises(UsageError):
        collect([], dataset)
    assert not dataset.exists()


def test_progress_is_told(jobs: Jobs, dataset: Path) -> None:
    for i in range(3):
        jobs.trial("one", f"t{i}__AAAAAA{i}")
    told: list[tuple[int, int]] = []
    collect([jobs.root], dataset, progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (3, 3)


def test_no_secret_of_a_trial_reaches_any_file_of_the_dataset(jobs: Jobs, dataset: Path) -> None:
    key = "sk-" + "a1B2" * 8
    trial = jobs.trial("one", exception_info=exception("RuntimeError", f"key {key}"))
    step = {
        "source": "agent",
        "tool_calls": [
            {
                "tool_call_id": "c",
                "function_name": "bash",
                "arguments": {"command": f"export K={key}", "password": "short"},
            }
        ],
        "observation": {"results": [{"source_call_id": "c", "content": f"K={key}"}]},
    }
    _write(trial / "agent" / "trajectory.json", json.dumps({"steps": [step]}))
    _write(trial / "verifier" / "ctrf.json", json.dumps({"results": {"tests": [{"name": "a", "message": key}]}}))
    (trial / "agent" / "akm" / "ledger").mkdir(parents=True)
    (trial / "agent" / "akm" / "ledger" / "events.jsonl").write_text(json.dumps({"event": key, "input": {"a": key}}))
    jobs.trial("one", "task-b__BBBBBBB", verifier_result={"rewards": {"reward": key}})
    collect([jobs.root], dataset)
    assert "[REDACTED]" in read_table(dataset, "trials")["exception_message"].to_pylist()[0]
    for table in ALL:
        assert key not in str(read_table(dataset, table).to_pylist())
    assert TRIALS.name == "trials"
    for file in dataset.rglob("*"):
        if file.is_file():
            assert key.encode() not in file.read_bytes()


@pytest.mark.parametrize("content", [b"", b"PAR1 cut sh", None])
def test_a_dataset_with_a_damaged_table_is_made_again(tmp_path: Path, content: bytes | None) -> None:
    collect([sample_jobs()], tmp_path / "data")
    table = tmp_path / "data" / "trials" / "part-0.parquet"
    whole = table.read_bytes()
    table.write_bytes(whole[: len(whole) // 2] if content is None else content)
    assert not collect([sample_jobs()], tmp_path / "data").unchanged
    assert read_frame(tmp_path / "data", TRIALS).shape[0]


@pytest.mark.parametrize("name", ["report.html", "notes/mine.md"])
def test_what_is_not_the_datasets_is_never_lost(tmp_path: Path, name: str) -> None:
    collect([sample_jobs()], tmp_path / "data")
    mine = tmp_path / "data" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(AkmHarborError, match=r"is no part of a dataset"):
        collect([sample_jobs()], tmp_path / "data", fresh=True)
    assert mine.read_text() == "mine"
