"""`akm-harbor collect`: job directories to a dataset."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say

if TYPE_CHECKING:
    from akm_harbor.trials.collection import CollectResult


def collect(
    jobs: Annotated[
        list[Path], typer.Argument(metavar="JOBS...", help="Job directories, folders of jobs, or trees of submissions.")
    ],
    output: Annotated[Path, typer.Option("--output", "--out", "-o", metavar="DATASET", help="The dataset's folder.")],
    arm_by: Annotated[
        str,
        typer.Option(help="Where a trial's arm comes from: auto, kwarg, agent, job, submission or model."),
    ] = "auto",
    reward_key: Annotated[str, typer.Option(help="Which key of the rewards is the primary one.")] = "reward",
    tasks: Annotated[
        list[Path] | None,
        typer.Option(help="A folder of tasks to join (repeatable); by default the shipped corpus."),
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Read everything again, changed or not.")] = False,
    workers: Annotated[
        int | None, typer.Option(min=0, max=1000, help="Reading processes; by default as many as pay.")
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 when there is any problem.")] = False,
) -> None:
    """Collect Harbor job directories into a Parquet dataset, reading only what changed.

    Every trial directory becomes a row; what could not be read or did not fit is a row of the
    `problems` table. The dataset is replaced in one step: a kill leaves the old one whole.

    Example: `akm-harbor collect jobs/control jobs/akm -o data/study`
    """
    from akm_harbor.trials.collection import collect as run

    with ExitStack() as stack:
        result = run(
            jobs,
            output,
            arm_by=arm_by,
            reward_key=reward_key,
            tasks=tasks,
            fresh=fresh,
            workers=workers,
            progress=_bar(stack),
        )
    _tell(result)
    if strict and result.n_problems:
        raise typer.Exit(1)


def _bar(stack: ExitStack) -> Callable[[int, int], None]:
    """A progress bar on stderr that comes up with the first trials read, and only on a terminal."""
    import sys

    if not sys.stderr.isatty():
        return lambda _done, _total: None
    update: list[Callable[[int, int], None]] = []

    def advance(done: int, total: int) -> None:
        if not update:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("reading trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            bar = stack.enter_context(Progress(*columns, console=Console(stderr=True), transient=True))
            task = bar.add_task("", total=total)
            update.append(lambda done, total: bar.update(task, completed=done, total=total))
        update[0](done, total)

    return advance


def _tell(result: "CollectResult") -> None:
    what = "nothing changed" if result.unchanged else f"{result.n_read} read, {result.n_reused} unchanged"
    say(f"{result.dataset}: {result.n_trials} trials of {result.n_jobs} jobs ({what}), {result.seconds:.1f} s")
    for title, counts in (("status", result.statuses), ("arm", result.arms)):
        shown = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        more = f", and {len(shown) - 12} more" if len(shown) > 12 else ""
        say(f"  {title}: " + ", ".join(f"{name} {n}" for name, n in shown[:12]) + more)
    if result.problems:
        kinds = ", ".join(f"{kind} {n}" for kind, n in result.problems.items())
        say(f"  problems: {kinds} (each with its file in the `problems` table)", err=True)
