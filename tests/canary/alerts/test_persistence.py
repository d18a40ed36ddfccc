import numpy as np
import pytest

from akm_harbor.canary.alerts.exact import Contrast
from akm_harbor.canary.alerts.persistence import discounted, inflation, persistence
from akm_harbor.canary.simulate.noise import Noise, draw


def _estimate(carried: float, cycles: int = 60) -> np.ndarray:
    rng = np.random.default_rng(2)
    hits = draw(Noise(0.8).probabilities(200, rng), cycles, rng, carried)
    changes = (hits[:, :, 1:] != hits[:, :, :-1]).sum(axis=(1, 2))
    return persistence(changes, hits.sum(axis=2), np.full(200, cycles))


@pytest.mark.parametrize("carried", [0.0, 0.3, 0.6, 0.9])
def test_carry_over_is_estimated(carried: float) -> None:
    assert _estimate(carried).mean() == pytest.approx(carried, abs=0.05)


def test_nothing_to_see_is_no_carry_over() -> None:
    none = persistence(np.array([0, 0]), np.array([[60, 0], [60, 60]]), np.array([60, 60]))
    assert none.tolist() == [0.0, 0.0]
    assert persistence(np.array([0]), np.array([[0]]), np.array([0])).tolist() == [0.0]


def test_inflation_is_that_of_the_mean_of_correlated_cycles() -> None:
    contrast = Contrast((0, 20), (50, 60))
    carried = np.array([0.0, 0.6])
    weights = np.zeros(60)
    weights[:20], weights[50:] = -1 / 20, 1 / 10
    lag = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    wanted = [float(weights @ rho**lag @ weights / (weights @ weights)) for rho in carried]
    assert inflation(contrast, carried) == pytest.approx(wanted)
    assert inflation(Contrast((0, 5), (5, 6)), np.array([0.9]))[0] == 1.0


def test_without_inflation_the_p_value_is_left_exact() -> None:
    p = np.array([0.02, 0.02])
    same, larger = discounted(p, np.array([1.0, 4.0]))
    assert same == 0.02
    assert larger == pytest.approx(0.1522, abs=1e-3)
