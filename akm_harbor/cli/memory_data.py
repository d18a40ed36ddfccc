"""What the memory commands share: data by name or place, and progress on stderr."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from akm_harbor.errors import UsageError

if TYPE_CHECKING:
    from akm_harbor.memory.datasets.sources import Source


def converted(dataset: str | None, data: Path | None) -> Path:
    """A dataset by name or place, converted."""
    from akm_harbor.memory.datasets.convert import converted
    from akm_harbor.memory.datasets.sources import find_source

    if dataset is None and data is None:
        raise UsageError("no data", hint="Name a dataset (akm-harbor memory datasets) or a file with --data.")
    source = find_source(dataset) if dataset else None
    path = data or (source and source.path) or fetched(source, None)
    with counting("Converting", "histories") as count:
        return converted(path, source=source, progress=count)


def fetched(source: "Source | None", folder: Path | None) -> Path:
    """A known dataset's file, fetched if it is not here."""
    from akm_harbor.memory.datasets.sources import fetch as fetch_source
    from akm_harbor.resources import cache_root

    assert source is not None
    if source.path is not None:
        return source.path
    with bar(f"Fetching {source.name}") as progress:
        return fetch_source(
            source, folder or cache_root() / "memory", lambda done, total: progress(done, total or done)
        )


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def counting(title: str, unit: str) -> Iterator[Callable[[int], None]]:
    """A counter on stderr, for work whose size is not known."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn

    columns = (SpinnerColumn(), TextColumn(f"{title}: {{task.completed:.0f}} {unit}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done: progress.update(task, completed=done)
