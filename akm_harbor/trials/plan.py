"""What one collection has to do: which trials to read, and whose rows to keep."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
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
    reused: dict[str, tuple[Entry, list[Stamp]]]
    todo: list[tuple[JobDir, TrialDir]]
    complete: bool

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


def make_plan(
    inputs: list[Path],
    dataset: Path,
    tasks: list[Path] | None,
    memory: Memory | None,
    now_ns: int,
    to_read: Callable[[Iterable[TrialDir]], None],
) -> Plan:
    """Look at the inputs and decide what to read.

    Args:
        inputs: what a person pointed at.
        dataset: where the tables will lie.
        tasks: folders of tasks; None takes the shipped ones.
        memory: the last collection, where it can be used.
        now_ns: when the collection began.
        to_read: takes the trials to read, job by job, while others are still looked for.

    Raises:
        AkmHarborError: an input or a task folder is not what it should be.
    """
    known = open_tasks(tasks, inputs, now_ns) if memory is not None else None
    if memory is not None and known is not None and not memory.tasks_unchanged(known.stamps):
        memory = None
    reused: dict[str, tuple[Entry, list[Stamp]]] = {}
    todo: list[tuple[JobDir, TrialDir]] = []

    def sort(job: JobDir) -> None:
        fresh: list[TrialDir] = []
        for trial in job.trials:
            kept = memory.unchanged(trial.path) if memory is not None else None
            if kept is not None and (kept[0].root, kept[0].rel) == (job.root, f"{job.rel}/{trial.name}"):
                reused[trial.path] = kept
            else:
                fresh.append(trial)
        todo.extend((job, trial) for trial in fresh)
        to_read(fresh)

    found = discover(inputs, now_ns, dataset, sort)
    known = known or open_tasks(tasks, inputs, now_ns)  # after it, where nothing hangs on them: others read by now
    jobs = {job.path: read_job(job, now_ns) for job in found.jobs}
    trials = {trial.path for job in found.jobs for trial in job.trials}
    others = [(path, FOLDER, mtime) for path, mtime in found.folders.items() if path not in trials]
    for path, job in jobs.items():
        others += [(f"{path}/{rel}" if rel else path, size, mtime) for rel, size, mtime in job.stamps]
    complete = memory is not None and len(reused) == len(memory.state.trials)
    return Plan(found, known, jobs, others, reused, todo, complete)
