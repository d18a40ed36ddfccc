import numpy as np
import pandas as pd
import pytest

from akm_harbor.ab.policies import POLICIES, errored, has_reward, policy, scores
from akm_harbor.errors import UsageError

ATTEMPTS = pd.DataFrame(
    [
        ("scored", 1.0),
        ("scored", 0.0),
        ("scored_with_error", 1.0),
        ("scored_with_error", 0.0),
        ("unscored", None),
        ("cancelled", None),
        ("unfinished", None),
        ("unreadable", None),
        ("unreadable", 1.0),  # a reward beside a result that cannot be trusted is none
    ],
    columns=["status", "reward"],
)
OUT = np.nan
EXPECTED = {
    "keep-reward": [1, 0, 1, 0, OUT, OUT, OUT, OUT, OUT],
    "missing-fails": [1, 0, 1, 0, 0, 0, 0, 0, 0],
    "fail": [1, 0, 0, 0, 0, 0, 0, 0, 0],
    "exclude": [1, 0, OUT, OUT, OUT, OUT, OUT, OUT, OUT],
    "pass": [1, 0, 1, 1, 1, 1, 1, 1, 1],
}


@pytest.mark.parametrize("rule", POLICIES, ids=lambda p: p.name)
def test_scores(rule):
    np.testing.assert_array_equal(scores(ATTEMPTS, rule), EXPECTED[rule.name])


def test_what_counts_as_an_error():
    assert list(has_reward(ATTEMPTS)) == [True] * 4 + [False] * 5
    assert list(errored(ATTEMPTS)) == [False, False] + [True] * 7


def test_scores_leave_the_rewards_alone():
    before = ATTEMPTS.copy()
    scores(ATTEMPTS, policy("fail"))
    pd.testing.assert_frame_equal(ATTEMPTS, before)


def test_unknown_policy():
    with pytest.raises(UsageError, match="There are keep-reward"):
        policy("zero")
