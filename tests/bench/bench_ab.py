"""Does the headline hold what it promises: coverage, error rate, speed. Prints name, measured, target, ok.

The last lines time the commands from Parquet to HTML on a made dataset of the size of the public Terminal-Bench 2
submissions; a dataset collected from those, or any other, is timed as well when it is named on the command line.
"""

import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

from akm_harbor.stats.paired import paired_difference
from akm_harbor.stats.results import Estimate
from akm_harbor.stats.signflip import sign_flip_attempts
from akm_harbor.tables import PROBLEMS, read_table, replace_dataset
from akm_harbor.trials.columns import TRIALS

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


ARMS, TASKS, ATTEMPTS = 75, 89, 5
"""The public submissions: 32,803 trials."""


def submissions(folder: Path) -> Path:
    """A dataset of that size, rewards by the variances above, one attempt in eight with an error."""
    rng = np.random.default_rng(7)
    p, _ = rates(rng, (ARMS, TASKS), 0.8)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    rows: list[dict[str, Any]] = []
    for arm in range(ARMS):
        for task in range(TASKS):
            for attempt, (luck, bad) in enumerate(rng.random((ATTEMPTS, 2))):
                late = bad < 0.125
                rows.append(
                    {
                        "job_name": f"job-{arm}",
                        "trial_id": f"{arm}-{task}-{attempt}",
                        "trial_name": f"task-{task}__{attempt:07d}",
                        "trial_path": f"job-{arm}/task-{task}__{attempt:07d}",
                        "task_name": f"task-{task}",
                        "task_checksum": f"sum-{task}",
                        "arm": f"arm-{arm:02d}",
                        "agent_name": "agent",
                        "model_name": "some/model",
                        "status": "scored_with_error" if late else "scored",
                        "exception_type": "AgentTimeoutError" if late else None,
                        "exception_cause": "budget" if late else None,
                        "reward": float(luck < p[arm, task]),
                        "n_input_tokens": int(1e5 + 1e4 * bad),
                        "cost_usd": 0.5 + bad,
                        "started_at": start + timedelta(minutes=attempt),
                        "finished_at": start + timedelta(minutes=attempt + 9),
                        "agent_seconds": 300 + 100 * bad,
                    }
                )
    with replace_dataset(folder / "made") as writer:
        writer.write(TRIALS, TRIALS.from_rows(rows))
        writer.write(PROBLEMS, PROBLEMS.from_rows([]))
        writer.write_manifest({"package": "akm_harbor"})
    return folder / "made"


def command(*words: str | Path) -> float:
    """Seconds that one command takes, the interpreter's start included; a fatal difference is an answer too."""
    began = time.perf_counter()
    program = Path(sys.executable).with_name("akm-harbor")
    done = subprocess.run([str(w) for w in (program, *words)], capture_output=True, text=True, check=False)
    if done.returncode not in {0, 3, 4}:
        raise SystemExit(f"akm-harbor {' '.join(map(str, words))}: {done.stderr}")
    return time.perf_counter() - began


def pages(dataset: Path, name: str, out: Path) -> list[bool]:
    """Time both commands on one dataset."""
    trials = read_table(dataset, TRIALS, ["arm"])["arm"]
    arms = sorted(trials.unique().to_pylist())
    fine = []
    size = f"{len(arms)} arms, {len(trials):,} trials"
    first, second = (str(v["values"]) for v in pc.value_counts(trials).to_pylist()[:2])
    took = command("report", "ab", dataset, "-b", first, "-t", second, "--strip-prefix", "-o", out)
    fine.append(line(f"{name}: two arms, Parquet to HTML", f"{took:.1f} s ({size})", "<= 20 s", ok=took <= 20))
    took = command("report", "arms", dataset, "-b", first, "--strip-prefix", "-o", out)
    fine.append(line(f"{name}: all ranked, every policy", f"{took:.1f} s ({size})", "<= 30 s", ok=took <= 30))
    return fine


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
    with tempfile.TemporaryDirectory(prefix="akm-harbor-bench-") as folder:
        fine += pages(submissions(Path(folder)), "made", Path(folder) / "out")
        for given in map(Path, sys.argv[1:]):
            fine += pages(given, given.name, Path(folder) / "out")
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
