"""The funnel of one arm as a whole and its split by use, in the form the A/B report's first table has."""

from collections.abc import Iterable

from akm_harbor.ab.funnel import stages
from akm_harbor.ab.result import Engagement
from akm_harbor.ab.use import TrialUse


def engagement(arm: str, trials: Iterable[TrialUse]) -> Engagement:
    """How far the treatment got in one arm, and how attempts that used it fared.

    The split is observational: whether an attempt looks into the bundle is the agent's choice, and a task
    on which it looks may be another kind of task.

    Args:
        arm: its name.
        trials: from `read_uses`; other arms' trials are passed over.
    """
    mine = [t for t in trials if t.arm == arm]
    shown = [s for s in stages(mine) if s.name not in {"found", "opened", "wrote"} or s.yes + s.no]
    used, unused = ([t.score for t in mine if t.called is which and t.score is not None] for which in (True, False))
    return Engagement(arm, tuple(shown), len(used), _mean(used), len(unused), _mean(unused))


def _mean(scores: list[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None
