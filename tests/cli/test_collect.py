"""The collect command as a person meets it: real processes, their output and exit codes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from akm_harbor.tables import read_frame
from tests.trials.conftest import RECORDINGS, Jobs


def run(*arguments: object, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
    code = "from akm_harbor.cli import main; main()"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    command = [sys.executable, "-c", code, "collect", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, env=env)


@pytest.fixture
def jobs(tmp_path: Path) -> Jobs:
    return Jobs(tmp_path / "jobs")


def test_what_it_says(tmp_path: Path) -> None:
    done = run(RECORDINGS / "harbor" / "v0.22-opencode-akm-mixed", "-o", tmp_path / "data")
    assert done.returncode == 0, done.stderr
    assert "10 trials of 1 jobs (10 read, 0 unchanged)" in done.stdout
    assert "status: scored 6, scored_with_error 4" in done.stdout
    assert "arm: akm-opencode 10" in done.stdout


def test_strict_fails_on_any_problem_but_keeps_the_dataset(jobs: Jobs, tmp_path: Path) -> None:
    jobs.trial("one", raw=b"{")
    data = tmp_path / "data"
    lenient = run(jobs.root, "-o", data)
    assert lenient.returncode == 0
    assert "problems: invalid-json 1" in lenient.stderr
    strict = run(jobs.root, "-o", data, "--strict", "--fresh")
    assert strict.returncode == 1
    assert read_frame(data, "trials").status.tolist() == ["unreadable"]


def bad_inputs(tmp_path: Path) -> dict[str, tuple[list[object], str, int]]:
    (tmp_path / "empty").mkdir()
    legacy = tmp_path / "legacy"
    legacy.mkdir()
    (legacy / "results.json").write_text(json.dumps({"results": []}))
    (legacy / "run_metadata.json").write_text("{}")
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    good = RECORDINGS / "harbor" / "v0.22-nop-3"
    out = ["-o", tmp_path / "data"]
    return {
        "missing": ([tmp_path / "none", *out], "none: no such file or folder", 1),
        "not a job": ([tmp_path / "empty", *out], "not a Harbor job directory", 1),
        "legacy": ([legacy, *out], "a legacy terminal-bench run", 1),
        "a task": ([RECORDINGS / "p0-tasks" / "count-rows", *out], "a task, not a job directory", 1),
        "foreign output": ([good, "-o", precious], "already exists and is not a dataset", 1),
        "output below a file": ([good, "-o", precious / "file" / "x"], "cannot be written", 1),
        "arm-by": ([good, *out, "--arm-by", "colour"], "unknown --arm-by 'colour'", 2),
        "tasks": ([good, *out, "--tasks", tmp_path / "empty"], "holds no Harbor task", 1),
        "no output": ([good], "Missing option", 2),
    }


@pytest.mark.parametrize(
    "case",
    [
        "missing",
        "not a job",
        "legacy",
        "a task",
        "foreign output",
        "output below a file",
        "arm-by",
        "tasks",
        "no output",
    ],
)
def test_bad_input_is_one_message_with_its_exit_code(tmp_path: Path, case: str) -> None:
    arguments, message, code = bad_inputs(tmp_path)[case]
    done = run(*arguments)
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_relative_paths_work_from_anywhere(jobs: Jobs) -> None:
    jobs.trial("one")
    assert run(".", "-o", "../data", cwd=jobs.root / "one").returncode == 0
    assert read_frame(jobs.root / "data", "trials").trial_path.tolist() == ["one/task-a__AAAAAAA"]
