"""Harbor job directories to a dataset: the one entry point, `collect`.

Only light imports here: when nothing changed, Arrow is never loaded.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.trials import cache
from akm_harbor.trials.discover import RACY, Found, JobDir, TrialDir, discover
from akm_harbor.trials.files import FOLDER
from akm_harbor.trials.job import Job, read_job
from akm_harbor.trials.tasks import Tasks, open_tasks

ARM_BY: tuple[str, ...] = ("auto", "kwarg", "agent", "job", "submission", "model")
type Progress = Callable[[int, int], None]
"""Called with trials done and trials in all."""


@dataclass(frozen=True, slots=True)
class CollectResult:
    """What a collection did.

    Attributes:
        dataset: where it lies.
        n_jobs: jobs found.
        n_trials: rows of the trials table: trial directories found.
        n_read: of which read now.
        n_reused: of which taken from the dataset as it was.
        unchanged: nothing had changed, nothing was written.
        statuses: trials by status.
        arms: trials by arm.
        problems: problems by kind.
        seconds: how long it took.
    """

    dataset: Path
    n_jobs: int
    n_trials: int
    n_read: int
    n_reused: int
    unchanged: bool
    statuses: dict[str, int] = field(default_factory=dict)
    arms: dict[str, int] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def n_problems(self) -> int:
        """Rows of the problems table."""
        return sum(self.problems.values())


@dataclass(frozen=True, slots=True)
class Options:
    """How to read; part of what the cache compares."""

    arm_by: str
    reward_key: str
    workers: int | None


@dataclass(slots=True)
class Plan:
    """What one collection has to do.

    Attributes:
        jobs: the jobs' own files, by job path.
        others: stamps of the folders around the trials and of the jobs' files.
        reused: per trial path, the entry whose rows are kept.
        todo: trials to read, in order of discovery.
    """

    found: Found
    jobs: dict[str, Job]
    others: list[tuple[str, int, int]]
    tasks: Tasks
    memory: cache.Memory | None
    reused: dict[str, cache.Entry]
    todo: list[tuple[JobDir, TrialDir]]


def collect(
    inputs: Sequence[Path | str],
    output: Path | str,
    *,
    arm_by: str = "auto",
    reward_key: str = "reward",
    tasks: Sequence[Path | str] | None = None,
    fresh: bool = False,
    workers: int | None = None,
    progress: Progress | None = None,
) -> CollectResult:
    """Collect job directories into a dataset, reading only what changed since the last time.

    Args:
        inputs: job directories, folders of jobs, or trees of submissions.
        output: the dataset's folder; replaced in one step, so that a reader or a kill at any
            moment finds the old dataset or the new one, whole.
        arm_by: where a trial's arm comes from: `kwarg`, `agent`, `job`, `submission`, `model`;
            `auto` takes the agent's `arm` kwarg, else the submission in a tree of submissions,
            else the agent's name.
        reward_key: which key of the rewards is the primary one.
        tasks: folders of tasks to join; None takes the shipped corpus.
        fresh: read everything again.
        workers: reading processes; None decides by the amount to read.
        progress: called as trials are done.

    Raises:
        AkmHarborError: an input is no job directory and holds none, or the output cannot be written.
        UsageError: an unknown `arm_by`, or no input.
    """
    began = time.time_ns()
    if arm_by not in ARM_BY:
        raise UsageError(f"unknown --arm-by {arm_by!r}", hint=f"One of: {', '.join(ARM_BY)}.")
    paths = [Path(p) for p in inputs]
    if not paths:
        raise UsageError("no job directory given")
    dataset = Path(output)
    options = Options(arm_by, reward_key, workers)
    folders = None if tasks is None else [Path(p) for p in tasks]
    key = f"{cache.code_stamp()}|{arm_by}|{reward_key}"
    named = [
        *(f"{p}={os.path.realpath(p)}" for p in paths),
        *(f"tasks:{os.path.realpath(p)}" for p in folders or ()),
        "shipped" if folders is None else "",
        os.getcwd(),
    ]
    memory = None if fresh else cache.load(dataset)
    if memory is not None and memory.state.key != key:
        memory = None
    if memory is not None and memory.state.inputs == named and memory.nothing_changed(dataset):
        return _told_again(memory, dataset, began)
    _check_output(dataset)
    known = open_tasks(folders, paths, began)
    found = discover(paths, began, ignore=dataset)
    plan = _plan(found, known, memory)
    if plan.memory is not None and plan.memory.state.inputs == named and _same_rows(plan, plan.memory):
        plan.memory.update(dataset, plan.others)
        return _told_again(plan.memory, dataset, began)
    from akm_harbor.trials.build import build

    result = build(plan, dataset, options, key, named, progress)
    return CollectResult(dataset, **result, seconds=(time.time_ns() - began) / 1e9)


def _told_again(memory: cache.Memory, dataset: Path, began: int) -> CollectResult:
    summary = memory.state.summary
    known = {name: summary[name] for name in ("n_jobs", "n_trials", "statuses", "arms", "problems")}
    return CollectResult(
        dataset,
        **known,  # type: ignore[arg-type]
        n_read=0,
        n_reused=int(str(summary["n_trials"])),
        unchanged=True,
        seconds=(time.time_ns() - began) / 1e9,
    )


def _check_output(dataset: Path) -> None:
    """Fail before the work, not after it."""
    if dataset.exists() and not dataset.is_dir():
        raise AkmHarborError(
            "is a file, not a folder for a dataset", path=dataset, hint="Choose another output folder."
        )
    above = next((p for p in (dataset.absolute(), *dataset.absolute().parents) if p.exists()), None)
    if above is None or not above.is_dir() or not os.access(above, os.W_OK):
        raise AkmHarborError("cannot be written", path=dataset, hint="Choose a writable output folder.")


def _plan(found: Found, tasks: Tasks, memory: cache.Memory | None) -> Plan:
    """Which trials can keep their rows."""
    jobs = {job.path: read_job(job, tasks.now_ns) for job in found.jobs}
    trials = {trial.path for job in found.jobs for trial in job.trials}
    others = [(path, FOLDER, mtime) for path, mtime in found.folders.items() if path not in trials]
    for path, job in jobs.items():
        others += [(f"{path}/{rel}" if rel else path, size, mtime) for rel, size, mtime in job.stamps]
    plan = Plan(found, jobs, others, tasks, memory, {}, [])
    if memory is not None and not memory.tasks_unchanged(tasks.stamps):
        plan.memory = memory = None
    for folder in found.jobs:
        for trial in folder.trials:
            entry = memory.find(trial.path) if memory is not None else None
            if (
                memory is not None
                and entry is not None
                and entry.root == folder.root
                and entry.rel == f"{folder.rel}/{trial.name}"
                and memory.unchanged(entry)
            ):
                plan.reused[trial.path] = entry
            else:
                plan.todo.append((folder, trial))
    return plan


def findings_of(plan: Plan) -> list[tuple[str, str, str, str]]:
    """What discovery and the tasks had to say, as the cache keeps it."""
    return [(f.path, f.kind, f.detail, f.action) for f in (*plan.found.findings, *plan.tasks.findings)]


def _same_rows(plan: Plan, memory: cache.Memory) -> bool:
    """Whether only folders around the trials changed, e.g. because the dataset lies among them."""
    now = {stamp for stamp in plan.others if stamp[1] != FOLDER}
    then = {tuple(stamp) for stamp in memory.state.others if stamp[1] != FOLDER}
    return (
        not plan.todo
        and len(plan.reused) == len(memory.state.entries)
        and now == then
        and findings_of(plan) == [tuple(f) for f in memory.state.findings]
        and not any(stamp[2] == RACY for stamp in now)
    )
