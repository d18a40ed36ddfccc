"""Self-check, export, verify and calibration of 89 tasks x 5 attempts x 2 arms. Prints name, measured, target, ok."""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from akm_harbor.ab.archive_verify import verify
from akm_harbor.ab.calibration_report import report
from akm_harbor.ab.export import export
from akm_harbor.ab.self_check import self_check

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from tests.ab.support import dataset, matrix


def timed(name: str, target: float, run: Callable[[], Any]) -> tuple[Any, bool]:
    began = time.perf_counter()
    found = run()
    seconds = time.perf_counter() - began
    ok = seconds <= target
    print(f"{name:<52} {seconds:>20.1f} s {f'<= {target:g} s':>14} {'ok' if ok else 'MISSED'}")
    return found, ok


def main() -> int:
    """Run everything; the exit code says whether all targets were met."""
    rng = np.random.default_rng(3)
    rates = rng.beta(0.9, 0.5, 89)
    arms = [[[float(v) for v in rng.random(5) < p] for p in rates] for _ in range(2)]
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        data = dataset(work, [*matrix("control", arms[0]), *matrix("akm", arms[1])])
        archive = work / "out.zip"
        checked, one = timed("self-check, 10,000 draws, 89 x 5", 10, lambda: self_check(data, "control", "akm"))
        _, two = timed("export, 89 x 5 x 2", 30, lambda: export([data], "control", "akm", archive))
        verified, three = timed("verify, 89 x 5 x 2", 20, lambda: verify(archive))
        _, four = timed("calibrate, 89 x 5 x 2", 10, lambda: report([data], work / "calibration"))
    worst = max(m.interval_wrong.value for m in checked.measured)
    print(f"{'worst error rate of the interval, equal arms':<52} {worst:>21.2%} {'<= 5.5%':>14} ", end="")
    print("ok" if worst <= 0.055 else "MISSED")
    agrees = verified.outcome == "agrees"
    print(f"{'an untouched archive':<52} {verified.outcome:>22} {'agrees':>14} {'ok' if agrees else 'MISSED'}")
    return 0 if one and two and three and four and agrees and worst <= 0.055 else 1


if __name__ == "__main__":
    sys.exit(main())
