"""Random data sets in which nothing differs, made from real attempts, thousands at a time.

All functions take and return arrays with one row a draw and one column a task. Differences are also kept as
whole numbers in units of a common denominator, so that the sign-flip test can be exact for every draw at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import TIED

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_LARGEST_DENOMINATOR = 1_000
_LARGEST_REACH = 200_000


@dataclass(frozen=True, slots=True)
class Attempts:
    """Attempts of one arm, or of both together, as a padded matrix.

    Attributes:
        scores: shape (tasks, most attempts of a task), 0 where there is no attempt.
        counts: attempts of each task, shape (tasks,).
        whole: the scores in units of 1/denominator; None where scores have no small common denominator.
        denominator: of `whole`.
    """

    scores: Floats
    counts: Integers
    whole: Integers | None
    denominator: int


@dataclass(frozen=True, slots=True)
class Differences:
    """Differences of many draws, shape (draws, tasks).

    Attributes:
        values: one number a task.
        whole: the same in units of a common fraction, for the exact test; None where there is none.
    """

    values: Floats
    whole: Integers | None


def padded(groups: Sequence[Sequence[float]]) -> Attempts:
    """Lay out attempts by task."""
    counts = np.array([len(g) for g in groups], dtype=np.int64)
    scores = np.zeros((len(groups), int(counts.max(initial=0))))
    for row, group in zip(scores, groups, strict=True):
        row[: len(group)] = group
    denominator = math.lcm(
        *(Fraction(float(v)).limit_denominator(_LARGEST_DENOMINATOR).denominator for v in np.unique(scores))
    )
    whole = np.rint(scores * denominator)
    fits = denominator <= _LARGEST_DENOMINATOR and np.abs(whole - scores * denominator).max(initial=0.0) <= TIED
    return Attempts(scores, counts, whole.astype(np.int64) if fits else None, denominator)


def dealt(
    rng: np.random.Generator, attempts: Attempts, first: Integers, draws: int, *, either_way: bool
) -> Differences:
    """Deal each task's attempts at random into two hands and take the difference of the hands' means.

    Args:
        rng: source of randomness.
        attempts: what is dealt.
        first: attempts in the first hand, by task; at least 1 and fewer than all.
        draws: how many times.
        either_way: toss a coin for which hand is subtracted from which (hands of unequal size).
    """
    shape = (draws, *attempts.scores.shape)
    keys = rng.random(shape)
    keys[:, np.arange(shape[2]) >= attempts.counts[:, None]] = 2.0
    order = keys.argsort(axis=2)
    chosen = np.arange(shape[2]) < first[:, None]
    signs = rng.choice(np.array([-1, 1]), size=shape[:2]) if either_way else np.ones(shape[:2], dtype=np.int64)
    second = attempts.counts - first

    def difference[T: (np.float64, np.int64)](scores: NDArray[T], one: NDArray[T], two: NDArray[T]) -> NDArray[T]:
        hand = (np.take_along_axis(np.broadcast_to(scores, shape), order, axis=2) * chosen).sum(axis=2)
        found: NDArray[T] = (hand * one - (scores.sum(axis=1) - hand) * two) * signs
        return found

    values = difference(attempts.scores, 1 / first, 1 / second)
    scale = math.lcm(*(int(n) for n in np.unique(np.concatenate([first, second]))))
    if attempts.whole is None or scale * attempts.denominator * len(first) > _LARGEST_REACH:
        return Differences(values, None)
    return Differences(values, difference(attempts.whole, scale // first, scale // second))


def flipped(rng: np.random.Generator, baseline: Attempts, treatment: Attempts, draws: int) -> Differences:
    """Swap the arms' labels on a random half of the tasks: the measured differences with random signs."""
    means = [arm.scores.sum(axis=1) / arm.counts for arm in (baseline, treatment)]
    signs = rng.choice(np.array([-1, 1]), size=(draws, len(means[0])))
    values = (means[1] - means[0]) * signs
    scale = math.lcm(
        *(int(n) for n in np.unique(np.concatenate([baseline.counts, treatment.counts]))),
    )
    unit = math.lcm(baseline.denominator, treatment.denominator)
    if baseline.whole is None or treatment.whole is None or scale * unit * len(means[0]) > _LARGEST_REACH:
        return Differences(values, None)
    sides = [
        arm.whole.sum(axis=1) * (unit // arm.denominator) * (scale // arm.counts)
        for arm in (baseline, treatment)
        if arm.whole is not None
    ]
    return Differences(values, (sides[1] - sides[0]) * signs)


def redrawn(rng: np.random.Generator, baseline: Attempts, treatment: Attempts, draws: int) -> Floats:
    """Draw tasks with replacement from these, and attempts with replacement from each task's own."""
    n = len(baseline.counts)
    tasks = rng.integers(0, n, (draws, n))
    means = []
    for arm in (baseline, treatment):
        counts = arm.counts[tasks]
        width = arm.scores.shape[1]
        picks = (rng.random((draws, n, width)) * counts[:, :, None]).astype(np.int64)
        drawn = arm.scores[tasks[:, :, None], picks]
        means.append((drawn * (np.arange(width) < counts[:, :, None])).sum(axis=2) / counts)
    found: Floats = means[1] - means[0]
    return found


def intervals(values: Floats, level: float) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """The headline's interval of every draw: Student t on task differences, tasks - 1 degrees of freedom.

    Returns:
        Centres, half widths, and whether the draw has an interval at all (not all tasks differ alike).
    """
    n = values.shape[1]
    half = stats.t.ppf((1 + level) / 2, n - 1) * values.std(axis=1, ddof=1) / math.sqrt(n)
    return values.mean(axis=1), half, np.ptp(values, axis=1) > TIED


def exact_cost(whole: Integers) -> int:
    """Multiplications that `exact_p` takes for a draw like these."""
    sizes = np.abs(whole // _common(whole))
    return int(sizes.sum(axis=1).max(initial=0) + 1) * len(np.unique(sizes))


def _common(whole: Integers) -> int:
    return max(int(np.gcd.reduce(np.abs(whole), axis=None)), 1)


def exact_p(whole: Integers) -> Floats:
    """The exact two-sided sign-flip p of every draw; 1 where no task differs.

    The signed sum's characteristic function is the product of cos(t d) over tasks, so that the distribution
    of a draw is one inverse Fourier transform of a product over the distinct sizes of its differences.
    """
    whole = whole // _common(whole)
    sizes = np.abs(whole)
    reach = int(sizes.sum(axis=1).max(initial=0))
    if reach == 0:
        return np.ones(len(whole))
    points = 2 * reach + 2
    angles = 2 * np.pi * np.arange(points // 2 + 1) / points
    product = np.ones((len(whole), len(angles)))
    for size in np.unique(sizes[sizes > 0]):
        counts = (sizes == size).sum(axis=1)
        wave = np.cos(angles * size)
        powers = wave ** np.arange(int(counts.max()) + 1)[:, None]
        product *= powers[counts]
    chances = np.fft.irfft(product, n=points, axis=1)
    # index s holds P(sum = s); by symmetry P(|sum| >= s) = 2 P(sum >= s) for s > 0
    tail = np.cumsum(chances[:, reach::-1], axis=1)[:, ::-1]
    observed = np.abs(whole.sum(axis=1))
    p = 2 * tail[np.arange(len(whole)), observed]
    p[observed == 0] = 1.0
    return np.clip(p, 0.0, 1.0)
