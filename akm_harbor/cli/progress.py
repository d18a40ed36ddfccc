"""Progress on stderr, on a terminal only: pipes and logs stay clean."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar that comes up with the first step done; call what is yielded with (done, total)."""
    if not sys.stderr.isatty():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    row = bar.add_task("", total=None)

    def advance(done: int, total: int) -> None:
        bar.start()
        bar.update(row, completed=done, total=total)

    try:
        yield advance
    finally:
        bar.stop()


@contextmanager
def spinning(title: str) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done; call what is yielded with the step's name."""
    if not sys.stderr.isatty():
        yield lambda _step: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{title} …") as status:
        yield lambda step: status.update(f"{title} … {step}")
