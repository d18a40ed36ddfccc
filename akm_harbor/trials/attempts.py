"""Attempts whose directories are gone: a record in the job's own folder.

Harbor deletes the directory of an attempt that it retries, and a resume deletes those of trials that
did not finish. Whoever sees such an attempt (the job plugin, `akm-harbor arms resume`) adds a line to
`akm-attempts.jsonl` beside the job's own files, where Harbor deletes folders only. A collection makes
superseded rows of them, see `attempt_rows`.
"""

import json
import os
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from akm_harbor.tables.redact import REDACTED, redact_value
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.result import MESSAGE_CHARS
from akm_harbor.trials.values import InvalidJsonError, as_dict, parse_json

FILE = "akm-attempts.jsonl"
_VERSION = 1
_SHORTEST_SECRET = 8
_DROPPED = ("exception_traceback", "rollout_details", "metadata")
"""Keys of a result that no column needs, and that may be large."""


def record(
    job_dir: Path, result: Mapping[str, Any], *, by: str, digest: str | None = None, secrets: Iterable[str] = ()
) -> None:
    """Add one attempt to a job's record, without secrets.

    Args:
        job_dir: the job's directory.
        result: what its result.json holds; of a trial without one, its `trial_name` and `config`.
        by: who records it: `plugin` or `resume`.
        digest: the task's content digest, from the trial's lock.
        secrets: values that must not be written, whatever they look like.

    Raises:
        OSError: the line cannot be written.
    """
    text = json.dumps(redact_value(_without(dict(result)), limit=4 * MESSAGE_CHARS), default=str)
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(json.dumps(secret)[1:-1], REDACTED)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    head = json.dumps({"version": _VERSION, "by": by, "at": at, "task_digest": digest})
    line = f'{head[:-1]}, "result": {text}}}\n'
    # One write of one line at the end: a killed writer leaves at most a torn last line.
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    file = os.open(job_dir / FILE, flags, 0o644)
    try:
        os.write(file, line.encode("utf-8", "replace"))
    finally:
        os.close(file)


def _without(value: Any) -> Any:
    """The value without large parts that nobody reads."""
    if isinstance(value, dict):
        return {key: _without(item) for key, item in value.items() if key not in _DROPPED}
    return [_without(item) for item in value] if isinstance(value, list) else value


def parse(data: bytes, files: TrialFiles) -> list[dict[str, Any]]:
    """The lines of a record; one that is not what it should be is a problem."""
    lines = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            value = as_dict(parse_json(line))
        except InvalidJsonError as error:
            files.problem(FILE, error.kind, f"line {number}: {error}", "line left out")
            continue
        if as_dict(value.get("result")):
            lines.append(value)
        else:
            files.problem(FILE, "not-an-attempt", f"line {number} holds no result", "line left out")
    return lines
