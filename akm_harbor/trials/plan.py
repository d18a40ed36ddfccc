"""What one collection has to do: which trials to read, and whose rows to keep."""

from dataclasses import dataclass, field
from pathlib import Path

from akm_harbor.trials.cache import Entry, Memory, Told
from akm_harbor.trials.discover import Found, JobDir, TrialDir, discover
from akm_harbor.trials.job import Job, read_job
from akm_harbor.trials.stamps import FOLDER, RACY, Stamp
from akm_harbor.trials.tasks import Tasks, open_tasks


@dataclass(frozen=True, slots=True)
class Options:
    """How to read; part of what the cache compares."""

    arm_by: str
    reward_key: str
    workers: int | None


@dataclass(slots=True)
class Plan:
    """The plan of one collection.

    Attributes:
        found: what the inputs hold.
        tasks: the tasks known.
        jobs: the jobs' own files, by job path.
        others: stamps of the folders around the trials and of the jobs' files.
        reused: by trial path, what is kept of an unchanged trial.
        todo: trials to read, in order of discovery.
        complete: every trial of the last collection is still there and unchanged.
    """

    found: Found
    tasks: Tasks
    jobs: dict[str, Job]
    others: list[Stamp]
    reused: dict[str, tuple[Entry, list[Stamp]]] = field(default_factory=dict)
    todo: list[tuple[JobDir, TrialDir]] = field(default_factory=list)
    complete: bool = False

    def findings(self) -> list[Told]:
        """What discovery and the tasks had to say, as the cache keeps it."""
        return [(f.path, f.kind, f.detail, f.action) for f in (*self.found.findings, *self.tasks.findings)]

    def same_rows(self, memory: Memory) -> bool:
        """Whether only folders around the trials changed, e.g. because the dataset lies among them."""
        now = {stamp for stamp in self.others if stamp[1] != FOLDER}
        then = {stamp for stamp in memory.state.others if stamp[1] != FOLDER}
        return (
            self.complete
            and not self.todo
            and now == then
            and not any(mtime == RACY for _, _, mtime in now)
            and self.findings() == memory.state.findings
        )


def make_plan(inputs: list[Path], dataset: Path, tasks: list[Path] | None, memory: Memory | None, now_ns: int) -> Plan:
    """Look at the inputs and decide what to read.

    Raises:
        AkmHarborError: an input or a task folder is not what it should be.
    """
    known = open_tasks(tasks, inputs, now_ns)
    found = discover(inputs, now_ns, ignore=dataset)
    jobs = {job.path: read_job(job, now_ns) for job in found.jobs}
    trials = {trial.path for job in found.jobs for trial in job.trials}
    others = [(path, FOLDER, mtime) for path, mtime in found.folders.items() if path not in trials]
    for path, job in jobs.items():
        others += [(f"{path}/{rel}" if rel else path, size, mtime) for rel, size, mtime in job.stamps]
    plan = Plan(found, known, jobs, others)
    if memory is not None and not memory.tasks_unchanged(known.stamps):
        memory = None
    for folder in found.jobs:
        for trial in folder.trials:
            kept = memory.unchanged(trial.path) if memory is not None else None
            if kept is not None and (kept[0].root, kept[0].rel) == (folder.root, f"{folder.rel}/{trial.name}"):
                plan.reused[trial.path] = kept
            else:
                plan.todo.append((folder, trial))
    plan.complete = memory is not None and len(plan.reused) == len(memory.state.trials)
    return plan
