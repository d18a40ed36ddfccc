"""What a job's own files say about all of its trials."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from akm_harbor.surrogates import plain
from akm_harbor.trials import attempts as attempts_file
from akm_harbor.trials.discover import JobDir
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.stamps import Stamp
from akm_harbor.trials.values import as_dict, as_float, as_int, as_list, as_text


@dataclass(slots=True)
class Job:
    """One job.

    Attributes:
        columns: the trials columns that the job decides.
        planned: how many trials of each plan the job holds (see `plan_of`); empty when unknown.
        attempts: attempts a task by its config; None when unknown.
        n_planned: all trials planned.
        attempts_gone: lines of `akm-attempts.jsonl`, see `attempts`.
        evals: what Harbor printed, rows of `harbor_stats` without root and path.
        stamps: (path below the job, size, mtime_ns).
        problems: (path below the job, kind, detail, action).
    """

    columns: dict[str, Any]
    planned: Counter[str] = field(default_factory=Counter)
    attempts: int | None = None
    n_planned: int | None = None
    attempts_gone: list[dict[str, Any]] = field(default_factory=list)
    evals: list[dict[str, Any]] = field(default_factory=list)
    stamps: list[Stamp] = field(default_factory=list)
    problems: list[tuple[str, str, str, str]] = field(default_factory=list)


def plan_of(task: dict[str, Any], agent: dict[str, Any]) -> str | None:
    """A name for what a trial was planned to be: the same for all attempts at one task by one agent.

    Args:
        task: the task of a lock.json.
        agent: the agent of a config or lock.
    """
    digest = as_text(task.get("digest"))
    if not digest:
        return None
    parts = [digest, *(agent.get(name) for name in ("name", "import_path", "model_name")), agent.get("kwargs") or {}]
    text = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:16]


def read_job(job: JobDir, now_ns: int) -> Job:
    """Read config.json, lock.json and result.json of a job; what is missing is a problem, no more."""
    files = TrialFiles(job.path, now_ns)
    files.seed(job.files, ())
    config = as_dict(files.read_json("config.json", "job columns left null"))
    lock = as_dict(files.read_json("lock.json", "job columns left null"))
    result = as_dict(files.read_json("result.json", "job id left null"))
    if "config.json" not in job.files:
        files.problem("config.json", "job-config-missing", "the job has no config.json", "rows kept, job columns null")
    if "result.json" not in job.files:
        detail = "the job has no result.json: it was stopped or copied in part"
        files.problem("result.json", "job-result-missing", detail, "rows kept, job id null")
    if result and "n_total_trials" not in result:
        files.problem("result.json", "not-a-job-result", "JSON, but not a job's result", "job id left null")
        result = {}
    gone = files.read(attempts_file.FILE)
    recorded = attempts_file.parse(gone, files) if gone else []
    retry = as_dict(config.get("retry")) or as_dict(lock.get("retry"))
    known = bool(config or lock)
    trials = [as_dict(t) for t in as_list(lock.get("trials"))]
    planned = Counter(p for t in trials if (p := plan_of(as_dict(t.get("task")), as_dict(t.get("agent")))))
    stats = as_dict(result.get("stats"))
    retried = as_int(stats.get("n_retries"))
    if retried:
        trace = f"the job plugin recorded {len(recorded)}" if recorded else "left no trace"
        detail = f"{retried} attempt(s) failed, {trace} and were run again: the outcome chose the sample"
        action = "recorded ones are superseded rows" if recorded else "the surviving trials are rows"
        files.problem("result.json", "retried", detail, action)
    total = as_int(result.get("n_total_trials"))
    n_planned = len(trials) or total
    if n_planned is not None and n_planned > len(job.trials):
        detail = f"{n_planned} trials planned, {len(job.trials)} directories found"
        files.problem("", "trials-missing", detail, "the found ones are rows")
    concurrent = as_int(config.get("n_concurrent_trials")) or as_int(lock.get("n_concurrent_trials"))
    retries = as_int(retry.get("max_retries"))
    columns = {
        "job_id": as_text(result.get("id"), 100),
        "job_name": as_text(config.get("job_name")) or plain(job.path.replace("\\", "/").rpartition("/")[2]),
        "harbor_version": as_text(as_dict(lock.get("harbor")).get("version"), 100),
        # Harbor leaves a default out of config.json: 4 at once, no retry.
        "n_concurrent": concurrent if concurrent is not None else 4 if config else None,
        "max_retries": retries if retries is not None else 0 if known else None,
        "submission": job.submission,
    }
    attempts = as_int(config.get("n_attempts")) or 1 if config else None
    printed = [_printed(key, as_dict(value)) for key, value in as_dict(stats.get("evals")).items()]
    evals = [{"job_id": columns["job_id"], "harbor_version": columns["harbor_version"], **p} for p in printed]
    return Job(columns, planned, attempts, n_planned, recorded, evals, files.stamps, files.problems)


def _printed(key: str, stats: dict[str, Any]) -> dict[str, Any]:
    """One line of the job's statistics; a mean of several metrics is the first that is a number."""
    metrics = [as_dict(m) for m in as_list(stats.get("metrics"))]
    means = (as_float(m.get("mean")) for m in metrics)
    return {
        "eval_key": as_text(key, 500),
        "n_trials": as_int(stats.get("n_trials")),
        "n_errors": as_int(stats.get("n_errors")),
        "mean": next((m for m in means if m is not None), None),
        "metrics_json": as_text(json.dumps(metrics, sort_keys=True), 8000),
        "pass_at_k_json": as_text(json.dumps(as_dict(stats.get("pass_at_k")), sort_keys=True), 8000),
    }
