"""Arms, plan and price: how long a person waits, how near a small pilot's price comes."""

import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from akm_harbor.resources import sample_jobs
from akm_harbor.study.cost import actual_cost, predict, usage_of_pilot
from akm_harbor.study.declaration import find_study
from akm_harbor.trials import collect

CLI = [sys.executable, "-c", "from akm_harbor.cli import main; main()"]


def seconds(*arguments: str) -> float:
    """Wall time of one command."""
    started = time.perf_counter()
    subprocess.run([*CLI, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def off_by() -> float:
    """Relative error of the price that one attempt on half of the demo's tasks predicts for all of it."""
    study = find_study("demo")
    with tempfile.TemporaryDirectory() as folder:
        job = next(path for path in sample_jobs().iterdir() if path.is_dir())
        place = Path(folder) / job.name
        place.mkdir()
        seen = set()
        for path in sorted(job.iterdir()):
            if path.is_file():
                shutil.copy(path, place)
                continue
            arm = json.loads((path / "config.json").read_text())["agent"]["kwargs"]["arm"]
            key = (arm, path.name.partition("__")[0])
            if key[1].startswith(("drillbit", "inkwell--new")) and key not in seen:
                seen.add(key)
                shutil.copytree(path, place / path.name)
        collect([place], Path(folder) / "pilot")
        collect([job], Path(folder) / "all")
        usage, _ = usage_of_pilot(Path(folder) / "pilot", [arm.name for arm in study.arms], study.model)
        return predict(study, usage, "pilot").total / actual_cost(study, Path(folder) / "all").dollars - 1


def main() -> int:
    """Measure all; 1 if one missed its target."""
    rows = [
        ("arms render --check, 8 files", seconds("arms", "render", "--check"), 5.0, "s"),
        ("plan, both tables", seconds("plan"), 5.0, "s"),
        ("price from half of the demo, off by", abs(100 * off_by()), 15.0, "%"),
    ]
    for name, measured, target, unit in rows:
        ok = "ok" if measured <= target else "MISSED"
        print(f"{name:<52} {measured:>20.1f} {unit} {f'<= {target:g} {unit}':>14} {ok}")
    return 0 if all(measured <= target for _, measured, target, _ in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
