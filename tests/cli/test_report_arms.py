"""`report arms` as a person meets it: real processes, their output and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

RECORDED = Path(__file__).parents[1] / "data" / "ab" / "eight"


def run(*arguments: object) -> "subprocess.CompletedProcess[str]":
    code = "from akm_harbor.cli import main; main()"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code, "report", "arms", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


def test_the_plan_of_the_eight_arms(tmp_path: Path) -> None:
    done = run(RECORDED, "--planned", "-o", tmp_path)
    assert done.returncode == 0, done.stderr
    assert "8 arms" in done.stdout
    found = json.loads((tmp_path / "arms.json").read_text())
    assert [(c["arm"], c["versus"]) for c in found["contrasts"]] == [
        ("akm", "control"),
        ("akm", "empty-bundle"),
        ("akm", "irrelevant-bundle"),
        ("tools-only", "control"),
        ("injection-only", "control"),
        ("akm-write-gate", "akm"),
        ("oracle-context", "akm"),
    ]
    assert found["contrasts"][0]["question"] == "Does the treatment help?"
    assert [e["name"] for e in found["factorial"]][:3] == ["injection", "tools", "interaction"]
    assert (tmp_path / "arms.html").is_file()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--contrast", "akm"], "ARM:VERSUS"),
        (["--contrast", "akm:cntrol"], "no arm 'cntrol'"),
        (["--planned", "-b", "control"], "--planned names its contrasts"),
        (["--planned", "-a", "akm", "-a", "injection-only"], "none of the planned contrasts"),
        (["--contrast", "akm:control", "-b", "control"], "exclude each other"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(tmp_path: Path, given: list[str], message: str) -> None:
    done = run(RECORDED, *given, "-o", tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
