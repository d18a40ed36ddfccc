"""The sign-flip randomisation test of a paired difference, exact for any number of tasks."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.attempts import TIED, Attempts, arrays
from akm_harbor.stats.paired import task_differences
from akm_harbor.stats.results import Estimate, NotEstimable, Result, clamp_p

_MAX_DENOMINATOR = 10_000
_MAX_STATES = 4_000_000
_ENUMERABLE = 16
_RESAMPLES = 99_999
ESTIMAND = "the sharp null: on no task does the arm matter"


def sign_flip(differences: Sequence[float | Fraction] | NDArray[np.float64], *, seed: int = 0) -> Result:
    """Two-sided sign-flip test of a zero mean difference.

    The distribution of the signed sum is convolved over integers, after scaling the differences by
    their common denominator; so it is exact for any number of tasks. Differences without a common
    denominator are enumerated up to 16 tasks, and sampled (99,999 flips, named in the method) beyond.

    Args:
        differences: one number a task, shape (tasks,); `Fraction`s are taken as they are.
        seed: used only where flips are sampled.

    Returns:
        An estimate whose value is the mean difference and whose `p` is the test's; not estimable
        when there is no task or all tasks tie (zero differences do not enter the test).
    """
    method = "exact sign-flip test"
    exact = [_rational(d) for d in differences]
    as_float = np.array([float(d) for d in differences], dtype=np.float64)
    n = as_float.size
    if n == 0:
        return NotEstimable("no-task", "The arms share no task.", method, ESTIMAND, 0)
    value = float(as_float.mean())
    moved = int((np.abs(as_float) > TIED).sum())
    if moved == 0:
        return NotEstimable("all-tied", "The arms tie on every task.", method, ESTIMAND, n, 0.0)
    smallest = 2.0 ** (1 - moved)
    notes = [f"{moved} of {n} tasks differ; the smallest p this test can reach is {smallest:.3g}."]
    if moved <= 5:
        notes.append("With five differing tasks or fewer no outcome reaches 0.05.")
    integers = _common_integers([d for d in exact if d is not None]) if None not in exact else None
    if integers is not None:
        p = _convolved(integers)
    elif moved <= _ENUMERABLE:
        p = _enumerated(as_float[np.abs(as_float) > TIED])
    else:
        method = f"sampled sign-flip test ({_RESAMPLES:,} flips)"
        p = _sampled(as_float[np.abs(as_float) > TIED], seed)
        notes.append("The differences have no small common denominator, so flips were sampled.")
    return Estimate(value, method, ESTIMAND, n, p=clamp_p(p), notes=tuple(notes))


def sign_flip_attempts(baseline: Attempts, treatment: Attempts, *, seed: int = 0) -> Result:
    """`sign_flip` on task means kept as exact fractions, so that unequal k stays exact."""
    if len(baseline) != len(treatment):
        task_differences(baseline, treatment)  # raises with the counts
    means = [[_mean(task) for task in arrays(arm)] for arm in (baseline, treatment)]
    pairs = list(zip(*means, strict=True))
    if all(a is not None and b is not None for a, b in pairs):
        return sign_flip([b - a for a, b in pairs if a is not None and b is not None], seed=seed)
    return sign_flip(task_differences(baseline, treatment), seed=seed)


def _rational(number: float | Fraction) -> Fraction | None:
    """The simple fraction a float stands for, or None."""
    if isinstance(number, Fraction):
        return number
    fraction = Fraction(float(number)).limit_denominator(_MAX_DENOMINATOR)
    return fraction if abs(float(fraction) - float(number)) <= TIED else None


def _mean(values: NDArray[np.float64]) -> Fraction | None:
    if (values == np.rint(values)).all():  # rewards of 0 and 1, nearly always
        return Fraction(int(values.sum()), values.size)
    fractions = [_rational(v) for v in values]
    known = [f for f in fractions if f is not None]
    return sum(known, Fraction(0)) / len(known) if len(known) == len(fractions) else None


def _common_integers(fractions: list[Fraction]) -> list[int] | None:
    """Scale by the least common denominator; None if the convolution would be too large."""
    scale = math.lcm(*(f.denominator for f in fractions))
    integers = [int(f * scale) for f in fractions if f]
    common = math.gcd(*integers)
    return [i // common for i in integers] if 2 * sum(map(abs, integers)) // common <= _MAX_STATES else None


def _convolved(integers: list[int]) -> float:
    """P(|signed sum| >= |observed sum|) by convolving one task after another."""
    reach = sum(abs(i) for i in integers)
    distribution = np.zeros(2 * reach + 1)
    distribution[reach] = 1.0
    done = 0
    for step in (abs(i) for i in integers):
        low, high = reach - done, reach + done + 1
        current = distribution[low:high] / 2
        distribution[low:high] = 0.0
        distribution[low - step : high - step] += current
        distribution[low + step : high + step] += current
        done += step
    observed = abs(sum(integers))
    if observed == 0:
        return 1.0
    return float(2 * distribution[reach + observed :].sum())


def _enumerated(differences: NDArray[np.float64]) -> float:
    test = stats.permutation_test(
        (differences,), np.mean, permutation_type="samples", n_resamples=np.inf, vectorized=True
    )
    return float(test.pvalue)


def _sampled(differences: NDArray[np.float64], seed: int) -> float:
    """Monte-Carlo p with the observed outcome counted in, so that it is never zero."""
    rng = np.random.default_rng(seed)
    observed = abs(differences.sum()) - TIED
    reached = 0
    for start in range(0, _RESAMPLES, 10_000):
        size = min(10_000, _RESAMPLES - start)
        signs = rng.integers(0, 2, size=(size, differences.size)) * 2 - 1
        reached += int((np.abs(signs @ differences) >= observed).sum())
    return (reached + 1) / (_RESAMPLES + 1)
