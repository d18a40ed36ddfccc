"""What an estimator returns: a number that can stand alone, or the reason why there is none."""

import math
import sys
from dataclasses import dataclass

from akm_harbor.errors import UsageError

SMALLEST_P = sys.float_info.min
_MOST_COVERAGE = 1 - 1e-9


def check_coverage(level: float) -> None:
    """Check that a reader's choice of an interval's coverage can be meant.

    Raises:
        UsageError: below one half, or so near to 1 that a normal quantile is no finite number.
    """
    if not 0.5 <= level <= _MOST_COVERAGE:
        raise UsageError(f"a coverage of {level!r} makes no sense", hint="Use a level like 0.95.")


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval.

    Attributes:
        low: its lower limit, in the unit of the estimate.
        high: its upper limit.
        level: its nominal coverage, e.g. 0.95.
    """

    low: float
    high: float
    level: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low <= self.high):
            raise ValueError(f"not an interval: [{self.low}, {self.high}]")
        if not 0 < self.level < 1:
            raise ValueError(f"not a coverage: {self.level}")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its uncertainty and its meaning.

    An estimate never holds NaN, infinity, p = 0 or a standard error of 0: an estimator that
    arrives there returns `NotEstimable`.

    Attributes:
        value: the estimate.
        method: how it was made, for a reader of the report.
        estimand: what it is a number about.
        n: how many independent units (tasks, unless the method says otherwise).
        interval: its interval, where the method gives one.
        se: its standard error, where the method gives one.
        df: degrees of freedom of the reference distribution, where it has any.
        statistic: the test statistic, where the method is a test.
        p: the p value, where the method is a test; two-sided unless the method says otherwise.
        notes: what a careful reader must know.
    """

    value: float
    method: str
    estimand: str
    n: int
    interval: Interval | None = None
    se: float | None = None
    df: float | None = None
    statistic: float | None = None
    p: float | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, number in (("value", self.value), ("df", self.df), ("statistic", self.statistic)):
            if number is not None and not math.isfinite(number):
                raise ValueError(f"{self.method}: {name} is {number}")
        if self.se is not None and not (math.isfinite(self.se) and self.se > 0):
            raise ValueError(f"{self.method}: standard error is {self.se}")
        if self.p is not None and not 0 < self.p <= 1:
            raise ValueError(f"{self.method}: p is {self.p}")


@dataclass(frozen=True, slots=True)
class NotEstimable:
    """Why there is no number, or no uncertainty beside it.

    Attributes:
        reason: a stable short code, e.g. `one-task`, `all-tied`, `constant-difference`.
        detail: the reason as a sentence.
        method: what was tried.
        estimand: what it would have been a number about.
        n: how many units there were.
        value: the point estimate, if there is one without an uncertainty.
    """

    reason: str
    detail: str
    method: str
    estimand: str
    n: int
    value: float | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.method}: value is {self.value}")


Result = Estimate | NotEstimable


def clamp_p(p: float) -> float:
    """Keep a p value in (0, 1]: a p that underflows is tiny, not zero."""
    return min(max(float(p), SMALLEST_P), 1.0)
