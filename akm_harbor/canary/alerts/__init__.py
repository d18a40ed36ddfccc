"""The alert rules: pure functions over rows."""

from collections.abc import Callable, Mapping, Sequence

from akm_harbor.canary.alerts import akm, calibrated, designed
from akm_harbor.canary.alerts.model import DEFAULTS, Alert, Evaluated, Kind, Rule, Settings
from akm_harbor.canary.alerts.rows import Cycle, comparable

__all__ = ["DEFAULTS", "Alert", "Cycle", "Evaluated", "Kind", "Rule", "Settings", "evaluate"]

type _OneCycle = Callable[[Sequence[Cycle], Cycle, Settings], list[Alert]]

_BY_WINDOW: Mapping[Rule, _OneCycle] = {Rule.AS_AKM: akm.evaluate, Rule.AS_DESIGNED: designed.evaluate}


def evaluate(cycles: Sequence[Cycle], rule: Rule = Rule.CALIBRATED, settings: Settings = DEFAULTS) -> Evaluated:
    """Judge every cycle of one store by one rule.

    Args:
        cycles: all cycles of the store, oldest first; sets may change on the way.
        rule: which rule.
        settings: thresholds and the false-alarm rate.

    Returns:
        One entry a cycle. Cycles of different sets, or asked in different ways, never judge
        each other.
    """
    alerts: list[tuple[Alert, ...]] = [()] * len(cycles)
    judged = [False] * len(cycles)
    p: list[float | None] = [None] * len(cycles)
    for series in comparable(cycles):
        mine = [cycles[position] for position in series]
        found = calibrated.evaluate(mine, settings) if rule is Rule.CALIBRATED else _by_window(mine, rule, settings)
        for index, position in enumerate(series):
            alerts[position] = found.alerts[index]
            judged[position] = found.judged[index]
            p[position] = found.p[index] if found.p else None
    return Evaluated(rule, tuple(alerts), tuple(judged), tuple(p))


def _by_window(cycles: Sequence[Cycle], rule: Rule, settings: Settings) -> Evaluated:
    judge = _BY_WINDOW[rule]
    alerts = tuple(
        tuple(judge(cycles[max(0, position - settings.window) : position], cycle, settings))
        for position, cycle in enumerate(cycles)
    )
    return Evaluated(rule, alerts, tuple(position >= settings.window for position in range(len(cycles))))
