"""Bring the evidence to safety after a run: what to copy, the command that does it, the fallback."""

import json
import shlex
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from akm_harbor.agent import layout
from akm_harbor.agent.layout import Logs

VERSION = 1
DRAIN_SECONDS = 5
"""How long detached writers of a finished run may take."""

KILL_SECONDS = 1
"""How long what is left of a run that was cut short may take before it is ended."""

CAPTURE_SECONDS = 30
"""Upper bound of the whole capture."""


def sources(logs: Logs, *, treatment: bool) -> list[dict[str, str]]:
    """What is looked for, by role; the treatment's part only on a treatment arm."""
    common = [
        {"role": "opencode_config", "path": layout.OPENCODE_CONFIG, "to": "config/opencode.json", "kind": "file"},
        {"role": "opencode_log", "path": logs.opencode_log, "to": "opencode-log", "kind": "log"},
        {"role": "probe", "path": logs.probe, "to": "probe.jsonl", "kind": "in_place"},
    ]
    if not treatment:
        return common
    return [
        *common,
        {"role": "state_db", "path": f"{layout.DATA}/state.db", "to": "state.db", "kind": "sqlite"},
        {"role": "index_db", "path": f"{layout.DATA}/index.db", "to": "index.db", "kind": "sqlite"},
        {"role": "ledger", "path": logs.ledger, "to": "ledger/events.jsonl", "kind": "file"},
        {
            "role": "akm_config",
            "path": f"{layout.AKM_DIRS['config']}/config.json",
            "to": "config/config.json",
            "kind": "file",
        },
        {"role": "akm_log", "path": f"{layout.CACHE}/tasks/logs", "to": "akm-log", "kind": "log"},
        {"role": "index_output", "path": f"{logs.evidence}/index.json", "to": "index.json", "kind": "in_place"},
        {"role": "selfcheck", "path": f"{logs.evidence}/selfcheck.json", "to": "selfcheck.json", "kind": "in_place"},
        {"role": "plugin_load", "path": logs.plugin_load, "to": "plugin-load.json", "kind": "in_place"},
    ]


def capture_command(facts: Mapping[str, Any], logs: Logs, run_id: str) -> str:
    """The shell command that ends what is left of the run and captures its evidence."""
    spec = {
        "out": logs.evidence,
        "facts": dict(facts),
        "sources": sources(logs, treatment=bool(facts["akm_expected"])),
        "plugin_load": logs.plugin_load,
    }
    bun = f"{layout.TOOLCHAIN}/bin/bun"
    scripts = f"{layout.TOOLCHAIN}/scripts"
    path = f"{layout.TMP}/capture.json"
    return (
        f"{bun} {scripts}/drain.js {shlex.quote(run_id)} {KILL_SECONDS} kill; "
        f"printf %s {shlex.quote(json.dumps(spec))} > {path} && {bun} {scripts}/capture.js {path}"
    )


def write_fallback(folder: Path, facts: Mapping[str, Any], logs: Logs, why: str) -> None:
    """Write a capture.json on the host for a run whose capture did not happen.

    What did reach the folder is described, the rest is listed as missing with the reason.
    """
    import hashlib

    folder.mkdir(parents=True, exist_ok=True)
    files: list[dict[str, Any]] = []
    missing: list[dict[str, str]] = []
    for source in sources(logs, treatment=bool(facts["akm_expected"])):
        path = folder / source["to"]
        if source["kind"] == "in_place" and path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            digest = hashlib.sha256(content).hexdigest()
            files.append({"role": source["role"], "path": source["to"], "bytes": len(content), "sha256": digest})
        else:
            missing.append({"role": source["role"], "source": source["path"], "why": why})
    described = {
        **facts,
        "captured_at": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "plugin_load": None,
        "files": files,
        "missing": missing,
    }
    (folder / "capture.json").write_text(json.dumps(described, indent=2) + "\n", "utf-8")
