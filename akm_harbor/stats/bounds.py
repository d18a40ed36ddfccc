"""What missing rewards could have been: bounds that assume nothing (Manski)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """One task under one arm.

    Attributes:
        known: sum of the known rewards.
        n_known: how many attempts have one.
        n_missing: how many do not.
    """

    known: float
    n_known: int
    n_missing: int

    @property
    def n(self) -> int:
        """All attempts."""
        return self.n_known + self.n_missing

    def mean(self, fill: float) -> float:
        """Mean reward with every missing one at `fill`.

        Raises:
            ValueError: no attempt at all.
        """
        if not self.n:
            raise ValueError("a task without attempts has no mean")
        return (self.known + fill * self.n_missing) / self.n


@dataclass(frozen=True, slots=True)
class Bounds:
    """The smallest and the largest difference that the missing rewards allow.

    Attributes:
        worst: the treatment's missing rewards all 0, the baseline's all 1.
        best: the reverse.
        n_tasks: tasks.
        n_missing: missing rewards, both arms.
    """

    worst: float
    best: float
    n_tasks: int
    n_missing: int


def difference_bounds(baseline: list[TaskCounts], treatment: list[TaskCounts]) -> Bounds | None:
    """Bounds of the mean over tasks of the paired difference; None without a shared task.

    Raises:
        ValueError: the arms do not have the same tasks.
    """
    if len(baseline) != len(treatment):
        raise ValueError(f"arms of {len(baseline)} and {len(treatment)} tasks cannot be paired")
    pairs = [(a, b) for a, b in zip(baseline, treatment, strict=True) if a.n and b.n]
    if not pairs:
        return None
    worst = sum(b.mean(0.0) - a.mean(1.0) for a, b in pairs) / len(pairs)
    best = sum(b.mean(1.0) - a.mean(0.0) for a, b in pairs) / len(pairs)
    return Bounds(worst, best, len(pairs), sum(a.n_missing + b.n_missing for a, b in pairs))
