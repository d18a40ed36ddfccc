"""Tiny tasks, and Harbor's command line on them."""

import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

# Another Harbor than the installed one can be put to the test: its venv needs this package, or PYTHONPATH.
HARBOR = Path(os.environ.get("AKM_HARBOR_TEST_HARBOR") or Path(sys.executable).parent / "harbor")
PASS = "echo 1 > /logs/verifier/reward.txt"
SOLVED = "[ -e /app/solved ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"


def make_task(
    folder: Path,
    *,
    dockerfile: str = "FROM debian:bookworm\nWORKDIR /app\n",
    files: dict[str, str] | None = None,
    solve: str = "touch /app/solved",
    test: str = SOLVED,
    toml: str = "",
) -> Path:
    """A Harbor task; `files` lie beside the Dockerfile, `toml` is added to task.toml."""
    for part in ("environment", "solution", "tests"):
        (folder / part).mkdir(parents=True)
    (folder / "task.toml").write_text(f'schema_version = "1.4"\n{toml}\n')
    (folder / "instruction.md").write_text("Solve it.\n")
    (folder / "environment" / "Dockerfile").write_text(dockerfile)
    for name, text in (files or {}).items():
        path = folder / "environment" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "solution" / "solve.sh").write_text(f"#!/bin/bash\n{solve}\n")
    (folder / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n")
    return folder


def harbor_environment() -> dict[str, str]:
    return {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "COLUMNS": "200"}


def harbor_command(tasks: Path, jobs: Path, cache: Path, *extra: str) -> list[str]:
    return [
        *(str(HARBOR), "run", "-p", str(tasks), "-a", "oracle", "-e", "akm_harbor:SandboxEnvironment"),
        *("--ek", f"cache_dir={cache}", "-o", str(jobs), "--job-name", "job", "-n", "2", *extra),
    ]


def results(job: Path) -> dict[str, SimpleNamespace]:
    """What each task of a job got: `reward` (None without one) and `exception` (its type or None)."""
    found = {}
    for path in sorted(job.glob("*/result.json")):
        result = json.loads(path.read_text())
        rewards = (result["verifier_result"] or {}).get("rewards") or {}
        found[path.parent.name.rpartition("__")[0]] = SimpleNamespace(
            reward=rewards.get("reward"),
            exception=(result["exception_info"] or {}).get("exception_type"),
            folder=path.parent,
        )
    return found
