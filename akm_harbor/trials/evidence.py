"""Read what was captured in a trial's `agent/akm/`: ledger, databases, probe, logs, capture.json.

Older recordings have the same files without capture.json; both are read.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.tables.sqlite import StoreError, open_readonly
from akm_harbor.trials.akm_calls import READ
from akm_harbor.trials.calls import AkmUse
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.opencode import LogFacts, parse_log
from akm_harbor.trials.values import InvalidJsonError, as_dict, as_int, as_list, as_text, micros, parse_json, to_json

type Row = dict[str, Any]

_LOG_BYTES = 8 * 1024 * 1024
_LINES = 200_000
TEXT_CHARS = 8000
_USAGE_COLUMNS = ("id", "event_type", "query", "entry_ref", "signal", "metadata", "source", "created_at")
_AKM_FILES = frozenset({"state.db", "index.db", "index.json", "bundle.sha256", "config", "ledger"})


@dataclass(slots=True)
class Captured:
    """The captured evidence of one trial, read but not judged.

    Attributes:
        present: anything of akm's is there.
        capture: capture.json, or an empty object.
        usage: rows of `akm_usage`, without the trial's columns and without `automatic`.
        events: rows of `plugin_events`, without the trial's columns.
        requests: rows of `model_requests`, without the trial's columns.
        log: what opencode.log says, None without a log.
    """

    folder: str = ""
    present: bool = False
    capture: dict[str, Any] = field(default_factory=dict)
    usage: list[Row] = field(default_factory=list)
    events: list[Row] = field(default_factory=list)
    requests: list[Row] | None = None
    log: LogFacts | None = None
    index_entries: int | None = None
    live_entries: int | None = None
    bundle_files: int | None = None
    bundle_digest: str | None = None
    bundle_folder: str | None = None
    selfcheck_ok: bool | None = None


def read_captured(files: TrialFiles, agent: str) -> Captured:
    """Read everything captured below one agent folder (`agent`, or `steps/<name>/agent`)."""
    folder = f"{agent}/akm"
    got = Captured(folder)
    if not {"akm", "opencode"} & {*files.listing(agent)[1]}:
        return got  # as every trial of another's: nothing of it need be looked for
    names, subfolders = files.listing(folder)
    got.capture = as_dict(files.read_json(f"{folder}/capture.json", "evidence read without it"))
    roles = {
        str(as_dict(item).get("role")): f"{folder}/{as_dict(item).get('path')}"
        for item in as_list(got.capture.get("files"))
    }
    expected = got.capture.get("akm_expected")
    got.present = expected if isinstance(expected, bool) else bool(_AKM_FILES & {*names, *subfolders})
    ledger = _first(files, roles.get("ledger"), f"{folder}/ledger/events.jsonl", _ledger_in_state(agent))
    if ledger:
        got.events = _events(files, ledger)
    probe = _first(files, roles.get("probe"), f"{folder}/probe.jsonl")
    if probe:
        got.requests = _requests(files, probe)
    log = _first(files, roles.get("opencode_log"), *_logs(files, agent))
    if log:
        data = files.read(log, limit=_LOG_BYTES, head=True)
        got.log = None if data is None else parse_log(data)
    state = _first(files, roles.get("state_db"), f"{folder}/state.db")
    if state:
        got.usage = _usage(files, state)
    index = _first(files, roles.get("index_db"), f"{folder}/index.db")
    if index:
        got.live_entries = _count_entries(files, index)
    _read_setup(files, folder, got)
    return got


def _first(files: TrialFiles, *candidates: str | None) -> str | None:
    return next((name for name in candidates if name and files.has(name)), None)


def _ledger_in_state(agent: str) -> str:
    return f"{agent}/opencode/xdg-state/akm-opencode/events.jsonl"


def _logs(files: TrialFiles, agent: str) -> list[str]:
    folder = f"{agent}/opencode/xdg-data/opencode/log"
    logs = sorted(name for name in files.listing(folder)[0] if name.endswith(".log"))
    return [f"{folder}/{name}" for name in ("opencode.log", *logs)]


def _read_setup(files: TrialFiles, folder: str, got: Captured) -> None:
    """What set-up found out: the index step, the self-check, the bundle."""
    capture = got.capture
    index = as_dict(capture.get("index"))
    if index:
        got.index_entries = as_int(index.get("total_entries"))
    elif not capture and files.has(f"{folder}/index.json"):
        got.index_entries = as_int(as_dict(files.read_json(f"{folder}/index.json")).get("totalEntries"))
    check = capture.get("selfcheck")
    if isinstance(check, dict) and isinstance(check.get("ok"), bool):
        got.selfcheck_ok = check["ok"]
    got.bundle_files = as_int(capture.get("bundle_files"))
    got.bundle_digest = as_text(capture.get("bundle_digest"), 200)
    got.bundle_folder = as_text(capture.get("bundle_dir"), 500)
    if not capture:
        listed = files.read(f"{folder}/bundle.sha256")
        if listed is not None:
            got.bundle_files = sum(1 for line in listed.splitlines() if line.strip())


def _json_lines(files: TrialFiles, rel: str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a JSON-lines file with their 1-based numbers; a bad line is a problem."""
    data = files.read(rel)
    rows: list[tuple[int, dict[str, Any]]] = []
    bad: list[int] = []
    lines = (data or b"").split(b"\n")
    for number, line in enumerate(lines[:_LINES], 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except InvalidJsonError:
            value = None
        if isinstance(value, dict):
            rows.append((number, value))
        else:
            bad.append(number)
    if bad:
        shown = ", ".join(map(str, bad[:5]))
        files.problem(
            rel, "invalid-json-line", f"{len(bad)} line(s) are no JSON object: {shown}", "those lines skipped"
        )
    if len(lines) > _LINES:
        files.problem(rel, "too-long", f"more than {_LINES} lines", "the rest left out")
    return rows


def _events(files: TrialFiles, rel: str) -> list[Row]:
    rows = []
    for number, line in _json_lines(files, rel):
        given = as_dict(line.get("input"))
        refs = line.get("refs") if isinstance(line.get("refs"), list) else [given.get("assetRef")]
        rows.append(
            {
                "line": number,
                "at": micros(line.get("timestamp"))[0],
                "event": as_text(line.get("event"), 200),
                "session_id": as_text(line.get("sessionId"), 200),
                "call_id": as_text(given.get("callID"), 200),
                "tool": as_text(given.get("tool"), 200) or as_text(given.get("toolName"), 200),
                "status": as_text(as_dict(line.get("outcome")).get("status"), 100),
                "refs": [r[:500] for r in refs or [] if isinstance(r, str)][:200],
                "data_json": to_json(line),
            }
        )
    return rows


def _requests(files: TrialFiles, rel: str) -> list[Row]:
    rows: list[Row] = []
    for _, line in _json_lines(files, rel):
        parts = [as_dict(p) for p in as_list(line.get("system"))]
        tools = [t[:200] for t in as_list(line.get("tools")) if isinstance(t, str)]
        chars = as_int(line.get("system_chars"))
        before = as_int(line.get("system_chars_before"))
        rows.append(
            {
                "index": len(rows),
                "at": micros(line.get("at"))[0],
                "session_id": as_text(line.get("session"), 200),
                "kind": as_text(line.get("kind"), 100),
                "agent": as_text(line.get("agent"), 100),
                "model": as_text(line.get("model"), 200),
                "tools": tools,
                "n_akm_tools": sum(1 for t in tools if t.startswith("akm_")),
                "system_chars": chars,
                "added_chars": None if chars is None or before is None else chars - before,
                "context_chars": as_int(line.get("context_chars")),
                "system_digest": as_text(parts[0].get("sha256"), 100) if len(parts) == 1 else _digest(parts),
                "part_chars": json.dumps([as_int(p.get("chars")) for p in parts[:100]]),
            }
        )
    return rows


def _digest(parts: list[dict[str, Any]]) -> str | None:
    """One name for several parts: their digests, in order."""
    names = [as_text(p.get("sha256"), 100) for p in parts[:20]]
    return "+".join(n or "?" for n in names) or None


def _usage(files: TrialFiles, rel: str) -> list[Row]:
    files.stamp(rel)
    for log in ("-wal", "-journal"):
        if files.has(rel + log):
            files.stamp(rel + log)
    try:
        with open_readonly(Path(files.full(rel)), tables=("usage_events",)) as db:
            present = {str(row[1]) for row in db.execute("PRAGMA table_info(usage_events)")}
            wanted = [c if c in present else f"NULL AS {c}" for c in _USAGE_COLUMNS]
            found = db.execute(f"SELECT {', '.join(wanted)} FROM usage_events ORDER BY rowid LIMIT {_LINES}").fetchall()  # noqa: S608
    except StoreError as error:
        files.problem(rel, error.kind, error.message, "no usage rows")
        return []
    rows = []
    for values in found:
        row = dict(zip(_USAGE_COLUMNS, values, strict=True))
        # SQLite's own spelling: UTC without an offset, a blank for the T.
        created = row["created_at"]
        row["created_at"] = micros(created.replace(" ", "T"))[0] if isinstance(created, str) else None
        row["id"] = as_int(row["id"])
        row["automatic"] = None
        for name in ("event_type", "entry_ref", "signal", "source"):
            row[name] = as_text(row[name], 1000)
        for name in ("query", "metadata"):
            row[name] = row[name][:TEXT_CHARS] if isinstance(row[name], str) else None
        rows.append(row)
    return rows


def _count_entries(files: TrialFiles, rel: str) -> int | None:
    files.stamp(rel)
    try:
        with open_readonly(Path(files.full(rel)), tables=("entries",)) as db:
            return int(db.execute("SELECT count(*) FROM entries").fetchone()[0])
    except StoreError as error:
        files.problem(rel, error.kind, error.message, "number of entries unknown")
        return None


def mark_automatic(usage: list[Row], calls: list[AkmUse], *, known: bool) -> None:
    """Tell the plugin's own akm calls from the model's, where anything tells.

    akm marks both `user`. A model's call repeats the argument of its tool call; the plugin's
    curates carry the prompt or a summary of the working folder, its feedback says "opencode auto:".

    Args:
        usage: rows of `akm_usage`; `automatic` is filled in.
        calls: the model's calls that had to do with akm.
        known: the trial's tool calls are complete, so that what is not among them is the plugin's.
    """
    queries = {use.call.query.strip() for use in calls if use.call.query}
    asked = [use.call for use in calls if use.call.verb in ("show", "feedback")]
    refs = {ref.rpartition("//")[2] for call in asked for ref in call.refs}
    shells = any(use.call.verb != READ and not use.tool.startswith("akm_") for use in calls)
    for row in usage:
        if row.get("source") not in ("user", None):
            continue
        kind, ref = row.get("event_type"), (row.get("entry_ref") or "").rpartition("//")[2]
        if kind in ("curate", "search"):
            mine = (row.get("query") or "").strip() in queries
            row["automatic"] = False if mine else True if known and not shells and kind == "curate" else None
        elif kind == "feedback":
            auto = '"opencode auto:' in (row.get("metadata") or "")
            row["automatic"] = True if auto else False if ref in refs else None
        elif kind == "show":
            row["automatic"] = False if ref in refs else None
