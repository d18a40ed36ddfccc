"""The job plugin against a stand-in for Harbor's job; a real job is in the sandbox tests."""

import asyncio
import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from akm_harbor.ab.plugin import ReportPlugin
from akm_harbor.errors import UsageError
from akm_harbor.resources import resource


class StandInJob:
    """Has what the plugin touches of Harbor's Job."""

    def __init__(self, job_dir):
        self.job_dir = job_dir
        self.hooks = []

    def on_trial_ended(self, callback):
        self.hooks.append(callback)


def ended(name="t__0000001", **over):
    exception = SimpleNamespace(exception_type="HealthcheckError")
    result = SimpleNamespace(id="x", exception_info=exception, verifier_result=None)
    fields = {"trial_name": name, "trial_id": None, "task_name": "t", "result": result, "timestamp": "now", **over}
    return SimpleNamespace(**fields)


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
        play(ReportPlugin(), StandInJob(tmp_path / "jobs" / "nowhere"), SimpleNamespace())
        play(ReportPlugin(out=tmp_path / "file" / "x"), StandInJob(tmp_path))
    assert len(caplog.records) >= 4
    assert all(r.levelno == logging.WARNING for r in caplog.records)


def test_unknown_argument_is_refused_before_the_job():
    with pytest.raises(UsageError, match="no plugin argument 'ouput'"):
        ReportPlugin(ouput="x")


def test_a_real_job_is_collected_beside_the_jobs_folder(tmp_path, caplog):
    job = tmp_path / "jobs" / "ab-baseline"
    shutil.copytree(resource("notebooks", "sample", "ab-jobs", "ab-baseline"), job)
    before = sorted(p for p in job.rglob("*"))
    with caplog.at_level(logging.WARNING, "akm_harbor.report"):
        play(ReportPlugin(), StandInJob(job), ended(), ended())
    out = tmp_path / "akm-reports" / "ab-baseline"
    assert "one arm only" in caplog.text
    assert (out / "dataset" / "manifest.json").is_file()
    attempts = [json.loads(line) for line in (out / "attempts.jsonl").read_text().splitlines()]
    assert [a["exception_type"] for a in attempts] == ["HealthcheckError"] * 2
    assert sorted(p for p in job.rglob("*")) == before  # Harbor's resume deletes what is not a trial


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
    harbor = Path(sys.executable).with_name("harbor")
    command = [harbor, "run", "-c", tmp_path / "job.json", "-p", tmp_path / "tasks", "--plugin", "akm", "-y"]
    ran = subprocess.run(
        [*map(str, command), "--pk", "baseline=nop"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    verdict = json.loads((tmp_path / "akm-reports" / "pair" / "verdict.json").read_text())
    assert (verdict["headline"]["baseline"], verdict["headline"]["treatment"]) == (0.0, 1.0)
    assert "report: " in ran.stdout + ran.stderr
