"""Harbor job directories to a dataset: the one entry point, `collect`.

Only light imports here: when nothing changed, Arrow is never loaded.
"""

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.surrogates import plain
from akm_harbor.trials import cache

ARM_BY: tuple[str, ...] = ("auto", "kwarg", "agent", "job", "submission", "model")
type Progress = Callable[[int, int], None]
"""Called with trials done and trials in all."""


@dataclass(frozen=True, slots=True)
class CollectResult:
    """What a collection did.

    Attributes:
        dataset: where it lies.
        n_jobs: jobs found.
        n_trials: rows of the trials table: trial directories found, and attempts recorded before theirs went.
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
    folders = None if tasks is None else [Path(p) for p in tasks]
    key = f"{cache.code_stamp()}|{arm_by}|{reward_key}"
    named = [
        *(plain(f"{p}={os.path.realpath(p)}") for p in paths),
        *(f"tasks:{os.path.realpath(p)}" for p in folders or ()),
        "shipped" if folders is None else "",
        os.getcwd(),
    ]
    memory = None if fresh else cache.load(dataset)
    if memory is not None and (memory.state.key != key or not memory.dataset_whole(dataset)):
        memory = None
    if memory is not None and memory.state.inputs == named and memory.nothing_changed():
        return _told_again(memory, dataset, began)
    _check_output(dataset)
    from akm_harbor.trials.plan import Options, make_plan
    from akm_harbor.trials.pool import Reader

    with _gc_paused(), Reader(reward_key, began, workers) as reader:
        plan = make_plan(paths, dataset, folders, memory, began, reader.give)
        if memory is not None and memory.state.inputs == named and plan.same_rows(memory):
            memory.update(dataset, plan.others)
            return _told_again(memory, dataset, began)
        from akm_harbor.trials.build import build  # loads Arrow, while the workers read

        made = build(plan, reader.read(), dataset, Options(arm_by, reward_key), key, named, progress)
    return CollectResult(dataset, **made, seconds=(time.time_ns() - began) / 1e9)


@contextmanager
def _gc_paused() -> Iterator[None]:
    """Millions of small values that all live to the end: looking for cycles among them only costs."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


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
