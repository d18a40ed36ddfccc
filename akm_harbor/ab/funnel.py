"""How far the treatment got, by arm and task family, and the observational split by use."""

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from akm_harbor.ab.result import Stage
from akm_harbor.ab.use import TrialUse
from akm_harbor.stats.binomial import newcombe_difference
from akm_harbor.stats.results import NotEstimable, Result

OBSERVATIONAL = (
    "Observational: the agent chose whether to look, and an attempt in which it looks may be another kind of attempt. "
    "The difference between the arms as assigned is the headline."
)

STAGES: tuple[tuple[str, str, Callable[[TrialUse], bool | None]], ...] = (
    ("delivered", "treatment delivered", lambda t: True if t.placebo else t.delivered),
    ("offered", "akm tools offered to the model", lambda t: t.offered),
    ("exposed", "the arm's text in a request of the agent", lambda t: t.exposed),
    ("called", "model called akm, or read the bundle", lambda t: t.called),
    ("found", "gold asset among what came back", lambda t: t.found),
    ("opened", "gold asset opened", lambda t: t.opened),
    ("wrote", "wrote after opening it", lambda t: t.wrote),
)
"""Name, title and test of each stage. Each is counted by itself; the last three need the one before."""


@dataclass(frozen=True, slots=True)
class FirstLook:
    """Where the gold asset stood at an attempt's first look-up.

    Attributes:
        n_looked: attempts with a look-up, on tasks that name a gold asset.
        ranks: 1-based rank -> attempts.
        absent: attempts whose first look-up did not bring it.
        median: median rank, an absent asset counted as below every rank; None if half or more had it absent.
    """

    n_looked: int
    ranks: dict[int, int]
    absent: int
    median: float | None


@dataclass(frozen=True, slots=True)
class Funnel:
    """The stages of one arm, or of one task family in it.

    Attributes:
        family: None for the whole arm.
        n: attempts.
    """

    arm: str
    family: str | None
    n: int
    stages: tuple[Stage, ...]
    first_look: FirstLook


@dataclass(frozen=True, slots=True)
class UseSplit:
    """Attempts of one arm that used the bundle, beside those that did not: observational.

    Attributes:
        used: mean score of attempts that called akm or read the bundle; None without any.
        difference: used minus unused, Newcombe's interval on attempts, where all scores are 0 or 1.
        label: what a reader must be told.
    """

    arm: str
    family: str | None
    n_used: int
    used: float | None
    n_unused: int
    unused: float | None
    difference: Result
    label: str = OBSERVATIONAL


def groups(trials: Iterable[TrialUse]) -> Iterator[tuple[str, str | None, list[TrialUse]]]:
    """Each arm as a whole, then by family where the tasks have one; arms in their given order."""
    by_arm: dict[str, list[TrialUse]] = {}
    for trial in trials:
        by_arm.setdefault(trial.arm, []).append(trial)
    for arm, mine in by_arm.items():
        yield arm, None, mine
        families = sorted({t.family for t in mine if t.family is not None})
        for family in families:
            yield arm, family, [t for t in mine if t.family == family]


def stages(trials: Iterable[TrialUse]) -> tuple[Stage, ...]:
    """Count the stages; unknown is apart from no."""
    mine = list(trials)
    return tuple(_stage(name, title, [test(t) for t in mine]) for name, title, test in STAGES)


def _stage(name: str, title: str, verdicts: list[bool | None]) -> Stage:
    return Stage(name, title, verdicts.count(True), verdicts.count(False), verdicts.count(None))


def funnels(trials: Iterable[TrialUse]) -> tuple[Funnel, ...]:
    """One funnel an arm, and one a family of it."""
    return tuple(
        Funnel(arm, family, len(mine), stages(mine), _first_look(mine)) for arm, family, mine in groups(trials)
    )


def _first_look(trials: list[TrialUse]) -> FirstLook:
    looks = [t.first_lookup for t in trials if t.gold]
    ranks = [look.gold_rank if look.answered else None for look in looks if look is not None]
    found = Counter(r for r in ranks if r is not None)
    absent = ranks.count(None)
    placed = sorted(float("inf") if r is None else float(r) for r in ranks)
    median = statistics.median(placed) if placed else float("inf")
    return FirstLook(len(ranks), dict(sorted(found.items())), absent, None if median == float("inf") else median)


def use_splits(trials: Iterable[TrialUse], level: float) -> tuple[UseSplit, ...]:
    """The split by use, an arm and a family at a time; arms in which nobody used the bundle have none."""
    rows = []
    for arm, family, mine in groups(trials):
        scored = [(t.called, t.score) for t in mine if t.score is not None and t.called is not None]
        yes, no = ([s for used, s in scored if used is which] for which in (True, False))
        if yes:
            difference = compare_scores(no, yes, level)
            rows.append(UseSplit(arm, family, len(yes), _mean(yes), len(no), _mean(no), difference))
    return tuple(rows)


def compare_scores(without: list[float], held: list[float], level: float) -> Result:
    """`held` minus `without` of two sets of attempts: Newcombe's interval where scores are 0 or 1."""
    method, estimand, n = "Newcombe hybrid score", "difference of two success probabilities", len(without) + len(held)
    if {*without, *held} <= {0.0, 1.0}:
        return newcombe_difference(int(sum(without)), len(without), int(sum(held)), len(held), level)
    value = _mean(held) - _mean(without) if held and without else None  # type: ignore[operator]
    return NotEstimable("not-binary", "Some scores are neither 0 nor 1.", method, estimand, n, value)


def _mean(scores: list[float]) -> float | None:
    return sum(scores) / len(scores) if scores else None
