"""What would block the resume of a job, found out before anything is deleted; one line each."""

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from akm_harbor.sandbox.harbor import SETTINGS
from akm_harbor.study.resume_diff import config_differences, lock_differences
from akm_harbor.trials.values import InvalidJsonError, as_dict, as_list, as_text, parse_json

_PROBE_SECONDS = 300
_FIRST_TO_REBIND = (0, 25)
"""From this Harbor on, a resume takes the folder it is given; before, the one that the job's config names."""


def folders(job: Path) -> list[Path]:
    """The folders in a job: its trials, mostly."""
    return sorted(path for path in job.iterdir() if path.is_dir())


def read_object(path: Path) -> dict[str, Any] | None:
    """A file's JSON object; None when it is not one, or a link."""
    try:
        return None if path.is_symlink() else as_dict(parse_json(path.read_bytes()))
    except (OSError, InvalidJsonError):
        return None


def still_running(job: Path) -> Iterator[str]:
    """A process that has the job's log open is still running the job."""
    log = str((job / "job.log").resolve())
    for folder in Path("/proc").glob("[0-9]*/fd"):
        pid = folder.parent.name
        try:
            if any(str(link.readlink()) == log for link in folder.iterdir()):
                yield f"the job is still running, as process {pid}; a resume would delete its running trials"
                return
        except OSError:
            continue


def foreign_folders(job: Path) -> Iterator[str]:
    """Folders that are no trials: Harbor takes every folder without a result for an unfinished one."""
    for folder in folders(job):
        known = ("result.json", "config.json", "trial.log", "lock.json")
        ours = any((folder / name).exists() for name in known)
        # A folder of Harbor's own that it had only just made holds at most empty folders.
        if not ours and any(path.is_file() for path in folder.rglob("*")):
            yield f"the folder {folder.name} is no trial, and Harbor would delete it; move it out of the job"


def lost_values(config: Mapping[str, Any]) -> Iterator[str]:
    """Variables whose values Harbor did not save: it would go on with stars, or not at all."""
    for where, env in _environments(config):
        for name, value in env.items():
            if re.fullmatch(r".{0,4}\*{4}.{0,3}", str(value)):
                yield (
                    f"{where}.{name}: Harbor saved only {value!r} of this secret and would go on with that; "
                    "in a new job pass it as ${" + name + "}"
                )
            variable = re.fullmatch(r"\$\{(\w+)\}", str(value))
            if variable and variable[1] not in os.environ:
                yield f"{where}.{name}: the variable {variable[1]} is not set here; set it as it was set before"


def _environments(config: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, agent in enumerate(as_list(config.get("agents"))):
        yield f"agents[{number}].env", as_dict(as_dict(agent).get("env"))
    for part in ("environment", "verifier"):
        yield f"{part}.env", as_dict(as_dict(config.get(part)).get("env"))


def misplaced(job: Path, config: Mapping[str, Any], cwd: Path) -> Iterator[str]:
    """The job, or tasks of it, lie elsewhere than its config says."""
    if _harbor_version() < _FIRST_TO_REBIND:
        named = Path(as_text(config.get("jobs_dir")) or "jobs") / (as_text(config.get("job_name")) or job.name)
        if (cwd / named).resolve() != job.resolve():
            yield (
                f"this Harbor resumes the job where its config says it lies, {named}, and it lies elsewhere; "
                "move it back, or update Harbor to 0.25 or newer"
            )
    for key, path in local_tasks(config):
        if not (cwd / path).exists():
            yield f"{key}: {path} is not there, seen from {cwd}; give the folder the job began in as --cwd"


def local_tasks(config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Key and path of each dataset and task on this machine."""
    for key in ("datasets", "tasks"):
        for number, entry in enumerate(map(as_dict, as_list(config.get(key)))):
            path = as_text(entry.get("path"))
            if path and not any(entry.get(name) for name in ("git_url", "repo", "registry_path", "registry_url")):
                yield f"{key}[{number}].path", path


def _harbor_version() -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", importlib.metadata.version("harbor"))[:2])


def probe(job: Path, cwd: Path, doomed: set[str]) -> dict[str, Any]:
    """Let Harbor itself try the resume on a shadow of the job."""
    with tempfile.TemporaryDirectory(prefix="akm-resume-") as folder:
        shadow = Path(folder).resolve() / job.name
        shadow.mkdir()
        _copy(job, shadow, ("config.json", "lock.json", "result.json"))
        for trial in folders(job):
            if trial.name not in doomed:
                (shadow / trial.name).mkdir()
                _copy(trial, shadow / trial.name, ("config.json", "result.json"))
        root = str(Path(__file__).resolve().parents[2])
        path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), root])
        env = {**os.environ, **SETTINGS, "PYTHONPATH": path}
        command = [sys.executable, "-m", "akm_harbor.study.resume_probe", str(shadow)]
        done = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False
        )
    try:
        return as_dict(json.loads(done.stdout.replace(str(shadow), str(job))))
    except ValueError:
        last = (done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1]
        return {"error": f"Harbor could not be asked: {last}", "stage": "ask", "planned": None}


def _copy(source: Path, target: Path, names: Sequence[str]) -> None:
    for name in names:
        path = source / name
        if path.is_file() and not path.is_symlink():
            shutil.copyfile(path, target / name)


def explained(said: Mapping[str, Any], lock: Mapping[str, Any]) -> list[str]:
    """Harbor's refusal in words of the job: which task changed, which key differs."""
    lines: list[str] = []
    if said["stage"] == "lock" and said.get("lock"):
        lines = lock_differences(lock, said["lock"])
    elif said["stage"] == "plan" and said.get("trial_configs"):
        lines = config_differences(as_list(said.get("existing")), said["trial_configs"])
    then = as_text(as_dict(lock.get("harbor")).get("version"))
    now = importlib.metadata.version("harbor")
    if then and then != now:
        lines.append(f"the job was run by Harbor {then}, this is Harbor {now}: pip install 'harbor=={then}' resumes it")
    return [*lines, f"Harbor says: {said['error']}"]
