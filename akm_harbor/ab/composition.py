"""How much of a headline is the mix of tasks: the same differences with other weights, and with a kind left out.

A headline is a mean over tasks, so a kind with many tasks weighs much. No weighting is the right one; how far
they lie apart is what a reader should know.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from akm_harbor.stats.attempts import TIED
from akm_harbor.stats.paired import paired_t
from akm_harbor.stats.results import Estimate, Interval, NotEstimable, Result

EQUAL = "mean difference, every kind of task with the same weight (tasks are a sample of their kind)"


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of task in the headline.

    Attributes:
        share: of the tasks.
        difference: the paired difference on these tasks alone.
        points: what they put into the headline: share times difference.
        without: the headline without them.
    """

    name: str
    n_tasks: int
    share: float
    difference: Result
    points: float
    without: Result


@dataclass(frozen=True, slots=True)
class Composition:
    """A headline taken apart by one grouping.

    Attributes:
        headline: on the tasks that the grouping knows.
        equal: with the same weight for every kind.
        any_mix: smallest and largest headline that any mix of these kinds gives.
        left_out: smallest and largest headline with one kind left out; None where that leaves too little.
        between: share of the spread of the tasks' differences that lies between kinds, corrected for chance
            (omega squared); None where it cannot be told.
        n_unknown: tasks without a kind, not in here.
    """

    grouping: str
    parts: tuple[Part, ...]
    headline: Result
    equal: Result
    any_mix: tuple[float, float]
    left_out: tuple[float, float] | None
    between: float | None
    n_unknown: int


def compositions(
    tasks: Sequence[tuple[float, Mapping[str, str]]], groupings: Sequence[str], level: float
) -> tuple[Composition, ...]:
    """Take a headline apart by every grouping that has two groups.

    Args:
        tasks: of each task its difference, and its group by grouping.
        groupings: names of the groupings, in the order of the result.
        level: coverage of the intervals.
    """
    found = []
    for grouping in groupings:
        groups: dict[str, list[float]] = {}
        for difference, kinds in tasks:
            if grouping in kinds:
                groups.setdefault(kinds[grouping], []).append(difference)
        if len(groups) >= 2:
            found.append(_composition(grouping, groups, len(tasks), level))
    return tuple(found)


def _composition(grouping: str, groups: Mapping[str, list[float]], n_all: int, level: float) -> Composition:
    n = sum(map(len, groups.values()))
    parts = []
    for name, own in groups.items():
        rest = [d for other, ds in groups.items() if other != name for d in ds]
        inside = paired_t(own, level)
        parts.append(Part(name, len(own), len(own) / n, inside, math.fsum(own) / n, paired_t(rest, level)))
    parts.sort(key=lambda p: (-(p.difference.value or 0.0), p.name))
    means = [p.difference.value or 0.0 for p in parts]
    without = [p.without.value for p in parts if p.without.value is not None]
    return Composition(
        grouping,
        tuple(parts),
        paired_t([d for ds in groups.values() for d in ds], level),
        equal_weights(list(groups.values()), level),
        (min(means), max(means)),
        (min(without), max(without)) if len(without) == len(parts) else None,
        _between(list(groups.values())),
        n_all - n,
    )


def equal_weights(groups: Sequence[Sequence[float]], level: float) -> Result:
    """Mean of the groups' means, with Welch's degrees of freedom.

    SE = sqrt(sum of s_g^2 / n_g) / groups; df by Satterthwaite. Not estimable where a group has one task, whose
    spread nothing tells.
    """
    method = "mean of group means, Welch-Satterthwaite"
    n = sum(map(len, groups))
    value = float(np.mean([np.mean(g) for g in groups]))
    single = sum(len(g) < 2 for g in groups)
    if single:
        detail = f"{single} of {len(groups)} kinds have one task, whose spread cannot be estimated."
        return NotEstimable("one-task", detail, method, EQUAL, n, value)
    variances = np.array([np.var(g, ddof=1) / len(g) for g in groups])
    total = float(variances.sum())
    if total <= TIED**2:
        detail = "Inside every kind all tasks differ by the same amount."
        return NotEstimable("constant-difference", detail, method, EQUAL, n, value)
    df = total**2 / float(sum(v**2 / (len(g) - 1) for v, g in zip(variances, groups, strict=True)))
    se = math.sqrt(total) / len(groups)
    half = float(stats.t.ppf((1 + level) / 2, df)) * se
    return Estimate(value, method, EQUAL, n, Interval(value - half, value + half, level), se, df)


def _between(groups: Sequence[Sequence[float]]) -> float | None:
    """Omega squared of a one-way analysis: the share of spread between groups, chance taken off, at least 0."""
    n, k = sum(map(len, groups)), len(groups)
    grand = math.fsum(d for g in groups for d in g) / n
    between = math.fsum(len(g) * (float(np.mean(g)) - grand) ** 2 for g in groups)
    within = math.fsum((d - float(np.mean(g))) ** 2 for g in groups for d in g)
    if n <= k or between + within <= TIED:
        return None
    noise = within / (n - k)
    return max((between - (k - 1) * noise) / (between + within + noise), 0.0)
