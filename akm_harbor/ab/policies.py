"""How an attempt that went wrong is counted: policies as values."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from akm_harbor.errors import UsageError

NOT_ATTEMPTS = ("install_only", "superseded")
"""Statuses of rows that are no attempt at the task: an install check, or a trial that was run again."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule that gives every attempt a score, or leaves it out.

    Attributes:
        name: what one types.
        title: what one reads.
        scored_with_error: what becomes of an attempt with both an exception and a valid reward.
        unscored: what becomes of an attempt without a valid reward.
    """

    name: str
    title: str
    scored_with_error: Literal["keep", "fail", "pass", "drop"]
    unscored: Literal["fail", "pass", "drop"]


KEEP_REWARD = Policy("keep-reward", "the verifier's reward stands; without one, left out", "keep", "drop")
ERRORS_FAIL = Policy("fail", "errors are failures", "fail", "fail")
ERRORS_EXCLUDED = Policy("exclude", "errors are left out", "drop", "drop")
ERRORS_PASS = Policy("pass", "errors are successes", "pass", "pass")
MISSING_FAILS = Policy("missing-fails", "the verifier's reward stands; without one, failure", "keep", "fail")
POLICIES = (KEEP_REWARD, MISSING_FAILS, ERRORS_FAIL, ERRORS_EXCLUDED, ERRORS_PASS)
"""`missing-fails` is what Terminal-Bench's leaderboard and Harbor before 0.26 print."""


def policy(name: str) -> Policy:
    """Find a policy by name.

    Raises:
        UsageError: no such policy.
    """
    for candidate in POLICIES:
        if candidate.name == name:
            return candidate
    raise UsageError(f"no error policy {name!r}", hint=f"There are {', '.join(p.name for p in POLICIES)}.")


def has_reward(attempts: pd.DataFrame) -> "pd.Series[bool]":
    """Attempts whose reward the verifier gave and that is a number."""
    return attempts["status"].isin(["scored", "scored_with_error"]) & attempts["reward"].notna()


def errored(attempts: pd.DataFrame) -> "pd.Series[bool]":
    """Attempts that did not end as planned: an exception, or no valid reward."""
    return ~has_reward(attempts) | (attempts["status"] == "scored_with_error")


_FILL = {"fail": 0.0, "pass": 1.0, "drop": np.nan}


def scores(attempts: pd.DataFrame, rule: Policy) -> "pd.Series[float]":
    """Each attempt's score under a policy; NaN where the policy leaves it out."""
    score = attempts["reward"].astype("float64")
    known, bad = has_reward(attempts), errored(attempts)
    if rule.scored_with_error != "keep":
        score = score.mask(known & bad, _FILL[rule.scored_with_error])
    return score.mask(~known, _FILL[rule.unscored])
