import numpy as np
import pytest

from akm_harbor.memory.clusters import clustered_mean
from akm_harbor.memory.evaluation.simulate import (
    CHOSEN,
    CR1,
    HARD,
    LOCOMO,
    METHODS,
    NAIVE,
    SCENARIOS,
    Scenario,
    simulate,
)
from akm_harbor.stats.results import Estimate


def test_with_ten_histories_the_reported_interval_covers_94_to_96_percent():
    found = list(simulate(SCENARIOS, 20_000))
    assert [len(c.scenario.sizes) for c in found] == [10] * len(SCENARIOS)
    assert sum(LOCOMO) == 1986
    for one in found:
        assert 0.94 <= one.covered[CHOSEN] <= 0.96, one
        assert one.margin < 0.004


def test_the_simulation_can_tell_a_bad_interval():
    found = {c.scenario.name: c for c in simulate(SCENARIOS, 4_000)}
    assert found["histories differ much"].covered[NAIVE] < 0.7
    hard = {c.scenario.name: c for c in simulate(HARD, 4_000, seed=1)}
    dominated = hard["one history has most questions"]
    assert dominated.covered[CR1] < 0.7
    assert dominated.covered[CHOSEN] > 0.94
    assert set(dominated.covered) == set(METHODS)


def test_it_simulates_the_very_function_that_the_page_uses():
    """Question by question through `clustered_mean`, on small studies: the same coverage as by sums."""
    scenario = Scenario("small", (4, 9, 6, 5, 8, 3, 7, 5, 6, 9), 0.05, 0.1, 0.4)
    measured = next(iter(simulate((scenario,), 20_000))).covered[CHOSEN]
    dice = np.random.default_rng(9)
    names = [f"h{i}" for i, n in enumerate(scenario.sizes) for _ in range(n)]
    held = []
    for _ in range(1_500):
        own = np.clip(0.05 + 0.1 * dice.normal(size=10), -0.4, 0.4)
        chance = np.repeat(own, scenario.sizes)
        draw = dice.random(len(names))
        values = np.where(draw < (0.4 + chance) / 2, 1.0, np.where(draw < 0.4, -1.0, 0.0))
        found = clustered_mean(values, names)
        if isinstance(found, Estimate) and found.interval is not None:
            held.append(found.interval.low <= 0.05 <= found.interval.high)
    assert len(held) > 1_490
    assert np.mean(held) == pytest.approx(measured, abs=0.02)


def test_the_same_seed_gives_the_same_figures():
    one, two = (list(simulate(SCENARIOS[:2], 500, seed=3)) for _ in range(2))
    assert one == two
