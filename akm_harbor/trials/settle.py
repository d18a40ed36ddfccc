"""What only all trials together decide: job columns, duplicates, superseded trials, attempts."""

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pyarrow as pa

from akm_harbor.tables.problems import Problems
from akm_harbor.trials.columns import TRIALS
from akm_harbor.trials.job import Job
from akm_harbor.trials.plan import Plan

_UNREAD = ("unreadable", "unfinished")


class _Rows:
    """The few columns the decisions need, as lists."""

    def __init__(self, table: pa.Table) -> None:
        self.root = table["root"].to_pylist()
        self.path = table["trial_path"].to_pylist()
        self.trial_id = table["trial_id"].to_pylist()
        self.arm = table["arm"].to_pylist()
        self.task = table["task_name"].to_pylist()
        self.own = table["own_status"].to_pylist()
        self.schema_ok = table["schema_ok"].to_pylist()
        self.regrade_of = table["regrade_of"].to_pylist()
        self.started = table["started_at"].cast(pa.int64()).to_pylist()
        self.finished = table["finished_at"].cast(pa.int64()).to_pylist()


def settle(
    trials: pa.Table,
    plan: Plan,
    plans: dict[tuple[str, str], str | None],
    problems: Problems,
) -> pa.Table:
    """Put the rows in order of discovery and fill in what depends on the others.

    Args:
        trials: rows of all trials, in any order.
        plan: what was found.
        plans: (root, trial_path) -> what the trial was planned to be.
        problems: takes duplicates and surplus trials.
    """
    jobs = plan.jobs
    order: dict[tuple[str, str], tuple[int, str]] = {}
    for job in plan.found.jobs:
        for trial in job.trials:
            order[job.root, f"{job.rel}/{trial.name}"] = len(order), job.path
    keys = list(zip(trials["root"].to_pylist(), trials["trial_path"].to_pylist(), strict=True))
    positions = [order[key][0] for key in keys]
    if any(a > b for a, b in pairwise(positions)):
        trials = trials.take(pa.array(sorted(range(len(keys)), key=positions.__getitem__), type=pa.int64()))
    rows = _Rows(trials)
    job_of = [order[key][1] for key in zip(rows.root, rows.path, strict=True)]
    status = list(rows.own)
    _duplicates(rows, status, problems)
    _regraded(rows, status)
    _surplus(rows, status, job_of, jobs, plans, problems)
    columns: dict[str, list[Any]] = {"status": status, "attempt": _attempts(rows, job_of)}
    for name in ("job_name", "harbor_version", "n_concurrent", "max_retries", "submission"):
        columns[name] = [jobs[path].columns[name] for path in job_of]
    own_ids = trials["job_id"].to_pylist()
    columns["job_id"] = [jobs[p].columns["job_id"] or own for p, own in zip(job_of, own_ids, strict=True)]
    for name, values in columns.items():
        position = TRIALS.names.index(name)
        field = TRIALS.schema().field(position)
        trials = trials.set_column(position, field, pa.array(values, type=field.type))
    return trials


def _duplicates(rows: _Rows, status: list[str], problems: Problems) -> None:
    """One trial id in several directories is one trial, copied or graded again: the last grading counts."""
    places: dict[str, list[int]] = defaultdict(list)
    for i, trial_id in enumerate(rows.trial_id):
        if trial_id is not None:
            places[trial_id].append(i)
    for trial_id, found in places.items():
        if len(found) < 2:
            continue
        last = max(found, key=lambda i: (rows.own[i] not in _UNREAD, rows.finished[i] or 0, -i))
        for i in found:
            if i != last:
                status[i] = "superseded"
        others = ", ".join(rows.path[i] for i in found if i != last)
        detail = f"trial id {trial_id} is also in: {others}"
        problems.add(f"{rows.root[last]}/{rows.path[last]}", "duplicate-trial", detail, "the others are superseded")


def _regraded(rows: _Rows, status: list[str]) -> None:
    """A trial whose outputs were graded again gives its place to the new grading, in the same arm."""
    if not any(rows.regrade_of):
        return
    by_id = {trial_id: i for i, trial_id in enumerate(rows.trial_id) if trial_id is not None}
    for i, source in enumerate(rows.regrade_of):
        original = by_id.get(source) if source else None
        if original is not None and original != i and rows.own[i] not in _UNREAD and rows.arm[i] == rows.arm[original]:
            status[original] = "superseded"


def _surplus(
    rows: _Rows,
    status: list[str],
    job_of: list[str],
    jobs: dict[str, Job],
    plans: dict[tuple[str, str], str | None],
    problems: Problems,
) -> None:
    """More directories than planned attempts: a resume ran again what Harbor could not read.

    Those that Harbor cannot read are superseded, the unparseable ones first. A surplus of
    readable trials is nobody's replacement and stays, as a problem.
    """
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, key in enumerate(zip(rows.root, rows.path, strict=True)):
        name = plans.get(key)
        if name is not None and status[i] != "superseded":
            groups[job_of[i], name].append(i)
    over: Counter[str] = Counter()
    for (path, name), members in groups.items():
        job = jobs[path]
        allowed = job.planned.get(name) if job.planned else job.attempts
        extra = len(members) - allowed if allowed else 0
        if extra <= 0:
            continue
        unread = [i for i in members if rows.own[i] in _UNREAD or rows.schema_ok[i] is False]
        unread.sort(key=lambda i: (rows.own[i] not in _UNREAD, rows.started[i] or 0))
        for i in unread[:extra]:
            status[i] = "superseded"
        over[path] += max(0, extra - len(unread))
    for path, extra in over.items():
        if extra:
            where = next(i for i, p in enumerate(job_of) if p == path)
            place = f"{rows.root[where]}/{rows.path[where].rpartition('/')[0]}"
            detail = f"{extra} readable trial(s) more than the job planned"
            problems.add(place, "more-trials-than-planned", detail, "all of them are rows")


def _attempts(rows: _Rows, job_of: list[str]) -> list[int]:
    """1-based order of start within job, arm and task."""
    groups: dict[tuple[str, str | None, str | None], list[int]] = defaultdict(list)
    for i, path in enumerate(job_of):
        groups[path, rows.arm[i], rows.task[i]].append(i)
    attempts = [0] * len(job_of)
    for members in groups.values():
        members.sort(key=lambda i: (rows.started[i] is None, rows.started[i] or 0, rows.path[i]))
        for number, i in enumerate(members, 1):
            attempts[i] = number
    return attempts
