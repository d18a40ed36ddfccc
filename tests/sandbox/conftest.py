"""Real environments and real jobs on tiny tasks made on the spot."""

import asyncio
import subprocess
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.support import harbor_command, harbor_environment


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A sandbox cache of this test's own."""
    return tmp_path / "cache"


@pytest.fixture
def environment(tmp_path: Path, cache: Path) -> Callable[..., Any]:
    """Makes a SandboxEnvironment on a Dockerfile, not yet started."""

    def make(
        dockerfile: str | None = "FROM x\nWORKDIR /app\n",
        files: dict[str, str] | None = None,
        config: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> Any:
        from harbor.models.task.config import EnvironmentConfig
        from harbor.models.trial.paths import TrialPaths

        from akm_harbor import SandboxEnvironment

        number = len(list(tmp_path.glob("trial-*")))
        context = tmp_path / f"context-{number}"
        context.mkdir()
        if dockerfile is not None:
            (context / "Dockerfile").write_text(dockerfile)
        for name, text in (files or {}).items():
            (context / name).parent.mkdir(parents=True, exist_ok=True)
            (context / name).write_text(text)
        paths = TrialPaths(tmp_path / f"trial-{number}")
        paths.mkdir()
        return SandboxEnvironment(
            environment_dir=context,
            environment_name="task",
            session_id=f"task__{number}__env",
            trial_paths=paths,
            task_env_config=EnvironmentConfig(**(config or {})),
            cache_dir=str(cache),
            **kwargs,
        )

    return make


@pytest.fixture
def started(environment: Callable[..., Any]) -> Callable[..., Any]:
    """Runs a coroutine function with a started environment, and stops it whatever happens."""

    def run(use: Callable[[Any], Coroutine[Any, Any, Any]], *args: Any, **kwargs: Any) -> Any:
        async def main() -> Any:
            made = environment(*args, **kwargs)
            try:
                await made.start(force_build=False)
                return await use(made)
            finally:
                await made.stop(delete=True)

        return asyncio.run(main())

    return run


@pytest.fixture
def run_job(tmp_path: Path, cache: Path) -> Callable[..., tuple[subprocess.CompletedProcess[str], Path]]:
    """Runs `harbor run` on a folder of tasks with the oracle; gives the process and the job's folder."""

    def run(tasks: Path, *extra: str) -> tuple[subprocess.CompletedProcess[str], Path]:
        jobs = tmp_path / "jobs"
        done = subprocess.run(
            harbor_command(tasks, jobs, cache, *extra),
            env=harbor_environment(),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        return done, jobs / "job"

    return run


@pytest.fixture
def nothing_left(cache: Path) -> Iterator[Callable[[], list[str]]]:
    """Tells what a sandbox left on this machine: mounts, processes, folders. Checked at the end too."""

    def left() -> list[str]:
        mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(cache) in line]
        processes = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    lines = (entry / "mountinfo").read_text(errors="replace")
                except OSError:
                    continue
                if str(cache) in command or str(cache) in lines:
                    processes.append(f"process {entry.name}: {command}")
        folders = [str(path) for path in cache.glob("user-*/trials/*")]
        return [*mounts, *processes, *folders]

    yield left
    assert left() == []
