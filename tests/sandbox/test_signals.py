"""Harbor interrupted, terminated or killed in the middle of a trial: nothing may be left."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sandbox.support import harbor_command, harbor_environment, make_task, results

pytestmark = pytest.mark.sandbox


Start = Callable[..., tuple["subprocess.Popen[str]", Path]]


@pytest.fixture
def start_job(tmp_path: Path, cache: Path) -> Iterator[Start]:
    """Starts a job whose solution never ends; kills it at the end of the test if it still runs."""
    started: list[subprocess.Popen[str]] = []

    def start(**task: str) -> tuple["subprocess.Popen[str]", Path]:
        solve = "touch /logs/agent/started; sleep 1000 & sleep 1000"
        make_task(tmp_path / "tasks" / "endless", **{"solve": solve, **task})  # type: ignore[arg-type]
        process = subprocess.Popen(
            # A shell starts its background jobs with SIGINT ignored, and children inherit that.
            ["env", "--default-signal=INT", *harbor_command(tmp_path / "tasks", tmp_path / "jobs", cache)],
            env=harbor_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        started.append(process)
        return process, tmp_path / "jobs" / "job"

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


def wait_for(happened: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def solving(job: Path) -> Callable[[], bool]:
    return lambda: any(job.glob("*/agent/started"))


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid:
                found.append(int(entry.name))
    return found


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whole_group", [False, True], ids=["harbor", "group"])
def test_interrupted(
    start_job: Start, cache: Path, nothing_left: Callable[[], list[str]], number: signal.Signals, whole_group: bool
) -> None:
    process, job = start_job()
    wait_for(solving(job))
    assert nothing_left() != []
    os.killpg(process.pid, number) if whole_group else process.send_signal(number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert results(job)["endless"].exception == "CancelledError"
    assert nothing_left() == []


def test_killed_harbor(start_job: Start, cache: Path, nothing_left: Callable[[], list[str]]) -> None:
    process, job = start_job()
    wait_for(solving(job))
    process.kill()
    process.communicate(timeout=30)
    wait_for(lambda: nothing_left() == [], seconds=10)


def test_killed_with_its_supervisor(start_job: Start, cache: Path, nothing_left: Callable[[], list[str]]) -> None:
    """Then only a folder is left, which `akm-harbor sandbox clean` removes; a running one it leaves alone."""
    process, job = start_job()
    wait_for(solving(job))
    clean = [str(Path(sys.executable).parent / "akm-harbor"), "sandbox", "clean", "--cache-dir", str(cache), "--images"]
    done = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=True)
    assert "1 sandboxes are running and left alone, and so are the images" in done.stdout
    supervisors = children(process.pid)
    assert len(supervisors) == 1
    for pid in (process.pid, *supervisors):
        os.kill(pid, signal.SIGKILL)
    process.communicate(timeout=30)
    wait_for(lambda: len(nothing_left()) == 1, seconds=10)
    assert "/trials/" in nothing_left()[0]
    done = subprocess.run(clean, capture_output=True, text=True, timeout=60, check=True)
    assert "running" not in done.stdout
    assert nothing_left() == []
    assert not any(cache.glob("user-*/images/*"))


def test_killed_while_it_builds(start_job: Start, cache: Path, nothing_left: Callable[[], list[str]]) -> None:
    process, _ = start_job(dockerfile="FROM x\nRUN touch /started && sleep 1000\n")
    wait_for(lambda: any(cache.glob("user-*/images/*.building-*/upper/root/started")))
    process.kill()
    process.communicate(timeout=30)
    wait_for(lambda: nothing_left() == [] and not any(cache.glob("user-*/images/*.building-*")), seconds=10)


def test_a_build_that_takes_too_long_is_stopped(
    start_job: Start, cache: Path, nothing_left: Callable[[], list[str]]
) -> None:
    process, job = start_job(dockerfile="FROM x\nRUN sleep 1000\n", toml="[environment]\nbuild_timeout_sec = 2\n")
    output, _ = process.communicate(timeout=60)
    assert results(job)["endless"].exception == "EnvironmentStartTimeoutError", output
    assert nothing_left() == []
    assert not any(cache.glob("user-*/images/*.building-*"))
