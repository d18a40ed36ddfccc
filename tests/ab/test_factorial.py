"""The 2 x 2 read-out."""

import pytest

from akm_harbor.ab.factorial import INJECTION_BY_TOOLS, factorial_effects
from akm_harbor.errors import UsageError


def test_effects_are_contrasts_of_task_means():
    both, first = {"a": [1, 1], "b": [1, 0], "c": [1, 1]}, {"a": [1, 0], "b": [0, 0], "c": [1, 0]}
    second, neither = {"a": [1, 0], "b": [1, 0], "c": [0, 0]}, {"a": [0, 0], "b": [0, 0], "d": [1, 1], "c": [0, 0]}
    got = {e.name: e for e in factorial_effects([both, first, second, neither], INJECTION_BY_TOOLS, 0.95)}
    # by task: a (1, .5, .5, 0), b (.5, 0, .5, 0), c (1, .5, 0, 0); d is not shared
    wanted = {
        "injection": (0.5 + 0.0 + 0.75) / 3,
        "tools": (0.5 + 0.5 + 0.25) / 3,
        "interaction": (0.0 + 0.0 + 0.5) / 3,
        "injection alone": (0.5 + 0.0 + 0.5) / 3,
        "tools alone": (0.5 + 0.5 + 0.0) / 3,
        "injection, given tools": (0.5 + 0.0 + 1.0) / 3,
        "tools, given injection": (0.5 + 0.5 + 0.5) / 3,
    }
    assert {name: e.result.value for name, e in got.items()} == pytest.approx(wanted)
    assert [e.kind for e in got.values()] == ["main", "main", "interaction", *["simple"] * 4]
    assert got["injection"].result.n == 3
    # three tasks: the smallest two-sided p of eight sign patterns
    assert got["tools"].sign_flip.p == pytest.approx(0.25)
    assert got["tools, given injection"].result.reason == "constant-difference"


def test_other_arms_name_the_factors():
    names = ("ab", "a", "b", "none")
    got = factorial_effects([{"t": [1]}] * 4, names, 0.95)
    assert got[0].name == "first factor (a)"
    with pytest.raises(UsageError, match="four different arms"):
        factorial_effects([{"t": [1]}] * 4, ("a", "a", "b", "none"), 0.95)
