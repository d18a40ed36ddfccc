"""Resuming real jobs: what blocks it is told before anything is deleted, and each planned trial counts once."""

import json
import os
import shutil
import subprocess

import pytest
import yaml
from typer.testing import CliRunner

from akm_harbor.cli.resume import resume as command
from akm_harbor.errors import AkmHarborError
from akm_harbor.study import resume as resuming
from akm_harbor.study.resume_diff import config_differences, lock_differences
from akm_harbor.tables import read_table
from akm_harbor.trials import collect
from tests.sandbox.support import HARBOR, harbor_environment, make_task

pytestmark = [pytest.mark.sandbox, pytest.mark.xdist_group("resume")]


def invoke(*arguments):
    import typer

    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished job of two tasks, two agents, one attempt; started with relative paths."""
    folder = tmp_path_factory.mktemp("resume")
    for name in ("one", "two"):
        make_task(folder / "tasks" / name)
    config = {
        "job_name": "job",
        "agents": [{"name": "oracle"}, {"name": "nop"}],
        "datasets": [{"path": "tasks"}],
        "environment": {
            "import_path": "akm_harbor:SandboxEnvironment",
            "kwargs": {"cache_dir": str(folder / "cache")},
        },
        "quiet": True,
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(config))
    done = subprocess.run(
        [HARBOR, "run", "-c", "job.yaml"],
        cwd=folder,
        env=harbor_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture
def job(finished):
    """That job to play with, in the place where it was made, put back afterwards."""
    kept = finished.with_name(f"{finished.name}-kept")
    if not kept.exists():
        shutil.copytree(finished, kept, ignore=shutil.ignore_patterns("cache"))
    yield finished / "jobs" / "job"
    for part in ("jobs", "tasks"):
        shutil.rmtree(finished / part, ignore_errors=True)
        shutil.copytree(kept / part, finished / part)


def folders(job):
    return sorted(path.name for path in job.iterdir() if path.is_dir())


def everything(job):
    return {str(p.relative_to(job)): p.read_bytes() for p in sorted(job.rglob("*")) if p.is_file()}


def trial(job, task, agent="oracle"):
    for path in job.glob(f"{task}__*/config.json"):
        # Harbor before 0.26 leaves out what is a default, as the oracle is.
        if json.loads(path.read_text()).get("agent", {}).get("name", "oracle") == agent:
            return path.parent
    raise AssertionError(task)


def test_a_job_with_every_kind_of_end_is_resumed_and_each_planned_trial_counts_once(job, tmp_path):
    unfinished, broken = trial(job, "one"), trial(job, "two")
    cancelled = trial(job, "one", "nop")
    (unfinished / "result.json").unlink()
    (broken / "result.json").write_text("{")
    result = json.loads((cancelled / "result.json").read_text())
    result |= {"verifier_result": None, "exception_info": {
        "exception_type": "CancelledError", "exception_message": "", "exception_traceback": "",
        "occurred_at": result["finished_at"],
    }}  # fmt: skip
    (cancelled / "result.json").write_text(json.dumps(result))

    before = everything(job)
    found = resuming.preview(job)
    assert everything(job) == before  # looking is free
    assert (found.planned, found.kept, found.to_run, found.blockers) == (4, 1, 3, ())
    assert {(d.name, d.why) for d in found.doomed} == {
        (unfinished.name, "unfinished"),
        (cancelled.name, "CancelledError"),
    }
    assert found.unreadable == (broken.name,)
    assert found.cwd == job.parents[1]

    told = invoke(job)
    assert told.exit_code == 0, told.output
    assert "4 trials planned, 1 kept, 3 to run" in told.output
    assert "4 of 4 planned trials: scored 4" in told.output
    assert "3 superseded attempts" in told.output
    again = resuming.preview(job)  # Harbor saved the job's place anew
    assert (again.to_run, again.blockers, again.cwd) == (0, (), found.cwd)
    collect([job], tmp_path / "data", tasks=[])
    rows = read_table(tmp_path / "data", "trials").to_pylist()
    counted = sorted((r["task_name"], r["arm"], r["reward"]) for r in rows if r["status"] != "superseded")
    assert counted == [("one", "nop", 0), ("one", "oracle", 1), ("two", "nop", 0), ("two", "oracle", 1)]
    gone = {(r["trial_name"], r["own_status"], r["recorded_by"]) for r in rows if r["status"] == "superseded"}
    assert gone == {
        (unfinished.name, "unfinished", "resume"),
        (cancelled.name, "cancelled", "resume"),
        (broken.name, "unreadable", None),
    }


def test_a_changed_task_is_named_and_nothing_is_deleted(job):
    (trial(job, "one") / "result.json").unlink()
    (job.parents[1] / "tasks" / "two" / "instruction.md").write_text("Solve it better.\n")
    before = everything(job)
    told = invoke(job)
    assert isinstance(told.exception, resuming.ResumeBlockedError)
    assert "nothing was deleted" in str(told.exception)
    assert "task tasks/two changed since the job began" in str(told.exception)
    assert str(job) in str(told.exception)
    assert "/akm-resume-" not in str(told.exception)  # Harbor's words are about the job, not about its shadow
    assert everything(job) == before
    dry = invoke(job, "--dry-run")
    assert dry.exit_code == 1
    assert "  blocked: task tasks/two changed since the job began" in dry.output


def test_a_changed_key_is_named(job):
    path = job / "config.json"
    config = json.loads(path.read_text())
    config |= {"n_attempts": 1, "n_concurrent_trials": 3, "timeout_multiplier": 2.0}
    path.write_text(json.dumps(config))
    told = "\n".join(resuming.preview(job).blockers)
    assert "timeout_multiplier was" in told
    config["timeout_multiplier"] = 1.0
    path.write_text(json.dumps(config))
    assert "n_concurrent_trials was 4, is 3" in "\n".join(resuming.preview(job).blockers)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda job: shutil.rmtree(job.parents[1] / "tasks"), "datasets[0].path: tasks is not there"),
        (lambda job: shutil.rmtree(job.parents[1] / "tasks" / "two"), "tasks/two"),
        (lambda job: make_task(job.parents[1] / "tasks" / "three"), "tasks/three is new"),
        (lambda job: (job / "lock.json").write_text("{}"), "Harbor says"),
        (lambda job: _with(job, agents=[{"name": "oracle", "env": {"MY_API_KEY": "supe****123"}}, {"name": "nop"}]),
         "agents[0].env.MY_API_KEY: Harbor saved only 'supe****123'"),
        (lambda job: _with(job, agents=[{"name": "oracle", "env": {"X": "${AKM_NOT_SET_HERE}"}}, {"name": "nop"}]),
         "the variable AKM_NOT_SET_HERE is not set here"),
        (lambda job: _folder(job / "notes", "todo.txt"), "the folder notes is no trial"),
    ],
)  # fmt: skip
def test_what_else_blocks_a_resume(job, damage, said):
    damage(job)
    before = everything(job)
    assert said in "\n".join(resuming.preview(job).blockers)
    assert everything(job) == before


def _with(job, **keys):
    path = job / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def _folder(folder, name):
    folder.mkdir()
    (folder / name).write_text("x")


def test_where_a_job_was_started_is_found_out(job):
    assert resuming.preview(job).cwd == job.parents[1]
    _with(job, jobs_dir=str(job.parent))  # as newer Harbor saves it on a resume
    assert resuming.preview(job).cwd == job.parents[1]


def test_a_job_that_is_still_running_is_left_alone(job):
    with (job / "job.log").open("a"):
        assert f"still running, as process {os.getpid()}" in "\n".join(resuming.preview(job).blockers)
    assert resuming.preview(job).blockers == ()


def test_an_incomplete_job_ends_with_an_error(job, monkeypatch):
    (trial(job, "one") / "result.json").unlink()
    monkeypatch.setattr(resuming, "resume_command", lambda *_args, **_more: ["--version"])  # Harbor that does nothing
    told = invoke(job)
    assert told.exit_code == 1
    assert "superseded" in told.output or "4 planned trials" in told.output


@pytest.mark.parametrize("name", ["config.json", "nothing"])
def test_what_is_no_job_is_refused(tmp_path, name):
    (tmp_path / name).write_text("not json")
    with pytest.raises(AkmHarborError, match=r"config\.json"):
        resuming.preview(tmp_path)


def test_differences_are_named_by_key():
    agent = {"import_path": "m:C", "kwargs": {"arm": "a", "x": 1}}
    old = {
        "retry": {"max_retries": 0, "exclude_exceptions": ["B", "A"]},
        "trials": [{"task": {"path": "t/a", "digest": "sha256:1111"}, "agent": agent}],
    }
    new = json.loads(json.dumps(old))
    assert lock_differences(old, new) == []
    new["retry"]["exclude_exceptions"] = ["A", "B"]
    assert lock_differences(old, new) == []
    new["retry"]["exclude_exceptions"] = ["A", "C"]
    new["trials"][0]["agent"]["kwargs"]["x"] = 2
    assert lock_differences(old, new) == [
        "retry.exclude_exceptions: B was True, is not set",
        "retry.exclude_exceptions: C was not set, is True",
        "agent.kwargs.x was 1, is 2",
    ]
    assert config_differences([{"a": 1, "trial_name": "x"}], [{"a": 1, "trial_name": "y"}]) == []
    assert config_differences([{"a": 1}], [{"a": 2}, {"a": 3, "b": 4}]) == ["a was 1, is 2"]
    assert config_differences([{"a": 1}], []) == ["no trial is planned any more"]
