"""What a verifier leaves behind: details, and a reward of 0 or 1 written in one step.

Exit codes of a check, of a shell verifier and of pytest mean the same: 0 the answer is right,
1 it is wrong, anything else the verifier itself is broken. A broken verifier writes no reward,
so that Harbor reports an error instead of a zero nobody earned.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

RIGHT = 0
WRONG = 1
BROKEN = 2

DETAILS_ENV = "AKM_VERIFY_DETAILS"
LOGS_ENV = "AKM_VERIFY_LOGS"


class BrokenVerifierError(Exception):
    """The verifier cannot tell whether the answer is right."""


def logs_dir() -> Path:
    """Where Harbor collects what a verifier writes."""
    return Path(os.environ.get(LOGS_ENV, "/logs/verifier"))


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of it.

    A link or a file that the agent planted under that name is replaced, not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, atomically; text that is not valid Unicode is escaped."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n")


def clear_reward() -> None:
    """Remove reward files that were there before the verifier ran."""
    for name in ("reward.json", "reward.txt"):
        path = logs_dir() / name
        if path.is_symlink() or path.exists():
            path.unlink()


def write_reward(*, right: bool) -> None:
    """Write the reward: one key, 0 or 1."""
    write_atomic(logs_dir() / "reward.json", json.dumps({"reward": int(right)}) + "\n")


def note(check: str, complaints: list[str]) -> int:
    """Print what a check found, keep it for details.json, and give its exit code."""
    for line in complaints or ["ok"]:
        print(f"{check}: {line}", flush=True)  # noqa: T201  (goes to test-stdout.txt)
    target = os.environ.get(DETAILS_ENV)
    if target:
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"check": check, "ok": not complaints, "complaints": complaints}) + "\n")
    return WRONG if complaints else RIGHT


def read_notes(path: Path) -> list[dict[str, Any]]:
    """The checks noted so far, in order."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]
