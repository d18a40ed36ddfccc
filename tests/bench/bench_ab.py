"""Does the headline hold what it promises: coverage, error rate, speed. Prints name, measured, target, ok."""

import sys
import time

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.paired import paired_difference
from akm_harbor.stats.results import Estimate
from akm_harbor.stats.signflip import sign_flip_attempts

BETWEEN, WITHIN, DIFFERENCE = 0.125, 0.075, 0.0652
"""Variance of task rates, of attempts inside a task, and of the true difference between two arms on the
same model: medians over 72 public Terminal-Bench 2 submissions with at least five attempts a task."""
DESIGNS = ((19, 1), (19, 3), (46, 3), (89, 5))
RUNS = 40_000
CHECKED = 200


def beta_parameters() -> tuple[float, float]:
    """The Beta whose variance is BETWEEN and whose mean p(1-p) is WITHIN."""
    mean = (1 + np.sqrt(1 - 4 * (BETWEEN + WITHIN))) / 2
    size = mean * (1 - mean) / BETWEEN - 1
    return mean * size, (1 - mean) * size


def rates(rng: np.random.Generator, shape: tuple[int, int], correlation: float) -> tuple[NDArray[np.float64], ...]:
    """True task rates of two arms, correlated through a Gaussian copula."""
    first = rng.standard_normal(shape)
    second = correlation * first + np.sqrt(1 - correlation**2) * rng.standard_normal(shape)
    a, b = beta_parameters()
    grid = np.linspace(1e-6, 1 - 1e-6, 20_001)
    table = stats.beta.ppf(grid, a, b)
    return tuple(np.interp(stats.norm.cdf(z), grid, table) for z in (first, second))


def copula_for(rng: np.random.Generator) -> float:
    """The copula's correlation that gives the true differences the variance DIFFERENCE."""
    low, high = 0.0, 1.0
    for _ in range(12):
        middle = (low + high) / 2
        p, q = rates(np.random.default_rng(1), (200, 2_000), middle)
        low, high = (middle, high) if np.var(p - q) > DIFFERENCE else (low, middle)
    return (low + high) / 2


def simulate(
    rng: np.random.Generator, n: int, k: int, p: NDArray[np.float64], q: NDArray[np.float64]
) -> dict[str, float]:
    """Coverage of the true mean difference and rate of p < 0.05, for the headline's interval."""
    truth = 0.0 if p is q else float((q - p).mean())
    a, b = rng.binomial(k, p) / k, rng.binomial(k, q) / k
    d = b - a
    mean, se = d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(n)
    known = np.ptp(d, axis=1) > 1e-12
    half = stats.t.ppf(0.975, n - 1) * se
    covered = np.abs(mean - truth) <= half
    rejected = known & (np.abs(mean) > half)
    for i in range(CHECKED):  # the formula above is the product's
        found = paired_difference(a[i][:, None], b[i][:, None])
        if known[i] != isinstance(found, Estimate):
            raise AssertionError("the product disagrees on what is estimable")
        if isinstance(found, Estimate) and found.interval is not None:
            np.testing.assert_allclose(
                [found.interval.low, found.interval.high], [mean[i] - half[i], mean[i] + half[i]]
            )
    return {
        "coverage": float(covered[known].mean()),
        "rejected": float(rejected.mean()),
        "none": 1 - float(known.mean()),
    }


def line(name: str, measured: str, target: str, *, ok: bool) -> bool:
    print(f"{name:<52} {measured:>22} {target:>14} {'ok' if ok else 'MISSED'}")
    return ok


def main() -> int:
    """Run everything; the exit code says whether all targets were met."""
    rng = np.random.default_rng(20)
    correlation = copula_for(rng)
    fine = []
    for n, k in DESIGNS:
        p, q = rates(rng, (RUNS, n), correlation)
        same = simulate(rng, n, k, p, p)
        fine.append(
            line(f"type I, same rates, {n} x {k}", f"{same['rejected']:.2%}", "<= 5.5%", ok=same["rejected"] <= 0.055)
        )
        mixed = simulate(rng, n, k, p, q)
        fine.append(
            line(
                f"type I, tasks differ, {n} x {k}", f"{mixed['rejected']:.2%}", "<= 5.5%", ok=mixed["rejected"] <= 0.055
            )
        )
        fine.append(
            line(
                f"coverage, tasks differ, {n} x {k}",
                f"{mixed['coverage']:.2%}",
                "94-96%",
                ok=0.94 <= mixed["coverage"] <= 0.96,
            )
        )
        better = q + 0.5 * (1 - q) * (rng.random(q.shape) < 0.4)
        effect = simulate(rng, n, k, p, better)
        shown = f"{effect['coverage']:.2%} (power {effect['rejected']:.0%})"
        fine.append(
            line(f"coverage, treatment better, {n} x {k}", shown, "94-96%", ok=0.94 <= effect["coverage"] <= 0.96)
        )
    a, b = rng.integers(0, 2, (89, 5)), rng.integers(0, 2, (89, 5))
    times = []
    for _ in range(100):
        began = time.perf_counter()
        sign_flip_attempts(a, b)
        times.append(time.perf_counter() - began)
    best = 1000 * min(times)  # as timeit has it: the least disturbed run
    fine.append(line("exact sign-flip, 89 x 5", f"{best:.1f} ms", "<= 10 ms", ok=best <= 10))
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
