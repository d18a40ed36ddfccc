"""Run a task's solution and verifier in a bare bubblewrap sandbox, without Harbor: milliseconds a run.

For the linter's many runs (pristine, oracle, controls, mutants). What counts is `harbor run`; this
rig takes the same scripts at the same paths (/app, /solution, /tests, /logs).
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from akm_harbor.corpus.task import CorpusTask
from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_json

_SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/sbin")
_TIMEOUT = 60


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run left.

    Attributes:
        reward: 0 or 1; None when the verifier wrote none.
        output: what solution and verifier printed.
        files: the workspace after the solution ran, before the verifier: relative path to bytes.
        reports: the JSON files the verifier wrote, by name.
    """

    reward: int | None
    output: str
    files: dict[str, bytes] = field(default_factory=dict)
    reports: dict[str, object] = field(default_factory=dict)


def why_not() -> str | None:
    """Why the rig cannot run here; None if it can."""
    if shutil.which("bwrap") is None:
        return "running solutions needs bubblewrap (Linux: apt-get install bubblewrap)"
    probe = subprocess.run(
        [*_bwrap(Path("/"), []), "/usr/bin/env", "python3", "-c", "import pytest, yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if probe.returncode == 0:
        return None
    if "No module named" in probe.stderr:
        return "verifiers need the system's python3 with pytest and yaml (apt-get install python3-pytest python3-yaml)"
    return f"bubblewrap does not work here: {probe.stderr.strip()[:200]}"


def _bwrap(home: Path, binds: list[tuple[str, Path, str]]) -> list[str]:
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"]
    for folder in map(Path, _SYSTEM):
        if folder.is_symlink():
            command += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            command += ["--ro-bind", str(folder), str(folder)]
    command += ["--ro-bind", "/etc", "/etc", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    for how, source, target in binds:
        command += [how, str(source), target]
    command += ["--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME", "/tmp"]  # noqa: S108
    command += ["--setenv", "LANG", "C.UTF-8", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"]
    return [*command, "--chdir", "/" if home == Path("/") else "/app", "--"]


def _collect(folder: Path) -> dict[str, bytes]:
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in files}


@dataclass(slots=True)
class Bench:
    """A workspace laid out for one task, ready to be changed and judged."""

    task: CorpusTask
    root: Path

    @property
    def app(self) -> Path:
        """The workspace on the host."""
        return self.root / "app"

    def reset(self, files: dict[str, bytes] | None = None) -> None:
        """Lay the workspace anew: the given files, else those the task starts with."""
        shutil.rmtree(self.app, ignore_errors=True)
        if files is None and self.task.workspace.is_dir():
            shutil.copytree(self.task.workspace, self.app, symlinks=True)
        self.app.mkdir(exist_ok=True)
        for name, data in (files or {}).items():
            (self.app / name).parent.mkdir(parents=True, exist_ok=True)
            (self.app / name).write_bytes(data)

    def _run(self, script: Path, mounts: list[tuple[str, Path, str]]) -> subprocess.CompletedProcess[str]:
        command = [*_bwrap(self.root, [("--bind", self.app, "/app"), *mounts]), "/bin/bash", str(script)]
        try:
            return subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT
            )
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, "", f"no end after {_TIMEOUT} s")

    def solve(self, script: Path) -> str:
        """Run a solution script; returns what it printed.

        Raises:
            AkmHarborError: it failed.
        """
        inside = Path("/solution") / script.relative_to(self.task.path / "solution")
        done = self._run(inside, [("--ro-bind", self.task.path / "solution", "/solution")])
        if done.returncode:
            raise AkmHarborError(f"exited with {done.returncode}: {done.stderr.strip()[-300:]}", path=script)
        return done.stdout + done.stderr

    def judge(self) -> Outcome:
        """Run the verifier on the workspace as it is."""
        before = _collect(self.app)
        logs = self.root / "logs"
        shutil.rmtree(logs, ignore_errors=True)
        for name in ("verifier", "agent", "artifacts"):
            (logs / name).mkdir(parents=True)
        tests = self.task.path / "tests"
        done = self._run(Path("/tests/test.sh"), [("--ro-bind", tests, "/tests"), ("--bind", logs, "/logs")])
        reports: dict[str, object] = {}
        for file in sorted((logs / "verifier").glob("*.json")):
            try:
                reports[file.name] = parse_json(file.read_text(encoding="utf-8"))
            except ValueError:
                reports[file.name] = None
        rewards = reports.get("reward.json")
        reward = rewards.get("reward") if isinstance(rewards, dict) else _plain_reward(logs / "verifier/reward.txt")
        return Outcome(reward if reward in (0, 1) else None, done.stdout + done.stderr, before, reports)


def _plain_reward(file: Path) -> int | None:
    text = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    return {"0": 0, "1": 1, "0.0": 0, "1.0": 1}.get(text)


@contextmanager
def bench(task: CorpusTask) -> Iterator[Bench]:
    """A bench for one task, in a temporary folder."""
    with tempfile.TemporaryDirectory(prefix="akm-harbor-rig-") as folder:
        one = Bench(task, Path(folder))
        one.reset()
        yield one
