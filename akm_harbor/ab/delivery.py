"""How often the treatment reached the agent, from the verdicts in the trials table."""

from collections import Counter
from collections.abc import Iterable

import pandas as pd

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.result import Delivery


def reasons_of(value: object) -> tuple[str, ...]:
    """The reason codes of one row, however the reader left them."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return ()
    return tuple(str(reason) for reason in value)


def verdict_of(value: object) -> bool | None:
    """One row's `treatment_delivered` as a plain value."""
    return None if value is None or pd.isna(value) else bool(value)  # type: ignore[call-overload]


def delivery(arm: Arm) -> Delivery:
    """Count the verdicts of one arm's attempts."""
    verdicts = [verdict_of(v) for v in arm.attempts["treatment_delivered"]]
    codes: dict[bool | None, Counter[str]] = {True: Counter(), False: Counter(), None: Counter()}
    for verdict, reasons in zip(verdicts, arm.attempts["delivery_reasons"], strict=True):
        codes[verdict].update(reasons_of(reasons))
    return Delivery(
        arm.name,
        verdicts.count(True),
        verdicts.count(False),
        verdicts.count(None),
        dict(codes[False].most_common()),
        dict(codes[True].most_common()),
    )
