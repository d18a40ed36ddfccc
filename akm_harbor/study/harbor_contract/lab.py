"""Mini jobs for the contract: tiny tasks, run by Harbor's own command line in the sandbox, each job once."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.errors import AkmHarborError

SECRET = "contract-secret-4711-do-not-keep"  # noqa: S105  (what the scrubber has to find)
METADATA = "metadata-value-that-harbor-leaves-out"
_AGENT = "akm_harbor.study.harbor_contract.agent:ContractAgent"
_PLUGIN = "akm_harbor.study.harbor_contract.plugin:WatchingPlugin"
_HARBOR = "from harbor.cli.main import app; app()"
_SOLVED = "[ -e /app/solved ] && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt"
_TIMEOUT_SECONDS = 300

# name -> (what the agent does, tests/test.sh, more of task.toml)
_TASKS: dict[str, tuple[str, str, str]] = {
    "write": ("write", _SOLVED, ""),
    "trajectory": (
        "trajectory",
        "grep -q akm-contract /logs/agent/trajectory.json && echo 1 > /logs/verifier/reward.txt",
        "",
    ),
    "logs": ("logs", "echo from-verifier > /logs/verifier/extra.txt; echo 1 > /logs/verifier/reward.txt", ""),
    "peek": ("peek", "[ -e /tests/test.sh ] && echo 1 > /logs/verifier/reward.txt", ""),
    "tell": ("tell", "cat /logs/agent/told.txt; echo 1 > /logs/verifier/reward.txt", ""),
    "both-files": (
        "write",
        'echo 1 > /logs/verifier/reward.txt; echo \'{"reward": 0.25, "style": 0.5}\' > /logs/verifier/reward.json',
        "",
    ),
    "exit-code": ("write", "echo 1 > /logs/verifier/reward.txt; exit 3", ""),
    "no-reward": ("write", "true", ""),
    "empty-reward": ("write", "touch /logs/verifier/reward.txt", ""),
    "bad-json": ("write", "echo '{' > /logs/verifier/reward.json", ""),
    "raise": ("write", "echo 1 > /logs/verifier/reward.txt", ""),
    "sleep": ("sleep", _SOLVED, "[agent]\ntimeout_sec = 1.0\n"),
    "flaky": ("flaky", "echo 1 > /logs/verifier/reward.txt", ""),
}


class ContractError(AkmHarborError):
    """Harbor does not do what we rely on, or could not be made to show it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """One call of Harbor's command line."""

    code: int
    output: str


@dataclass(frozen=True, slots=True)
class Trial:
    """One trial directory as found.

    Attributes:
        task: the task's folder name.
        result: its result.json; empty when there is none or it is not JSON.
    """

    folder: Path
    task: str
    result: dict[str, Any]

    @property
    def reward(self) -> Any:
        """The value under `reward`, None without one."""
        return ((self.result.get("verifier_result") or {}).get("rewards") or {}).get("reward")

    @property
    def exception(self) -> str | None:
        """The exception's type."""
        return (self.result.get("exception_info") or {}).get("exception_type")

    @property
    def arm(self) -> Any:
        """The `arm` kwarg as recorded."""
        return self.result["config"]["agent"]["kwargs"].get("arm")


class Lab:
    """Runs each mini job when first asked for, in a folder of its own.

    Args:
        folder: an empty folder.
        python: the interpreter whose Harbor is looked at; this package is put on its path.
    """

    def __init__(self, folder: Path, python: Path | str = sys.executable) -> None:
        self.folder = folder
        self.python = str(Path(python).absolute())  # not resolved: a venv's python is a link
        self._ran: dict[str, Ran] = {}

    @cached_property
    def version(self) -> str:
        """The version of the Harbor looked at.

        Raises:
            ContractError: the interpreter has no Harbor.
        """
        ran = self.run_python("import importlib.metadata as m; print(m.version('harbor'))")
        if ran.code or not ran.output.strip():
            raise ContractError(
                "has no Harbor", path=self.python, hint="Install one: pip install 'harbor>=0.22,<0.27'."
            )
        return ran.output.strip().splitlines()[-1]

    def run_python(self, code: str, *args: str) -> Ran:
        """Run Python code in the interpreter looked at, with this package importable."""
        root = str(Path(__file__).resolve().parents[3])
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), root]),
            "HARBOR_TELEMETRY": "0",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "COLUMNS": "200",
        }
        try:
            done = subprocess.run(
                [self.python, "-c", code, *args],
                cwd=self.folder,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=_TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ContractError(f"Harbor did not end within {_TIMEOUT_SECONDS} s: {' '.join(args)}") from error
        except OSError as error:
            raise ContractError(str(error.strerror or error), path=self.python) from error
        return Ran(done.returncode, done.stdout)

    def harbor(self, *args: str) -> Ran:
        """Run Harbor's command line."""
        return self.run_python(_HARBOR, *args)

    # -- the jobs -------------------------------------------------------------------------

    @cached_property
    def tasks(self) -> Path:
        """The folder of tasks of the main job, with two that a scan of one level must not take."""
        folder = self.folder / "tasks"
        for name, (act, test, toml) in _TASKS.items():
            write_task(folder / name, act, test, toml)
        write_task(folder / "nested" / "inner", "write", _SOLVED)
        broken = write_task(folder / "broken", "write", _SOLVED)
        (broken / "task.toml").write_text("schema_version = \n", "utf-8")
        return folder

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        """What the plugin of the main job was told."""
        file = self.main.parents[1] / "events.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    @cached_property
    def main(self) -> Path:
        """A job with one trial of every task, a retry allowed."""
        agent = self._agent("main")
        agent["env"] = {"CONTRACT_API_KEY": SECRET}
        retry = {"max_retries": 1, "include_exceptions": ["RetryError"], "min_wait_sec": 0.0}
        config = self._config("main", [agent], self.tasks, retry=retry, n_concurrent_trials=os.cpu_count() or 1)
        plugin = ("--plugin", _PLUGIN, "--pk", f"file={self.folder / 'events.jsonl'}")
        return self._job("main", config, *plugin)

    def _job(self, name: str, config: str, *more: str) -> Path:
        if name not in self._ran:
            self._ran[name] = self.harbor("run", "-c", config, *more)
        ran, job = self._ran[name], self.folder / "jobs" / name
        if ran.code or not job.is_dir():
            raise ContractError(f"`harbor run` ended with {ran.code}: {last_words(ran)}")
        return job

    @cached_property
    def small(self) -> Path:
        """A job of two tasks, two arms and two attempts, one trial at a time."""
        tasks = self.folder / "small-tasks"
        for name in ("one", "two"):
            if not (tasks / name).exists():
                write_task(tasks / name, "write", _SOLVED)
        config = self._config("small", [self._agent("a"), self._agent("b")], tasks, n_attempts=2, n_concurrent_trials=1)
        return self._job("small", config)

    def fresh_small(self) -> Path:
        """The small job as it was when done, in the place where it was made: Harbor knows a job by its folder."""
        kept = self.folder / "kept" / "small"
        if not kept.exists():
            shutil.copytree(self.small, kept)
            shutil.copytree(self.folder / "small-tasks", self.folder / "kept" / "small-tasks")
        for part, target in (("small", self.small), ("small-tasks", self.folder / "small-tasks")):
            shutil.rmtree(target)
            shutil.copytree(self.folder / "kept" / part, target)
        return self.small

    def resume(self, job: Path) -> Ran:
        """Harbor's own resume."""
        return self.harbor("job", "resume", "-p", str(job))

    def _agent(self, arm: str) -> dict[str, Any]:
        memory = self.folder / f"memory-{arm}"
        memory.mkdir(exist_ok=True)
        return {
            "import_path": _AGENT,
            "model_name": "provider-nobody-knows/model",
            "kwargs": {"arm": arm, "memory": str(memory)},
        }

    def _config(self, name: str, agents: list[dict[str, Any]], tasks: Path, **settings: Any) -> str:
        job = {
            "job_name": name,
            "jobs_dir": str(self.folder / "jobs"),
            "quiet": True,
            "environment": {
                "import_path": "akm_harbor:SandboxEnvironment",
                "kwargs": {"cache_dir": str(self.folder / "cache")},
            },
            "agents": agents,
            "datasets": [{"path": str(tasks)}],
            **settings,
        }
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(job), "utf-8")
        return str(path)


def write_task(folder: Path, act: str, test: str, toml: str = "") -> Path:
    """One Harbor task that needs nothing but a shell."""
    for part in ("environment", "solution", "tests"):
        (folder / part).mkdir(parents=True)
    (folder / "task.toml").write_text(f'schema_version = "1.4"\n[metadata]\nnote = "{METADATA}"\n{toml}', "utf-8")
    (folder / "instruction.md").write_text(f"Act: {act}\n", "utf-8")
    (folder / "environment" / "Dockerfile").write_text("FROM debian:bookworm-slim\nWORKDIR /app\n", "utf-8")
    (folder / "solution" / "solve.sh").write_text("#!/bin/bash\ntouch /app/solved\n", "utf-8")
    (folder / "tests" / "test.sh").write_text(f"#!/bin/bash\n{test}\n", "utf-8")
    return folder


def trials_of(job: Path) -> list[Trial]:
    """The trial directories of a job, in order of name."""
    found = []
    for folder in sorted(path for path in job.iterdir() if path.is_dir()):
        try:
            result = json.loads((folder / "result.json").read_text("utf-8"))
        except (OSError, ValueError):
            result = {}
        found.append(Trial(folder, folder.name.rpartition("__")[0], result if isinstance(result, dict) else {}))
    return found


def one(job: Path, task: str) -> Trial:
    """The only trial of a task.

    Raises:
        ContractError: there is none, or several.
    """
    found = [trial for trial in trials_of(job) if trial.task == task]
    if len(found) != 1:
        names = ", ".join(sorted(t.folder.name for t in trials_of(job)))
        raise ContractError(f"{len(found)} directories named {task}__… instead of one, among: {names}")
    if not found[0].result:
        raise ContractError(f"the trial of {task} has no result.json")
    return found[0]


def last_words(ran: Ran) -> str:
    """The end of what a command printed."""
    return " / ".join(line.strip() for line in ran.output.strip().splitlines()[-6:] if line.strip())[-600:]
