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


_AS_DECLARED = frozenset({"placebo-as-declared", "bundle-empty", "index-empty"})


def as_declared(reasons: Iterable[str]) -> bool:
    """Whether nothing was missing but the notes of a bundle that the arm itself wanted empty."""
    given = set(reasons)
    return "placebo-as-declared" in given and given <= _AS_DECLARED


def delivery(arm: Arm) -> Delivery:
    """Count the verdicts of one arm's attempts.

    An empty bundle that the arm asked for is what that arm is about: it counts as delivered, under its
    own reason code and in `declared`.
    """
    reasons = [reasons_of(r) for r in arm.attempts["delivery_reasons"]]
    given = [verdict_of(v) for v in arm.attempts["treatment_delivered"]]
    declared = [v is False and as_declared(r) for v, r in zip(given, reasons, strict=True)]
    verdicts = [v or d if v is not None else None for v, d in zip(given, declared, strict=True)]
    codes: dict[bool | None, Counter[str]] = {True: Counter(), False: Counter(), None: Counter()}
    for verdict, why in zip(verdicts, reasons, strict=True):
        codes[verdict].update(why)
    return Delivery(
        arm.name,
        verdicts.count(True),
        verdicts.count(False),
        verdicts.count(None),
        dict(codes[False].most_common()),
        dict(codes[True].most_common()),
        sum(declared),
    )
