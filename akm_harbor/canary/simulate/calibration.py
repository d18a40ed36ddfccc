"""Measure the rules: false alarms and power by recall level, for the calibration page and the bench."""

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path

from akm_harbor.canary.alerts.model import DEFAULTS
from akm_harbor.canary.simulate.noise import (
    Drop,
    Noise,
    calibrated_verdicts,
    cycles_to_alert,
    designed_verdicts,
    false_alarm_rate,
    power,
)
from akm_harbor.errors import AkmHarborError

LEVELS = (0.60, 0.65, 0.70, 0.75, 0.80, 0.85, 0.90, 0.95)
RATES = (0.01, 0.02, 0.05)
CARRIED = 0.6
_JUDGES = {"calibrated": calibrated_verdicts, "as-designed": designed_verdicts}


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured figure.

    Attributes:
        what: `false-alarm`, `power` (by the third cycle), `power-first` (in the first cycle) or `delay`.
        rule: which rule.
        noise: `own` (each canary keeps its own probability), `independent` (all share one) or
            `carried` (own probabilities, and a state carries over to the next cycle with correlation 0.6).
        recall: level of the healthy store.
        rate: false-alarm rate asked for; None for the as-designed rule, which has none.
        drop: how recall fell; None for false alarms.
        value: a share; for `delay` the median number of cycles to the first alert, None if not seen.
        series: how many simulated series stand behind it.
    """

    what: str
    rule: str
    noise: str
    recall: float
    rate: float | None
    drop: str | None
    value: float | None
    series: int


def plan(series: int, levels: tuple[float, ...] = LEVELS) -> list[Callable[[], list[Measured]]]:
    """The measurements, as pieces of work for a progress bar."""
    made: list[Callable[[], list[Measured]]] = []
    for noise in ("own", "independent"):
        for recall in levels:
            for rule in _JUDGES:
                made.append(partial(_alarms, noise, recall, rule, series))
                made.append(partial(_powers, noise, recall, rule, series // 5))
    made += [partial(_alarms, "carried", recall, rule, series) for recall in levels for rule in _JUDGES]
    made += [partial(_delay, recall, rule, series // 50) for recall in (0.8, 0.95) for rule in _JUDGES]
    return made


def _noise(kind: str, recall: float) -> Noise:
    if kind == "independent":
        return Noise(recall, concentration=None)
    return Noise(recall, carried=CARRIED if kind == "carried" else 0.0)


def _alarms(kind: str, recall: float, rule: str, series: int) -> list[Measured]:
    rates: tuple[float | None, ...] = RATES if rule == "calibrated" else (None,)
    found = []
    for rate in rates:
        settings = DEFAULTS if rate is None else replace(DEFAULTS, rate=rate)
        value = false_alarm_rate(_noise(kind, recall), _JUDGES[rule], settings, series=series)
        found.append(Measured("false-alarm", rule, kind, recall, rate, None, value, series))
    return found


def _powers(kind: str, recall: float, rule: str, series: int) -> list[Measured]:
    rate = DEFAULTS.rate if rule == "calibrated" else None
    found = []
    for drop in Drop:
        seen = power(_noise(kind, recall), _JUDGES[rule], drop, series=series)
        for what, value in (("power-first", seen[0]), ("power", seen[-1])):
            found.append(Measured(what, rule, kind, recall, rate, drop.value, value, series))
    return found


def _delay(recall: float, rule: str, series: int) -> list[Measured]:
    median, share = cycles_to_alert(_noise("own", recall), _JUDGES[rule], 0.005, series=series)
    rate = DEFAULTS.rate if rule == "calibrated" else None
    value = median if median != float("inf") else None
    return [
        Measured("delay", rule, "own", recall, rate, "slow", value, series),
        Measured("delay-seen", rule, "own", recall, rate, "slow", share, series),
    ]


def measure(series: int, levels: tuple[float, ...] = LEVELS) -> Iterator[Measured]:
    """Measure everything; 20,000 series take a quarter of an hour on two cores."""
    for piece in plan(series, levels):
        yield from piece()


def to_json(found: list[Measured]) -> str:
    """The measurements as JSON text."""
    return json.dumps([asdict(one) for one in found], indent=0) + "\n"


def read_calibration(path: Path) -> tuple[Measured, ...]:
    """Read measurements back.

    Raises:
        AkmHarborError: not such a file.
    """
    try:
        return tuple(Measured(**row) for row in json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise AkmHarborError(
            f"cannot be read as measurements ({error})", path=path, hint="Make them with `canary calibrate`."
        ) from error
