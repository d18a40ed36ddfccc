"""How fast the sandbox is: a job of the oracle, and what starting and stopping adds to a trial."""

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # run as a plain script
from tests.sandbox.support import harbor_command, harbor_environment, make_task

JOB_TARGET = 3.0
OVERHEAD_TARGET = 0.15
JOBS = 5
TRIALS = 30


def job_seconds(folder: Path) -> list[float]:
    """Wall seconds of `harbor run`, three tasks twice each, with the image layers there already."""
    for name in ("one", "two", "three"):
        make_task(
            folder / "tasks" / name,
            dockerfile="FROM debian:bookworm\nWORKDIR /app\nCOPY data.txt .\nRUN wc -c data.txt > built.txt\n",
            files={"data.txt": name},
        )
    seconds = []
    for number in range(JOBS + 1):
        command = harbor_command(folder / "tasks", folder / f"jobs-{number}", folder / "cache", "-k", "2", "-n", "4")
        before = time.perf_counter()
        subprocess.run(command, env=harbor_environment(), capture_output=True, timeout=300, check=True)
        seconds.append(time.perf_counter() - before)
        rewards = [path.read_text() for path in folder.glob(f"jobs-{number}/*/*/verifier/reward.txt")]
        assert [reward.strip() for reward in rewards] == ["1"] * 6
    return seconds[1:]


async def overheads(folder: Path) -> tuple[list[float], list[float]]:
    """Seconds of start plus stop, and of one command, of an environment whose image is built."""
    from harbor.models.task.config import EnvironmentConfig
    from harbor.models.trial.paths import TrialPaths

    from akm_harbor import SandboxEnvironment

    task = make_task(folder / "task", dockerfile="FROM x\nWORKDIR /app\nRUN true\n")
    lives, commands = [], []
    for number in range(TRIALS + 1):
        paths = TrialPaths(folder / f"trial-{number}")
        paths.mkdir()
        environment = SandboxEnvironment(
            environment_dir=task / "environment",
            environment_name="task",
            session_id=f"bench-{number}",
            trial_paths=paths,
            task_env_config=EnvironmentConfig(),
            cache_dir=str(folder / "cache"),
        )
        before = time.perf_counter()
        await environment.start(force_build=False)
        started = time.perf_counter()
        await environment.exec("true")
        ran = time.perf_counter()
        await environment.stop(delete=True)
        lives.append(time.perf_counter() - ran + started - before)
        commands.append(ran - started)
    return lives[1:], commands[1:]


def main() -> int:
    """Measure, print a line a figure, exit 1 when one is missed."""
    with tempfile.TemporaryDirectory() as folder:
        jobs = statistics.median(job_seconds(Path(folder) / "jobs"))
        lives, commands = asyncio.run(overheads(Path(folder) / "lives"))
    figures = [
        ("sandbox: 3 tasks x 2 with the oracle, wall with CLI start (s)", jobs, JOB_TARGET),
        ("sandbox: start and stop of one trial (s)", statistics.median(lives), OVERHEAD_TARGET),
        ("sandbox: one command (s)", statistics.median(commands), None),
    ]
    missed = False
    for name, measured, target in figures:
        ok = target is None or measured <= target
        missed |= not ok
        print(f"{name}\t{measured:.3f}\t{'' if target is None else f'<= {target}'}\t{'ok' if ok else 'MISSED'}")
    return missed


if __name__ == "__main__":
    sys.exit(main())
