"""What intervals for a paired difference cover when there are ten histories: measured, not claimed.

One replicate is a made-up study: every history has its own true difference, every question an
outcome of -1 (only the baseline is right), 0 or +1. An interval covers when it holds the mean of
the true differences over all histories there could be.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.memory.clusters import degrees_of_freedom

LOCOMO = (199, 105, 193, 260, 242, 158, 190, 239, 196, 204)
"""Questions of LoCoMo's ten conversations."""
OPEN_DOMAIN = (13, 6, 8, 11, 14, 7, 9, 10, 8, 10)
"""A small category of them."""
CHOSEN, CR1, MEANS, NAIVE = "CR2, Bell-McCaffrey", "CR1, t(9)", "t on history means", "questions independent"
METHODS = (CHOSEN, CR1, MEANS, NAIVE)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One kind of study.

    Attributes:
        name: for a reader.
        sizes: questions of each history.
        difference: the true mean difference.
        spread: standard deviation of the histories' true differences.
        disagree: share of questions on which the two arms differ.
        shape: how histories differ: `normal`, `heavy` (t with 3 degrees of freedom), `skewed`, or `outlier`
            (one history in ten is far from the rest).
    """

    name: str
    sizes: tuple[int, ...]
    difference: float
    spread: float
    disagree: float
    shape: str = "normal"


SCENARIOS = (
    Scenario("no effect of the history", LOCOMO, 0.0, 0.0, 0.3),
    Scenario("histories differ a little", LOCOMO, 0.03, 0.02, 0.3),
    Scenario("histories differ", LOCOMO, 0.03, 0.05, 0.3),
    Scenario("histories differ much", LOCOMO, 0.05, 0.10, 0.4),
    Scenario("heavy tails", LOCOMO, 0.02, 0.05, 0.4, "heavy"),
    Scenario("few disagreements", LOCOMO, 0.02, 0.0, 0.06),
    Scenario("a small category", OPEN_DOMAIN, 0.03, 0.05, 0.3),
    Scenario("a small category, histories differ much", OPEN_DOMAIN, 0.05, 0.10, 0.4),
)
HARD = (
    Scenario("skewed histories", LOCOMO, 0.03, 0.05, 0.3, "skewed"),
    Scenario("one history in ten is far off", LOCOMO, 0.02, 0.05, 0.3, "outlier"),
    Scenario("one history has most questions", (10,) * 9 + (400,), 0.03, 0.05, 0.3),
)
"""Where every method is strained; shown beside the rest."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """What was measured for one scenario.

    Attributes:
        scenario: which.
        replicates: studies simulated.
        covered: share of intervals that hold the truth, by method.
        width: mean width of the chosen interval.
        df: its degrees of freedom.
    """

    scenario: Scenario
    replicates: int
    covered: Mapping[str, float]
    width: float
    df: float

    @property
    def margin(self) -> float:
        """Half the 95 % interval of a share near the nominal coverage, by simulation error alone."""
        share = self.covered[CHOSEN]
        return 1.96 * float(np.sqrt(share * (1 - share) / self.replicates))


def simulate(
    scenarios: tuple[Scenario, ...] = SCENARIOS, replicates: int = 20_000, level: float = 0.95, seed: int = 0
) -> Iterator[Coverage]:
    """Measure each scenario."""
    for number, scenario in enumerate(scenarios):
        dice = np.random.default_rng([seed, number])
        sums, squares, truth = _studies(scenario, replicates, dice)
        yield _measure(scenario, sums, squares, truth, level)


def _studies(
    scenario: Scenario, replicates: int, dice: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """(sum, sum of squares) of the differences by replicate and history, and the true mean difference."""
    shape = (replicates, len(scenario.sizes))
    limit = scenario.disagree
    own = np.clip(scenario.difference + scenario.spread * _effects(scenario.shape, shape, dice), -limit, limit)
    truth = _truth(scenario)
    sizes = np.broadcast_to(np.asarray(scenario.sizes), shape)
    better = dice.binomial(sizes, (limit + own) / 2)
    rest = (limit - own) / 2 / (1 - (limit + own) / 2)
    worse = dice.binomial(sizes - better, np.clip(rest, 0, 1))
    return (better - worse).astype(np.float64), (better + worse).astype(np.float64), truth


@cache
def _truth(scenario: Scenario) -> float:
    """The true mean difference: clipping to what is possible moves it a little."""
    many = _effects(scenario.shape, (2_000_000,), np.random.default_rng(1))
    return float(np.clip(scenario.difference + scenario.spread * many, -scenario.disagree, scenario.disagree).mean())


def _effects(kind: str, shape: tuple[int, ...], dice: np.random.Generator) -> NDArray[np.float64]:
    """Effects with mean 0 and variance 1."""
    if kind == "heavy":
        return np.asarray(dice.standard_t(3, size=shape) / np.sqrt(3))
    if kind == "skewed":
        return np.asarray(dice.exponential(size=shape) - 1)
    if kind == "outlier":
        return np.asarray(((dice.random(shape) < 0.1) - 0.1) / 0.3)
    return np.asarray(dice.normal(size=shape))


def _measure(
    scenario: Scenario,
    sums: NDArray[np.float64],
    squares: NDArray[np.float64],
    truth: float,
    level: float,
) -> Coverage:
    sizes = np.asarray(scenario.sizes, dtype=np.float64)
    total, count = sizes.sum(), len(sizes)
    mean = sums.sum(axis=1) / total
    residual = sums - mean[:, None] * sizes
    df = degrees_of_freedom(scenario.sizes)
    means = sums / sizes
    spread = squares.sum(axis=1) - total * mean**2
    found = {
        CHOSEN: (mean, np.sqrt((residual**2 / (1 - sizes / total)).sum(axis=1)) / total, df),
        CR1: (mean, np.sqrt((residual**2).sum(axis=1) * count / (count - 1)) / total, count - 1.0),
        MEANS: (means.mean(axis=1), means.std(axis=1, ddof=1) / np.sqrt(count), count - 1.0),
        NAIVE: (mean, np.sqrt(spread / (total - 1) / total), total - 1.0),
    }
    covered, width = {}, 0.0
    for name, (centre, error, freedom) in found.items():
        half = stats.t.ppf((1 + level) / 2, freedom) * error
        covered[name] = float((np.abs(centre - truth) <= half).mean())
        if name == CHOSEN:
            width = float(2 * half.mean())
    return Coverage(scenario, len(mean), covered, width, df)
