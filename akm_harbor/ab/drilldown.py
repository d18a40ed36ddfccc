"""From a task down to its trials: which steps are shown, which are folded, and what is opened in print."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from akm_harbor.ab.result import Step, TaskRow

PRINTED_TASKS = 12
"""Tasks whose trials are printed on paper, the largest differences first; the file holds them all."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps in a row that are shown one by one, or folded into one line.

    Attributes:
        told: they decided something, or changed a file.
        tools: their tools with how often, for the folded line.
    """

    told: bool
    steps: tuple[Step, ...]
    tools: str


def stretches(steps: Sequence[Step], deciding: Collection[int] = ()) -> tuple[Stretch, ...]:
    """Cut a trial's steps into stretches that are told and stretches that are folded.

    Args:
        steps: in order.
        deciding: places among the tool calls that decided how the trial ended.
    """
    groups = groupby(steps, key=lambda s: bool(s.marks or s.diff or s.index in deciding))
    return tuple(Stretch(told, kept := tuple(group), _tools(kept)) for told, group in groups)


def _tools(steps: Iterable[Step]) -> str:
    counts: dict[str, int] = {}
    for step in steps:
        counts[step.tool] = counts.get(step.tool, 0) + 1
    return ", ".join(tool if n == 1 else f"{tool} ({n})" for tool, n in counts.items())


def printed(tasks: Sequence[TaskRow]) -> frozenset[str]:
    """The tasks that are opened on paper."""
    order = sorted(tasks, key=lambda t: -abs(t.difference or 0.0))
    return frozenset(t.task for t in order[:PRINTED_TASKS])
