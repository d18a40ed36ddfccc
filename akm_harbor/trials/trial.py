"""Read one trial directory into the rows of all tables. It never raises for what it finds there."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

from akm_harbor.trials import delivery
from akm_harbor.trials.calls import Calls, Columns, Reading, read_calls
from akm_harbor.trials.causes import cause_of
from akm_harbor.trials.ctrf import read_compliance, read_tests
from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.evidence import Captured, mark_automatic, read_captured
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.job import plan_of
from akm_harbor.trials.result import Row, config_row, note_naive, result_row, task_path
from akm_harbor.trials.stamps import FOLDER, RACY, Stamp
from akm_harbor.trials.usual import usual_row
from akm_harbor.trials.values import InvalidJsonError, as_dict, as_text, parse_json

_OUR_TREATMENT = "opencode-akm"
_OUR_CONTROL = "opencode-control"
_PRIVATE = ("_arm", "_plan", "_agent_multiplier", "_agent_ceiling", "_state", "_install_only", "_import_path")
"""Columns of no table: while a trial is read they travel in its row."""


@dataclass(slots=True)
class TrialRead:
    """Everything one trial directory gave.

    Attributes:
        row: the trials row, without the job's columns.
        private: what the join and the cache need but no column holds: arm, plan, agent_multiplier, agent_ceiling.
        tables: columns of the other tables by table name, without the trial's own.
        stamps: what was looked at: (path below the trial, size, mtime_ns).
        problems: (path below the trial, kind, detail, action).
        notes: minor findings: kind -> detail.
    """

    row: Row
    private: Row
    tables: dict[str, Columns]
    stamps: list[Stamp]
    problems: list[tuple[str, str, str, str]]
    notes: dict[str, str]


def read_trial(trial: TrialDir, reward_key: str, now_ns: int) -> TrialRead:
    """Read one trial directory.

    Args:
        trial: the directory, as discovery saw it.
        reward_key: which key of the rewards is the primary one.
        now_ns: when the collection began, for the cache's race rule.
    """
    files = TrialFiles(trial.path, now_ns)
    files.seed(trial.files, trial.folders)
    files.stamps.append(("", FOLDER, trial.mtime_ns))
    row = _own_row(files, trial, reward_key)
    tables: dict[str, Columns] = {}
    if row.get("n_input_tokens") == 0 and row.get("n_output_tokens") == 0:
        _drop_zero_tokens(row, files)
    agents, verifiers = _phases(files)
    if agents or verifiers:
        _evidence(files, row, agents, verifiers, tables)
    elif _expected(row, None):
        _judge(row, delivery.Evidence(expected=True))
    row["own_status"] = own_status(row)
    private = {name[1:]: row.pop(name) for name in _PRIVATE if name in row}
    return TrialRead(row, private, tables, files.stamps, files.problems, files.notes)


def unread_trial(trial: TrialDir, why: str | None = None) -> TrialRead:
    """The row of a trial that the reader could not cope with.

    Args:
        trial: the directory.
        why: what went wrong; None when the reading process died of it (out of memory, mostly).
    """
    row: Row = {"trial_name": trial.name, "own_status": "unreadable", "schema_ok": False}
    kind, detail = (
        ("reader-died", "reading this trial ended the reading process") if why is None else ("reader-failed", why)
    )
    problem = ("", kind, detail, "row kept, status unreadable")
    return TrialRead(row, {}, {}, [("", FOLDER, RACY)], [problem], {})


def _own_row(files: TrialFiles, trial: TrialDir, reward_key: str) -> Row:
    """The trial's own row: from result.json, else what config.json and the folder tell."""
    data = files.read("result.json")
    row = usual_row(data, reward_key) if data is not None else None
    if row is not None:
        row["_state"] = "read"
        if naive := row.pop("_naive"):
            note_naive(files, naive)
    else:
        row = _unusual_row(files, data, reward_key)
        if data is None and "result.json" in trial.files:
            row["_state"] = "unreadable"  # there, but it could not be opened or is absurdly large
    if data is not None:
        row["result_sha256"] = hashlib.sha256(data).hexdigest()
    lock = as_dict(files.read_json("lock.json", "task digest left null"))
    task = as_dict(lock.get("task"))
    row["task_digest"] = as_text(task.get("digest"), 200)
    row["task_name"] = row.get("task_name") or as_text(task.get("name"))
    row["_plan"] = plan_of(task, as_dict(lock.get("agent")))
    name = row.get("trial_name") or trial.name
    if name != trial.name:
        files.note("renamed-trial", f"directory {trial.name!r}, trial_name {name!r}")
    row["trial_name"] = name
    row["agent_name"] = row.get("agent_name") or agent_of(row["_import_path"])
    return row


def agent_of(import_path: str | None) -> str | None:
    """An agent's name where no result tells it: our own classes' names are known, else the class."""
    path = import_path or ""
    known = {"AkmOpenCode": _OUR_TREATMENT, "ControlOpenCode": _OUR_CONTROL}
    own = known.get(path.rpartition(":")[2]) if path.startswith("akm_harbor") else None
    return own or path.rpartition(":")[2] or None


def _unusual_row(files: TrialFiles, data: bytes | None, reward_key: str) -> Row:
    """A row from a result that is absent, broken, or not as Harbor documents it."""
    state = "unfinished"
    result: dict[str, Any] = {}
    if data is not None:
        state, result = _parse_result(files, data)
    row: Row = result_row(result, reward_key, files) if result else {}
    if state == "unreadable":
        row["reward"] = None  # whatever could be rescued is evidence, not a score
        row["schema_ok"] = False
    config = as_dict(result.get("config"))
    if not config:
        config = as_dict(files.read_json("config.json", "config columns left null"))
    for name, value in config_row(config).items():
        if value is not None or name not in row:
            row[name] = value
    task, agent = as_dict(config.get("task")), as_dict(config.get("agent"))
    row["trial_name"] = row.get("trial_name") or as_text(config.get("trial_name"))
    row["agent_name"] = row.get("agent_name") or as_text(agent.get("name"))
    if not row.get("task_name"):
        folder = (as_text(task.get("path")) or "").rstrip("/").rpartition("/")[2]
        row["task_name"] = as_text(task.get("name")) or folder or None
        row["task_path"] = row.get("task_path") or task_path(task)
        row["source"] = row.get("source") or as_text(task.get("source"))
    source = config.get("source_trial")
    if source:
        given = as_dict(source)
        row["regrade_of"] = as_text(given.get("trial_id")) or as_text(given.get("path")) or as_text(source)
    row["_state"] = state
    return row


def _parse_result(files: TrialFiles, data: bytes) -> tuple[str, dict[str, Any]]:
    try:
        value = parse_json(data)
    except InvalidJsonError as error:
        files.problem("result.json", error.kind, str(error), "row kept, status unreadable, no reward")
        return "unreadable", as_dict(error.repaired)
    if not isinstance(value, dict) or not ("trial_name" in value or "task_name" in value or "id" in value):
        files.problem("result.json", "not-a-result", "JSON, but not a trial's result", "row kept, status unreadable")
        return "unreadable", {}
    return "read", value


def own_status(row: Row) -> str:
    """The trial's status by itself."""
    if row["_state"] != "read":
        return str(row["_state"])
    if row["_install_only"]:
        return "install_only"
    scored = row.get("reward") is not None
    if row.get("exception_type"):
        if not scored and row.get("exception_cause") == "cancelled":
            return "cancelled"
        return "scored_with_error" if scored else "unscored"
    return "scored" if scored else "unscored"


def _phases(files: TrialFiles) -> tuple[list[str], list[str]]:
    """Agent and verifier folders: the trial's own, else those of its steps, in order of name."""
    _, top = files.listing("")
    agents = ["agent"] if "agent" in top else []
    verifiers = ["verifier"] if "verifier" in top else []
    if "steps" in top:
        for step in files.listing("steps")[1]:
            _, inside = files.listing(f"steps/{step}")
            agents += [f"steps/{step}/agent"] if "agent" in inside else []
            verifiers += [f"steps/{step}/verifier"] if "verifier" in inside else []
    return agents, verifiers


def _evidence(
    files: TrialFiles,
    row: Row,
    agents: list[str],
    verifiers: list[str],
    tables: dict[str, Columns],
) -> None:
    """Everything beyond result.json: calls, tests, captured akm evidence, the delivery verdict."""
    captured = Captured()
    for agent in agents:
        got = read_captured(files, agent)
        if got.present or got.capture or not captured.folder:
            captured = got
    calls = Calls()
    reading = Reading()
    for agent in agents:
        read_calls(files, agent, captured.bundle_folder, calls, reading)
    _steps(row, calls, reading)
    _stream_usage(row, reading)
    _label(row, reading, captured)
    mark_automatic(captured.usage, calls.akm, known=reading.source is not None)
    tests = [test for verifier in verifiers for test in read_tests(files, verifier)]
    for number, test in enumerate(tests):
        test["index"] = number
    tables["tool_calls"] = calls.columns
    tables["akm_usage"] = _columns(captured.usage)
    tables["plugin_events"] = _columns(captured.events)
    tables["model_requests"] = _columns(captured.requests or [])
    tables["tests"] = _columns(tests)
    for verifier in verifiers:
        row["compliance_json"] = read_compliance(files, verifier) or row.get("compliance_json")
    _capture_columns(row, captured)
    _judge(row, _gather(row, captured, calls))


def _columns(rows: list[Row]) -> Columns:
    """Rows that all have the same keys, as columns."""
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _steps(row: Row, calls: Calls, reading: Reading) -> None:
    if reading.source is None:
        return
    row["trajectory_source"] = reading.source
    row["n_steps"] = reading.n_steps
    row["n_tool_calls"] = len(calls)
    row["n_akm_calls"] = len(calls.akm)
    row["first_prompt_tokens"] = reading.first_prompt_tokens


def _stream_usage(row: Row, reading: Reading) -> None:
    """Fill tokens that Harbor lacks from the printed stream, unless that has only zeros."""
    if row.get("token_source") is None and reading.stream_tokens and not reading.zero_tokens:
        # Harbor got no answer (a time-out, mostly), but the steps that finished were printed.
        row["n_input_tokens"], row["n_cache_tokens"], row["n_output_tokens"] = reading.stream_tokens
        row["token_source"] = "opencode.txt"  # noqa: S105  (tokens of text)
        if row.get("cost_usd") is None:
            row["cost_usd"] = reading.stream_cost


def _drop_zero_tokens(row: Row, files: TrialFiles) -> None:
    """Make 0 input and 0 output tokens null: an agent that ran cannot have used none."""
    for name in ("n_input_tokens", "n_cache_tokens", "n_output_tokens", "token_source"):
        row[name] = None
    files.note("zero-tokens", "0 input and 0 output tokens; made null")


def _label(row: Row, reading: Reading, captured: Captured) -> None:
    """Name the known patterns behind an exception, and refine its cause by what was printed."""
    kind = row.get("exception_type")
    asked = reading.asked or (captured.log is not None and captured.log.asked)
    if kind == "AgentTimeoutError":
        if reading.stopped:
            row["exception_label"] = "late-exit"
        elif asked:
            row["exception_label"] = "permission-hang"
            row["exception_cause"] = "harness"
    elif reading.truncated and not reading.error:
        row["exception_label"] = "cut-stream"
    elif captured.log is not None and captured.log.plugin_error and kind:
        row["exception_label"] = "plugin-install-failed"
        row["exception_cause"] = "harness"
    elif kind == "NonZeroAgentExitCodeError" and reading.error and row.get("exception_cause") == "unclassified":
        name, message = reading.error
        row["exception_cause"] = cause_of(kind, f'"name":"{name}"') or "unclassified"
        row["exception_message"] = f"{name}: {message} | {row.get('exception_message') or ''}"


def _capture_columns(row: Row, captured: Captured) -> None:
    capture = captured.capture
    for name in (
        "opencode_version",
        "akm_version",
        "plugin_version",
        "toolchain_digest",
        "install",
        "title",
        "context",
    ):
        row[name] = as_text(capture.get(name), 300)
    row["bundle"] = as_text(capture.get("bundle"), 300)
    row["bundle_digest"] = captured.bundle_digest
    row["_arm"] = row.get("_arm") or as_text(capture.get("arm"), 200)
    if row["akm_version"] is None and captured.log is not None:
        row["akm_version"] = captured.log.version
    if captured.requests is not None:
        row["n_requests"] = sum(1 for r in captured.requests if r["kind"] == "main")


def _expected(row: Row, captured: Captured | None) -> bool | None:
    """Whether this is a treatment arm: as captured, else by our own agents' names."""
    capture = captured.capture if captured else {}
    if isinstance(capture.get("akm_expected"), bool):
        return bool(capture["akm_expected"])
    path = row["_import_path"] or ""
    name = row["agent_name"]
    if name == _OUR_TREATMENT or (path.startswith("akm_harbor") and path.endswith(":AkmOpenCode")):
        return not row.get("_install_only")
    if captured is not None and captured.present:
        return True
    if name == _OUR_CONTROL or (captured is not None and captured.requests is not None):
        return False
    return None


def _gather(row: Row, captured: Captured, calls: Calls) -> delivery.Evidence:
    """The evidence as the verdict wants it."""
    capture, log = captured.capture, captured.log
    main = [r for r in captured.requests or () if r["kind"] == "main"]
    akm = [use for use in calls.akm if use.tool.startswith("akm_")]
    added = [r["added_chars"] for r in main if r["added_chars"] is not None]
    carried = [r["context_chars"] for r in main if r["context_chars"] is not None]
    inject = capture.get("inject")
    return delivery.Evidence(
        expected=_expected(row, captured),
        captured=captured.present,
        session_started=any(e["event"] == "session_started" for e in captured.events),
        cli_resolved=log is not None and log.cli_resolved,
        cli_failed=log is not None and log.cli_failed,
        helper_failures=log.helper_failures if log else 0,
        plugin_error=log is not None and log.plugin_error,
        cli_worked=any(
            e["status"] == "ok" and e["refs"] and e["event"] in ("prompt_recall", "feedback_recorded")
            for e in captured.events
        ),
        index_entries=captured.index_entries,
        live_entries=captured.live_entries,
        bundle_files=captured.bundle_files,
        declared_empty=capture.get("bundle") == "empty",
        selfcheck_ok=captured.selfcheck_ok,
        main_requests=None if captured.requests is None else len(main),
        tools_offered=any(r["n_akm_tools"] for r in main) if main else None,
        context_injected=any(n > 0 for n in added) if added else None,
        title_injected=any((r["added_chars"] or 0) > 0 for r in captured.requests or () if r["kind"] == "title"),
        tools_wanted=capture.get("tools") not in ("off", False),
        context_wanted=inject not in ("off", False) and capture.get("title") not in ("on", True),
        akm_calls=len(akm),
        akm_failed=sum(1 for u in akm if u.status == "error" or (u.call.answered is False and u.error)),
        akm_answered=sum(1 for u in akm if u.call.answered and u.status != "error"),
        oracle=capture.get("context") == "bundle",
        context_seen=len(carried),
        context_shown=sum(1 for chars in carried if chars > 0),
    )


def _judge(row: Row, evidence: delivery.Evidence) -> None:
    judged = asdict(delivery.verdict(evidence))
    row["treatment_delivered"] = judged.pop("delivered")
    reasons = judged.pop("reasons")
    row["delivery_reasons"] = list(reasons) if reasons else None
    row.update(judged)
