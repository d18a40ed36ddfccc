"""The rates themselves are measured in `tests/bench`; here, that the machinery measures what it says."""

import numpy as np
import pytest

from akm_harbor.canary.alerts.model import Settings
from akm_harbor.canary.simulate.noise import (
    Drop,
    Noise,
    calibrated_verdicts,
    designed_verdicts,
    draw,
    dropped,
    false_alarm_rate,
    power,
)


def test_canaries_keep_their_own_probability() -> None:
    rng = np.random.default_rng(0)
    p = Noise(0.8).probabilities(2000, rng)
    assert p.mean() == pytest.approx(0.8, abs=0.01)
    assert p.var() == pytest.approx(0.8 * 0.2 / 3, abs=0.003)
    assert set(Noise(0.8, concentration=None).probabilities(3, rng).ravel()) == {0.8}


@pytest.mark.parametrize("how", list(Drop))
def test_every_drop_takes_as_much_off_the_mean(how: Drop) -> None:
    rng = np.random.default_rng(1)
    p = Noise(0.8, concentration=None if how is Drop.SHIFT else 2.0).probabilities(3000, rng)
    assert p.mean() - dropped(p, how, 0.16, 0.8, rng).mean() == pytest.approx(0.16, abs=0.01)


def test_the_designed_rule_on_known_counts() -> None:
    hits = np.zeros((2, 40, 6), dtype=bool)
    hits[:, :38, :5] = True
    hits[0, :32, 5] = True
    hits[1, :33, 5] = True
    assert designed_verdicts(hits).tolist() == [True, False]


def test_false_alarms_stay_near_the_rate_and_drops_are_seen() -> None:
    """A coarse guard with a fixed seed; 1,500 series tell 5 % from 3 or 8."""
    rate = false_alarm_rate(Noise(0.8), calibrated_verdicts, Settings(rate=0.05), series=1500, history=40)
    assert 0.035 < rate < 0.068
    seen = power(Noise(0.8), calibrated_verdicts, Drop.LOST, series=300, history=40)
    assert seen[-1] > 0.9
    assert list(seen) == sorted(seen)


def test_the_same_seed_draws_the_same() -> None:
    first, second = (draw(Noise(0.7).probabilities(2, rng), 3, rng) for rng in map(np.random.default_rng, (5, 5)))
    assert (first == second).all()
