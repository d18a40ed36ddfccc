#!/usr/bin/env python3
"""Make the recorded trials that ship with the package from a finished demo job.

    akm-harbor demo -o out/demo
    python scripts/record_demo.py out/demo/jobs/demo-20260101-120000

Keeps what `akm-harbor collect` reads, drops opencode's own database and snapshots, and
replaces this machine's paths and names.
"""

import json
import os
import shutil
import socket
import sys
from pathlib import Path

import akm_harbor
from akm_harbor.resources import data_root, sample_jobs

JOB_FILES = ("config.json", "lock.json", "result.json")
TRIAL_FILES = (
    *JOB_FILES,
    "exception.txt",
    "agent/opencode.txt",
    "agent/trajectory.json",
    "verifier/reward.json",
    "verifier/details.json",
    "verifier/test-stdout.txt",
)
EVIDENCE = "agent/akm"
JOB_NAME = "demo"


def replacements(job: Path) -> list[tuple[str, str]]:
    """This machine's paths and names, longest first."""
    found = {
        str(job.resolve().parent): "/srv/demo/jobs",
        str(job.resolve().parent.parent): "/srv/demo",
        str(data_root()): "/srv/akm-harbor",
        str(Path(akm_harbor.__file__).parent.parent): "/srv/akm-harbor",
        str(Path.home()): "/home/demo",
        sys.prefix: "/srv/venv",
        os.environ.get("AKM_HARBOR_CACHE", ""): "/srv/cache",
        socket.gethostname(): "demo-host",
        job.name: JOB_NAME,
    }
    found.pop("/root", None)  # the container's home has that name too
    return sorted(((old, new) for old, new in found.items() if len(old) > 3), key=lambda pair: -len(pair[0]))


def copy(source: Path, target: Path, swap: list[tuple[str, str]]) -> None:
    """Copy a text file with this machine's paths replaced; JSON must stay JSON."""
    text = source.read_text("utf-8")
    for old, new in swap:
        text = text.replace(old, new)
    if target.suffix == ".json":
        json.loads(text)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, "utf-8")


def main(job: Path) -> None:
    """Record one job."""
    swap = replacements(job)
    target = sample_jobs() / JOB_NAME
    shutil.rmtree(target, ignore_errors=True)
    for name in JOB_FILES:
        copy(job / name, target / name, swap)
    for trial in sorted(path.parent for path in job.glob("*/result.json")):
        for name in TRIAL_FILES:
            if (trial / name).is_file():
                copy(trial / name, target / trial.name / name, swap)
        for path in sorted((trial / EVIDENCE).rglob("*")):
            relative = path.relative_to(trial)
            if not path.is_file() or path.is_symlink():
                continue
            # As it is: capture.json lists its size and digest, and it was made inside the container.
            found = [old for old, _ in swap if old.encode() in path.read_bytes()]
            if found:
                raise SystemExit(f"{path} holds {found[0]!r}")
            (target / trial.name / relative).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target / trial.name / relative)
    size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    print(f"{target}: {len(list(target.glob('*/result.json')))} trials, {size / 1e6:.1f} MB")  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
