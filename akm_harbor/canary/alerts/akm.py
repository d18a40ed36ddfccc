"""The rule as akm 0.9.0 has it, in the same floating point and the same words."""

from collections.abc import Sequence
from itertools import pairwise

from akm_harbor.canary.alerts.model import DEFAULTS, Alert, Kind, Settings
from akm_harbor.canary.alerts.rows import Cycle, median
from akm_harbor.canary.jstext import fixed, number

_FLOOR_MIN = 3


def evaluate(history: Sequence[Cycle], current: Cycle, settings: Settings = DEFAULTS) -> list[Alert]:
    """Judge one cycle against earlier ones of its set, oldest first, itself not among them.

    The quirks are kept: 0.95 - 0.15 is a little below 0.8 in floating point, so a recall of
    exactly 0.8 does not fire; one drop after a flat window counts as a monotonic decline.
    """
    alerts: list[Alert] = []
    if current.violations >= _FLOOR_MIN:
        detail = (
            f"{current.violations} merge(s) failed the information floor this cycle "
            "(provenance shrank or specificity below threshold)"
        )
        alerts.append(Alert(Kind.MERGE_FLOOR, detail, {"mergeFloorViolations": current.violations}))
    window = history[-settings.window :]
    if len(window) < settings.window:
        return alerts
    alerts += [
        alert for judge in (_recall, _entropy, _shrink) if (alert := judge(window, current, settings)) is not None
    ]
    return alerts


def _recall(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    middle = median([cycle.recall for cycle in window])
    drop = settings.recall_drop
    if not current.recall <= middle - drop:
        return None
    detail = (
        f"mean canary recall {fixed(current.recall, 3)} dropped ≥{number(drop)} "
        f"below the {settings.window}-cycle median {fixed(middle, 3)}"
    )
    metrics = {"currentRecall": current.recall, "medianRecall": middle, "threshold": drop}
    return Alert(Kind.RECALL, detail, metrics)


def _entropy(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    series = [*(cycle.ratio for cycle in window), current.ratio]
    decline = series[0] - series[-1]
    if any(later > earlier for earlier, later in pairwise(series)) or not decline >= settings.entropy_drop:
        return None
    detail = (
        f"distinct-content ratio declined monotonically by {fixed(decline, 3)} (≥{number(settings.entropy_drop)}) "
        f"over {settings.window} cycles — store content is converging"
    )
    return Alert(Kind.ENTROPY, detail, {"windowStart": series[0], "current": series[-1], "decline": decline})


def _shrink(window: Sequence[Cycle], current: Cycle, settings: Settings) -> Alert | None:
    largest = max(cycle.total for cycle in window)
    before = window[0].over_generation
    if not (current.total < settings.shrink_to * largest and current.over_generation > before):
        return None
    detail = (
        f"store shrank >20% ({current.total} vs window max {largest}) "
        f"while over-generation count rose ({before} → {current.over_generation})"
    )
    metrics = {"storeTotal": current.total, "windowMax": largest, "overGeneration": current.over_generation}
    return Alert(Kind.SHRINK, detail, metrics)
