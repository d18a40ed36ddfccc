"""The job plugin: against a stand-in for Harbor's job, and in real jobs in the sandbox."""

import asyncio
import json
import logging
import shutil
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from akm_harbor.ab.plugin import ReportPlugin
from akm_harbor.errors import UsageError
from akm_harbor.resources import resource
from akm_harbor.tables import read_table
from akm_harbor.trials.attempts import FILE
from tests.ab.raising_plugin import EveryHookRaises
from tests.sandbox.support import HARBOR, harbor_command, harbor_environment, make_task

ROOT = Path(__file__).parents[2]


class StandInJob:
    """Has what the plugin touches of Harbor's Job."""

    def __init__(self, job_dir):
        self.job_dir = job_dir
        self.hooks = []

    def on_trial_ended(self, callback):
        self.hooks.append(callback)


def ended(name="t__0000001", **over):
    """A stand-in for Harbor's event of an ended trial."""
    result = {
        "id": f"id-of-{name}",
        "trial_name": name,
        "task_name": "t",
        "agent_info": {"name": "pre-opencode", "version": "1"},
        "exception_info": {"exception_type": "HealthcheckError", "exception_message": "curl -H hunter2-hunter2"},
        **over,
    }
    agent = SimpleNamespace(env={"AKM_SECRET": "hunter2-hunter2"})
    return SimpleNamespace(
        result=SimpleNamespace(model_dump=lambda mode: result),
        config=SimpleNamespace(agent=agent, verifier=SimpleNamespace(env={}), environment=SimpleNamespace(env={})),
        lock=SimpleNamespace(task=SimpleNamespace(digest="sha256:t")),
    )


def play(plugin, job, *events):
    async def run():
        await plugin.on_job_start(job)
        for event in events:
            for hook in job.hooks:
                await hook(event)
        await plugin.on_job_end(SimpleNamespace())

    asyncio.run(run())


def test_whatever_fails_never_leaves_the_plugin(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "akm_harbor.report"):
        play(ReportPlugin(), SimpleNamespace())  # nothing of a job at all
        play(ReportPlugin(), StandInJob(tmp_path / "jobs" / "nowhere"), ended(), SimpleNamespace())
        (tmp_path / "file").touch()
        play(ReportPlugin(out=tmp_path / "file" / "x"), StandInJob(tmp_path))
        play(EveryHookRaises(), StandInJob(tmp_path), ended())
    assert len(caplog.records) >= 8
    assert all(r.levelno == logging.WARNING for r in caplog.records)


def test_an_interrupt_is_not_swallowed(tmp_path):
    class Interrupted(ReportPlugin):
        def _record(self, event):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        play(Interrupted(), StandInJob(tmp_path), ended())


def test_unknown_argument_is_refused_before_the_job():
    with pytest.raises(UsageError, match="no plugin argument 'ouput'"):
        ReportPlugin(ouput="x")


def test_a_real_job_is_collected_beside_the_jobs_folder(tmp_path, caplog):
    job = tmp_path / "jobs" / "ab-baseline"
    shutil.copytree(resource("notebooks", "sample", "ab-jobs", "ab-baseline"), job)
    before = sorted(p for p in job.rglob("*"))
    with caplog.at_level(logging.WARNING, "akm_harbor.report"):
        play(ReportPlugin(), StandInJob(job), ended(), ended("u__0000002"))
    out = tmp_path / "akm-reports" / "ab-baseline"
    assert "one arm only" in caplog.text
    assert sorted(p for p in job.rglob("*") if p.name != FILE) == before  # Harbor's resume deletes other folders
    assert "hunter2" not in (job / FILE).read_text()
    rows = [r for r in read_table(out / "dataset", "trials").to_pylist() if r["recorded_by"]]
    assert [(r["trial_id"], r["status"], r["own_status"], r["exception_type"]) for r in rows] == [
        ("id-of-t__0000001", "superseded", "unscored", "HealthcheckError"),
        ("id-of-u__0000002", "superseded", "unscored", "HealthcheckError"),
    ]
    assert {(r["task_digest"], r["recorded_by"], r["job_name"]) for r in rows} == {
        ("sha256:t", "plugin", "ab-baseline")
    }


@pytest.mark.sandbox
def test_in_a_real_harbor_job(tmp_path):
    """Two agents in one job, the plugin found by its entry point, the report beside the jobs folder."""
    for name in ("drillbit--turn-key", "drillbit--keep-cores"):
        shutil.copytree(resource("tasks", name), tmp_path / "tasks" / name)
    config = {
        "job_name": "pair",
        "jobs_dir": str(tmp_path / "jobs"),
        "agents": [{"name": "oracle"}, {"name": "nop"}],
        "environment": {"import_path": "akm_harbor:SandboxEnvironment"},
    }
    (tmp_path / "job.json").write_text(json.dumps(config))
    command = [HARBOR, "run", "-c", tmp_path / "job.json", "-p", tmp_path / "tasks", "--plugin", "akm", "-y"]
    ran = subprocess.run(
        [*map(str, command), "--pk", "baseline=nop"],
        env=harbor_environment(),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verdict = json.loads((tmp_path / "akm-reports" / "pair" / "verdict.json").read_text())
    assert (verdict["headline"]["baseline"], verdict["headline"]["treatment"]) == (0.0, 1.0)
    assert "report: " in ran.stdout + ran.stderr


@pytest.mark.sandbox
@pytest.mark.parametrize("plugin", ["akm", "tests.ab.raising_plugin:EveryHookRaises"])
def test_a_retried_attempt_is_in_the_trials_whatever_fails(tmp_path, plugin):
    """A task whose health check fails, with one retry: Harbor leaves one directory of two attempts."""
    tasks = tmp_path / "tasks"
    make_task(tasks / "sound")
    unhealthy = '[environment.healthcheck]\ncommand = "false"\ninterval_sec = 0.01\ntimeout_sec = 5\nretries = 1\n'
    make_task(tasks / "unhealthy", toml=unhealthy)
    command = harbor_command(tasks, tmp_path / "jobs", tmp_path / "cache", "--plugin", plugin)
    env = {**harbor_environment(), "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [*command, "-r", "1", "--retry-include", "HealthcheckError"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    job = tmp_path / "jobs" / "job"
    result = json.loads((job / "result.json").read_text())
    assert result["finished_at"]
    assert (result["stats"]["n_completed_trials"], result["stats"]["n_retries"]) == (2, 1)
    assert (tmp_path / "akm-reports").is_dir() == (plugin == "akm")
    if plugin != "akm":
        from akm_harbor.trials import collect

        collect([job], tmp_path / "akm-reports" / "job" / "dataset")
    rows = read_table(tmp_path / "akm-reports" / "job" / "dataset", "trials").to_pylist()
    seen = sorted(
        (r["trial_name"].partition("__")[0], r["status"], r["exception_type"], r["recorded_by"]) for r in rows
    )
    assert seen == [
        ("sound", "scored", None, None),
        ("unhealthy", "superseded", "HealthcheckError", "plugin"),
        ("unhealthy", "unscored", "HealthcheckError", None),
    ]
    retried, kept = (next(r for r in rows if r["exception_type"] and r["recorded_by"] == by) for by in ("plugin", None))
    assert retried["trial_id"] != kept["trial_id"]
    assert retried["started_at"] < kept["started_at"]
    for same in ("arm", "task_digest", "task_name", "job_id", "harbor_version", "agent_name", "exception_cause"):
        assert retried[same] == kept[same], same
