import os
import time
from pathlib import Path

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.trials.discover import Found, discover
from tests.trials.conftest import RECORDINGS, Jobs


def find(*paths: Path) -> Found:
    return discover(list(paths), time.time_ns())


def names(found: Found) -> list[str]:
    return [f"{job.rel}/{trial.name}" for job in found.jobs for trial in job.trials]


def kinds(found: Found) -> dict[str, str]:
    return {Path(f.path).name: f.kind for f in found.findings}


def test_a_job_a_folder_of_jobs_and_a_trial_name_rows_alike(jobs: Jobs) -> None:
    trial = jobs.trial("one")
    jobs.trial("two", "task-b__BBBBBBB")
    for given, expected in (
        (jobs.root / "one", ["one/task-a__AAAAAAA"]),
        (jobs.root, ["one/task-a__AAAAAAA", "two/task-b__BBBBBBB"]),
        (trial, ["one/task-a__AAAAAAA"]),
    ):
        found = find(given)
        assert names(found) == expected
        assert {job.root for job in found.jobs} == {str(jobs.root)}


def test_relative_inputs(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs.trial("one")
    monkeypatch.chdir(jobs.root / "one")
    (job,) = find(Path()).jobs
    assert Path(job.root, job.rel).resolve() == jobs.root / "one"
    monkeypatch.chdir(jobs.root)
    (job,) = find(Path("one")).jobs
    assert (job.root, job.rel) == (".", "one")


def test_an_input_that_is_itself_a_link_is_the_persons_own_choice(jobs: Jobs, tmp_path: Path) -> None:
    jobs.trial("one")
    (tmp_path / "link").symlink_to(jobs.root)
    assert names(find(tmp_path / "link")) == ["one/task-a__AAAAAAA"]


def test_a_job_without_any_file_of_its_own(jobs: Jobs) -> None:
    for i in range(3):
        trial = jobs.trial("bare", f"task-{i}__AAAAAA{i}")
    for file in ("config.json", "result.json", "job.log"):
        (trial.parent / file).unlink()
    assert len(names(find(trial.parent))) == 3
    assert len(names(find(jobs.root))) == 3


def test_a_job_without_trials_is_a_job(jobs: Jobs) -> None:
    jobs.job("aborted")
    (job,) = find(jobs.root).jobs
    assert job.trials == ()


def test_trials_without_a_result(jobs: Jobs) -> None:
    """Just made, running, killed: a folder that Harbor made is a trial, whatever it holds yet."""
    jobs.trial("one")
    for name, inside in (
        ("made__AAAAAA1", ()),
        ("running__AAAAAA2", ("agent/",)),
        ("named__AAAAAA3", ("config.json",)),
        ("strange", ("agent/", "trial.log")),
        ("too__short", ()),
        ("notes", ()),
    ):
        folder = jobs.root / "one" / name
        folder.mkdir()
        for item in inside:
            (folder / item).mkdir() if item.endswith("/") else (folder / item).write_text("{}")
    found = find(jobs.root / "one")
    assert {t.name for t in found.jobs[0].trials} == {
        "task-a__AAAAAAA",
        "made__AAAAAA1",
        "running__AAAAAA2",
        "named__AAAAAA3",
        "strange",
    }
    assert kinds(found) == {"too__short": "not-a-trial", "notes": "not-a-trial"}


def test_links_are_never_followed(jobs: Jobs, tmp_path: Path) -> None:
    outside = Jobs(tmp_path / "outside").trial("secret", "stolen__AAAAAAA")
    inside = jobs.trial("one")
    (jobs.root / "linked-job").symlink_to(outside.parent)
    (jobs.root / "one" / "linked__AAAAAAA").symlink_to(outside)
    (inside / "agent").symlink_to(outside)
    (inside / "result.json").unlink()
    (inside / "result.json").symlink_to(outside / "result.json")
    found = find(jobs.root)
    assert names(found) == ["one/task-a__AAAAAAA"]
    assert kinds(found) == {
        "linked-job": "symlink",
        "linked__AAAAAAA": "symlink",
        "agent": "symlink",
        "result.json": "symlink",
    }


def test_a_loop_of_links_ends(jobs: Jobs) -> None:
    jobs.trial("one")
    (jobs.root / "loop").symlink_to(jobs.root)
    assert len(names(find(jobs.root))) == 1


def test_the_same_folder_twice_is_read_once(jobs: Jobs) -> None:
    jobs.trial("one")
    jobs.trial("one", "task-b__BBBBBBB")
    one = jobs.root / "one"
    for inputs in ((one, one), (one, jobs.root), (jobs.root, one), (one, one / "task-a__AAAAAAA")):
        found = find(*inputs)
        assert len(names(found)) == 2
        assert kinds(found) == {"one": "seen-twice"}


def test_single_trials_of_one_job(jobs: Jobs) -> None:
    found = find(jobs.trial("one"), jobs.trial("one", "task-b__BBBBBBB"))
    assert names(found) == ["one/task-a__AAAAAAA", "one/task-b__BBBBBBB"]


def test_hidden_and_underscored_folders_are_not_entered(jobs: Jobs) -> None:
    jobs.trial("one")
    (jobs.root / "one" / ".sources" / "x__AAAAAAA").mkdir(parents=True)
    jobs.trial("_private", "x__BBBBBBB")
    found = find(jobs.root)
    assert names(found) == ["one/task-a__AAAAAAA"]
    assert found.findings == []


def test_a_tree_of_submissions(tmp_path: Path) -> None:
    for sub in ("agent-x__model-1", "agent-y__model-1"):
        tree = Jobs(tmp_path / "submissions" / "bench" / "2.0" / sub)
        tree.trial("2026-01-01__00-00-00", "task-a__AAAAAAA")
        tree.trial("second-run", "task-a__BBBBBBB")
    found = find(tmp_path)
    assert sorted({str(job.submission) for job in found.jobs}) == ["agent-x__model-1", "agent-y__model-1"]
    assert len(names(found)) == 4


def test_ordinary_nesting_is_no_submission(jobs: Jobs) -> None:
    Jobs(jobs.root / "january").trial("one")
    assert [job.submission for job in find(jobs.root).jobs] == [None]


def test_a_pipe_named_result_json_does_not_hang(jobs: Jobs) -> None:
    trial = jobs.trial("one")
    (trial / "result.json").unlink()
    os.mkfifo(trial / "result.json")
    (trial / "trial.log").touch()
    assert find(jobs.root).jobs[0].trials[0].files == ("trial.log",)


def test_hostile_names(jobs: Jobs) -> None:
    hostile = [
        "<script>alert(1)</script>__AAAAAAA",
        "new\nline__AAAAAAA",
        "\u202ebidi__AAAAAAA",
        "{{ x }} ' \"__AAAAAAA",
    ]
    for name in hostile:
        if "/" not in name:
            jobs.trial("one", name)
    assert len(names(find(jobs.root))) == 3


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.touch(), "not a folder"),
        (lambda p: p.mkdir(), "not a Harbor job directory"),
        (lambda p: (p / "src").mkdir(parents=True), "not a Harbor job directory"),
    ],
)
def test_what_is_no_job_directory_is_said_so(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "given"
    make(path)  # type: ignore[operator]
    with pytest.raises(AkmHarborError, match=message) as caught:
        find(path)
    assert str(path) in str(caught.value)


def test_a_legacy_terminal_bench_tree_is_named_as_such(tmp_path: Path, jobs: Jobs) -> None:
    run = tmp_path / "runs" / "2025-05-01__12-00-00"
    (run / "hello-world" / "hello-world.1-of-1.2025-05-01__12-00-00").mkdir(parents=True)
    (run / "results.json").write_text('{"results": [{"is_resolved": null, "failure_mode": "test_timeout"}]}')
    (run / "run_metadata.json").write_text("{}")
    for given in (run, run.parent, run / "hello-world"):
        with pytest.raises(AkmHarborError, match="legacy terminal-bench"):
            find(given)
    jobs.trial("one")
    run.parent.rename(jobs.root / "old")
    found = find(jobs.root)
    assert names(found) == ["one/task-a__AAAAAAA"]
    assert kinds(found) == {run.name: "legacy-layout", "old": "not-a-job"}


def test_a_task_and_a_dataset_are_named_as_such(tmp_path: Path) -> None:
    with pytest.raises(AkmHarborError, match="a task, not a job"):
        find(RECORDINGS / "p0-tasks" / "count-rows")
    (tmp_path / "trials").mkdir()
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(AkmHarborError, match="already a dataset"):
        find(tmp_path)
