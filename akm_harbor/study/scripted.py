"""The scripted model of a study: on the port its job names, and with the attempts it has played already."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from akm_harbor.resources import resource
from akm_harbor.sandbox.demo import spare_catalogue
from akm_harbor.sandbox.model import ScriptedModel
from akm_harbor.study.declaration import Study
from akm_harbor.study.folder import StudyFolder
from akm_harbor.study.mend import finished
from akm_harbor.study.render import SCRIPTED_URL, Job

_CANCELLED = "CancelledError"


def free_port() -> int:
    """A port that is free now; it becomes part of the job, so a resumed study uses it again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def point_at(job: Job, port: int, folder: Path) -> Job:
    """The job with the model's real port, and without opencode's catalogue of models."""
    text = json.dumps(job).replace(SCRIPTED_URL, f"http://127.0.0.1:{port}")
    pointed: Job = json.loads(text)
    spare_catalogue(pointed, folder)
    return pointed


def serve(study: Study, folder: StudyFolder, port: int) -> ScriptedModel:
    """The study's model, not yet started.

    Raises:
        AkmHarborError: its policy is wrong, or the port is taken by somebody else.
    """
    policy = resource("arms", str(study.policy))  # an absolute path stays what it is
    return ScriptedModel(policy, port=port, log=folder.requests, taken=list(_played(folder)))


def _played(folder: StudyFolder) -> Iterator[tuple[str | None, str | None, int]]:
    """Attempts of the trials that stay: a trial that runs again must get its own attempt again."""
    attempts: dict[str, tuple[str | None, str | None, int]] = {}
    if folder.requests.is_file():
        for line in folder.requests.read_text("utf-8", "replace").splitlines():
            try:
                record: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # the last line of a killed run
            if record.get("session") and record.get("attempt") and record.get("kind") == "main":
                attempts[record["session"]] = (record["task"], record["arm"], record["attempt"])
    for trial in finished(folder.job):
        result = json.loads((trial / "result.json").read_bytes())
        if (result.get("exception_info") or {}).get("exception_type") == _CANCELLED:
            continue  # resuming removes it
        session = _session(trial)
        if session in attempts:
            yield attempts[session]


def _session(trial: Path) -> str:
    """The session of a trial's agent; empty where it never spoke."""
    log = trial / "agent" / "opencode.txt"
    if log.is_symlink() or not log.is_file():
        return ""
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict) and event.get("sessionID"):
                return str(event["sessionID"])
    return ""
