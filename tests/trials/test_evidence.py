import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.trials.akm_calls import AkmCall
from akm_harbor.trials.calls import AkmUse
from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.evidence import mark_automatic
from akm_harbor.trials.trial import TrialRead, read_trial
from tests.trials.conftest import Jobs, exception

HEAD = 'level=INFO message="AKM CLI resolved" version=0.9.0\n'
SESSION = {
    "event": "session_started",
    "timestamp": "2026-01-01T00:00:01Z",
    "sessionId": "s",
    "outcome": {"status": "ok"},
}
RECALL = {"event": "prompt_recall", "refs": ["skills/a"], "outcome": {"status": "ok"}}
CAPTURE: dict[str, Any] = {
    "version": 1,
    "arm": "akm",
    "opencode_version": "1.18.33",
    "akm_version": "0.9.0",
    "plugin_version": "0.9.1",
    "toolchain_digest": "sha256:t",
    "install": "toolchain",
    "title": "off",
    "context": "none",
    "inject": "on",
    "tools": "on",
    "bundle": "task",
    "bundle_digest": "sha256:b",
    "bundle_files": 2,
    "akm_expected": True,
    "index": {"ok": True, "total_entries": 2},
    "selfcheck": {"ok": True, "detail": ""},
    "bundle_dir": "/srv/own/bundle",
    "files": [],
    "missing": [],
}


def request(kind: str = "main", tools: tuple[str, ...] = ("bash", "akm_search"), added: int = 0) -> dict[str, Any]:
    return {
        "version": 1,
        "at": "2026-01-01T00:00:02Z",
        "session": "s",
        "kind": kind,
        "agent": "build",
        "model": "p/m",
        "tools": list(tools),
        "system": [{"chars": 100 + added, "sha256": "d"}],
        "system_chars": 100 + added,
        "system_chars_before": 100,
        "context_chars": None,
    }


def usage_db(path: Path, *rows: tuple[Any, ...]) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "CREATE TABLE usage_events (id INTEGER PRIMARY KEY, event_type TEXT, query TEXT, entry_id INTEGER,"
            " entry_ref TEXT, signal TEXT, metadata TEXT, source TEXT NOT NULL DEFAULT 'user', created_at TEXT)"
        )
        db.executemany(
            "INSERT INTO usage_events (event_type, query, entry_ref, signal, metadata, source, created_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            rows,
        )
        db.commit()


class Evidence:
    """Writes a trial's agent/akm folder as the agents do."""

    def __init__(self, jobs: Jobs, **fields: Any) -> None:
        self.trial = jobs.trial(**fields)
        self.akm = self.trial / "agent" / "akm"
        self.akm.mkdir(parents=True)

    def healthy(self, **capture: Any) -> "Evidence":
        self.capture(**capture)
        self.lines("ledger/events.jsonl", SESSION, RECALL)
        self.lines("probe.jsonl", request(added=400), request())
        self.log(HEAD)
        return self

    def capture(self, **fields: Any) -> None:
        (self.akm / "capture.json").write_text(json.dumps({**CAPTURE, **fields}))

    def lines(self, rel: str, *lines: Any) -> None:
        path = self.akm / rel
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines))

    def log(self, text: str) -> None:
        folder = self.trial / "agent" / "opencode" / "xdg-data" / "opencode" / "log"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "opencode.log").write_text(text)

    def read(self) -> TrialRead:
        files = tuple(p.name for p in self.trial.iterdir() if p.is_file())
        folders = tuple(p.name for p in self.trial.iterdir() if p.is_dir())
        return read_trial(TrialDir(str(self.trial), self.trial.name, files, folders, 0), "reward", 2**62)


def rows_of(read: TrialRead, table: str) -> list[dict[str, Any]]:
    columns = read.tables[table]
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def test_a_healthy_capture_fills_its_columns(jobs: Jobs) -> None:
    got = Evidence(jobs).healthy().read()
    row = got.row
    assert (row["treatment_delivered"], row["delivery_reasons"]) == (True, None)
    assert (row["plugin_loaded"], row["tools_offered"], row["context_injected"]) == (True, True, True)
    assert (row["bundle_indexed"], row["n_index_entries"], row["n_requests"]) == (True, 2, 2)
    assert {
        k: row[k] for k in ("opencode_version", "akm_version", "plugin_version", "toolchain_digest", "install")
    } == {
        "opencode_version": "1.18.33",
        "akm_version": "0.9.0",
        "plugin_version": "0.9.1",
        "toolchain_digest": "sha256:t",
        "install": "toolchain",
    }
    assert (row["title"], row["context"], row["bundle"], row["bundle_digest"]) == ("off", "none", "task", "sha256:b")
    assert got.private["arm"] == "akm"
    assert got.problems == []


def test_probe_rows(jobs: Jobs) -> None:
    rows = rows_of(Evidence(jobs).healthy().read(), "model_requests")
    assert [r["added_chars"] for r in rows] == [400, 0]
    assert rows[0]["kind"] == "main"
    assert (rows[0]["n_akm_tools"], rows[0]["system_digest"], rows[0]["part_chars"]) == (1, "d", "[500]")


@pytest.mark.parametrize(
    ("requests", "capture", "delivered", "reasons"),
    [
        ([request(tools=("bash",), added=400)], {}, False, ["tools-not-offered"]),
        ([request()], {}, False, ["context-not-injected"]),
        ([request(), request("title", (), 400)], {"title": "on"}, True, ["context-eaten-by-title"]),
        ([request()], {"inject": "off"}, True, None),
        ([request(tools=("bash",), added=400)], {"tools": "off"}, True, None),
        # A subagent's requests do not stand for the agent's own.
        ([request("other", added=400), request(added=0)], {}, False, ["context-not-injected"]),
    ],
)
def test_what_the_probe_saw_decides(
    jobs: Jobs, requests: list[dict[str, Any]], capture: dict[str, Any], delivered: bool, reasons: list[str] | None
) -> None:
    evidence = Evidence(jobs).healthy(**capture)
    evidence.lines("probe.jsonl", *requests)
    row = evidence.read().row
    assert (row["treatment_delivered"], row["delivery_reasons"]) == (delivered, reasons)


def test_a_control_arm_has_a_capture_and_no_verdict(jobs: Jobs) -> None:
    evidence = Evidence(jobs)
    evidence.capture(arm="control", akm_expected=False, akm_version=None, index=None, selfcheck=None, bundle=None)
    evidence.lines("probe.jsonl", request(tools=("bash",)))
    row = evidence.read().row
    assert (row["treatment_delivered"], row["delivery_reasons"]) == (None, None)
    assert (row["tools_offered"], row["n_requests"]) == (False, 1)


def test_an_oracle_context_arm_shows_its_context(jobs: Jobs) -> None:
    evidence = Evidence(jobs)
    evidence.capture(arm="oracle", akm_expected=False, context="bundle")
    evidence.lines("probe.jsonl", {**request(tools=("bash",)), "context_chars": 321})
    got = evidence.read()
    assert got.row["treatment_delivered"] is True
    assert rows_of(got, "model_requests")[0]["context_chars"] == 321


def test_index_never_built_by_the_harness_but_healed_by_akm(jobs: Jobs) -> None:
    evidence = Evidence(jobs).healthy(index=None)
    with closing(sqlite3.connect(evidence.akm / "index.db")) as db:
        db.execute("CREATE TABLE entries (id INTEGER)")
        db.execute("INSERT INTO entries VALUES (1), (2)")
        db.commit()
    row = evidence.read().row
    assert (row["treatment_delivered"], row["delivery_reasons"]) == (True, ["index-built-by-akm"])
    assert row["n_index_entries"] == 2


def test_usage_events_with_their_wal(jobs: Jobs) -> None:
    evidence = Evidence(jobs).healthy()
    usage_db(evidence.akm / "state.db", ("search", "old", None, None, None, "user", "2026-01-01 00:00:00"))
    live = sqlite3.connect(evidence.akm / "state.db")
    live.execute("PRAGMA journal_mode = WAL")
    live.execute(
        "INSERT INTO usage_events (event_type, query, created_at) VALUES ('search', 'new', '2026-01-01 00:00:09')"
    )
    live.commit()
    before = sorted(p.name for p in evidence.akm.iterdir())
    try:
        rows = rows_of(evidence.read(), "akm_usage")
    finally:
        after = sorted(p.name for p in evidence.akm.iterdir())
        live.close()
    assert [(r["query"], r["source"], r["created_at"]) for r in rows] == [
        ("old", "user", 1767225600_000_000),
        ("new", "user", 1767225609_000_000),
    ]
    assert before == after


def test_databases_that_cannot_be_read_are_problems_not_losses(jobs: Jobs) -> None:
    evidence = Evidence(jobs).healthy()
    (evidence.akm / "state.db").write_bytes(b"")
    (evidence.akm / "index.db").write_bytes(b"not a database" * 100)
    got = evidence.read()
    assert {(rel, kind) for rel, kind, _, _ in got.problems} == {
        ("agent/akm/state.db", "sqlite-empty"),
        ("agent/akm/index.db", "sqlite-not-a-database"),
    }
    assert got.row["own_status"] == "scored"
    assert got.row["treatment_delivered"] is True


def test_an_old_state_without_the_table_or_a_column(jobs: Jobs) -> None:
    evidence = Evidence(jobs).healthy()
    with closing(sqlite3.connect(evidence.akm / "state.db")) as db:
        db.execute("CREATE TABLE usage_events (id INTEGER, event_type TEXT, created_at TEXT)")
        db.execute("INSERT INTO usage_events VALUES (1, 'search', 'soon')")
        db.commit()
    (row,) = rows_of(evidence.read(), "akm_usage")
    assert (row["event_type"], row["source"], row["created_at"]) == ("search", None, None)


def test_broken_lines_cost_only_themselves(jobs: Jobs) -> None:
    evidence = Evidence(jobs).healthy()
    evidence.lines("ledger/events.jsonl", SESSION, "{broken", "[]", "", RECALL)
    got = evidence.read()
    assert [(r["line"], r["event"]) for r in rows_of(got, "plugin_events")] == [
        (1, "session_started"),
        (5, "prompt_recall"),
    ]
    ((rel, kind, detail, _),) = got.problems
    assert (rel, kind) == ("agent/akm/ledger/events.jsonl", "invalid-json-line")
    assert detail == "2 line(s) are no JSON object: 2, 3"


def test_files_are_taken_where_the_capture_says_but_never_outside(jobs: Jobs, tmp_path: Path) -> None:
    evidence = Evidence(jobs).healthy()
    (evidence.akm / "ledger" / "events.jsonl").unlink()
    evidence.lines("elsewhere/own.jsonl", SESSION, RECALL)
    evidence.capture(files=[{"role": "ledger", "path": "elsewhere/own.jsonl", "bytes": 1, "sha256": ""}])
    assert len(rows_of(evidence.read(), "plugin_events")) == 2
    (tmp_path / "outside.jsonl").write_text(json.dumps(SESSION))
    for path in ("../../../../../outside.jsonl", str(tmp_path / "outside.jsonl"), "..", "", None, 3):
        evidence.capture(files=[{"role": "ledger", "path": path}])
        assert rows_of(evidence.read(), "plugin_events") == []


def test_links_inside_the_evidence_are_problems(jobs: Jobs, tmp_path: Path) -> None:
    evidence = Evidence(jobs).healthy()
    (tmp_path / "secret").write_text(json.dumps(SESSION))
    (evidence.akm / "ledger" / "events.jsonl").unlink()
    (evidence.akm / "ledger" / "events.jsonl").symlink_to(tmp_path / "secret")
    got = evidence.read()
    assert rows_of(got, "plugin_events") == []
    assert ("agent/akm/ledger/events.jsonl", "symlink") in {(rel, kind) for rel, kind, _, _ in got.problems}


def test_secrets_in_the_ledger_are_redacted(jobs: Jobs) -> None:
    key = "sk-" + "a1B2" * 8
    evidence = Evidence(jobs).healthy()
    evidence.lines("ledger/events.jsonl", {**SESSION, "input": {"args": {"token": "short", "text": f"use {key}"}}})
    (row,) = rows_of(evidence.read(), "plugin_events")
    assert key not in row["data_json"]
    assert "short" not in row["data_json"]


def test_our_agents_without_any_capture(jobs: Jobs) -> None:
    (jobs.trial(name="task-b__BBBBBBB") / "agent").mkdir()
    info = {"name": "opencode-akm", "version": "1", "model_info": None}
    evidence = Evidence(jobs, agent_info=info, exception_info=exception("AgentSetupTimeoutError"), verifier_result=None)
    row = evidence.read().row
    assert (row["treatment_delivered"], row["delivery_reasons"]) == (False, ["no-evidence"])
    assert row["exception_cause"] == "harness"


def test_a_permission_hang_is_named(jobs: Jobs) -> None:
    evidence = Evidence(jobs, exception_info=exception("AgentTimeoutError"))
    evidence.log("level=INFO message=asking id=per_1 permission=bash patterns=x\n")
    row = evidence.read().row
    assert (row["exception_label"], row["exception_cause"], row["reward"]) == ("permission-hang", "harness", 1.0)


def test_a_late_exit_is_named_and_keeps_its_reward(jobs: Jobs) -> None:
    evidence = Evidence(jobs, exception_info=exception("AgentTimeoutError"))
    stop = {"type": "step_finish", "part": {"reason": "stop", "tokens": {"input": 1, "output": 1}}}
    (evidence.trial / "agent" / "opencode.txt").write_text(json.dumps(stop, separators=(",", ":")) + "\n")
    row = evidence.read().row
    assert (row["exception_label"], row["exception_cause"], row["reward"]) == ("late-exit", "budget", 1.0)


def test_a_cut_stream_is_named_and_has_no_tokens(jobs: Jobs) -> None:
    evidence = Evidence(jobs, agent_result=None)
    (evidence.trial / "agent" / "opencode.txt").write_text('{"type":"step_start","timestamp":1,"part":{}}\n')
    row = evidence.read().row
    assert (row["exception_label"], row["n_input_tokens"], row["n_steps"]) == ("cut-stream", None, 1)


def test_tokens_of_a_run_that_a_timeout_cut_short_come_from_the_stream(jobs: Jobs) -> None:
    nothing = {"n_input_tokens": None, "n_cache_tokens": None, "n_output_tokens": None, "cost_usd": None}
    evidence = Evidence(jobs, agent_result=nothing, exception_info=exception("AgentTimeoutError"))
    finish = {"reason": "tool-calls", "tokens": {"input": 10, "output": 2, "cache": {"read": 5}}, "cost": 0.1}
    text = json.dumps({"type": "step_finish", "part": finish}, separators=(",", ":"))
    (evidence.trial / "agent" / "opencode.txt").write_text(f"{text}\n{text}\n")
    row = evidence.read().row
    assert (row["n_input_tokens"], row["n_cache_tokens"], row["n_output_tokens"]) == (30, 10, 4)
    assert (row["token_source"], row["cost_usd"]) == ("opencode.txt", 0.2)


def test_an_empty_trajectory_falls_back_to_the_stream(jobs: Jobs) -> None:
    evidence = Evidence(jobs)
    (evidence.trial / "agent" / "trajectory.json").write_text('{"schema_version": "ATIF-v1.7", "steps": []}')
    use = {"type": "tool_use", "timestamp": 5, "part": {"tool": "bash", "state": {"status": "error", "error": "no"}}}
    start = {"type": "step_start", "part": {}}
    lines = (json.dumps(e, separators=(",", ":")) for e in (start, use))
    (evidence.trial / "agent" / "opencode.txt").write_text("\n".join(lines))
    got = evidence.read()
    (call,) = rows_of(got, "tool_calls")
    assert (call["source"], call["status"], call["error"], call["arguments_json"]) == (
        "opencode.txt",
        "error",
        "no",
        None,
    )
    assert got.row["trajectory_source"] == "opencode.txt"


def test_a_model_that_the_config_does_not_name_is_not_guessed_from_the_steps(jobs: Jobs) -> None:
    config = {"agent": {"name": "opencode", "model_name": None}}
    evidence = Evidence(jobs, config=config, agent_info={"name": "opencode", "version": "1", "model_info": None})
    steps = [
        {"source": "agent", "model_name": name, "metrics": {"prompt_tokens": 5, "completion_tokens": 1}}
        for name in ("prov/one", "prov/two")
    ]
    (evidence.trial / "agent" / "trajectory.json").write_text(json.dumps({"steps": steps}))
    row = evidence.read().row
    assert (row["n_steps"], row.get("model_name"), row["cost_usd"]) == (2, None, 0.5)


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        (b'{"a": [1,  2]}', '{"a":[1,2]}'),
        (b'"x\xff\xfe"', '"x\ufffd\ufffd"'),
        (b'"\\ud800"', '"\ufffd"'),
        (b'{"k": 1e999}', '{"k":null}'),
        (b'{"k": %d}' % 2**70, f'{{"k":{2**70}}}'),
        (b'{"k": %b}' % (b"9" * 5000), '{"k":null}'),
        (b"null", None),
        (b"[" + b"1," * 9000 + b'"\xff"]', "[" + "1," * 3999 + "…"),
    ],
    ids=[
        "usual",
        "no-utf8",
        "lone-surrogate",
        "out-of-range",
        "more-than-64-bits",
        "thousands-of-digits",
        "null",
        "long",
    ],
)
def test_arguments_are_kept_whatever_they_are_made_of(jobs: Jobs, said: bytes, kept: str | None) -> None:
    evidence = Evidence(jobs)
    call = b'{"step_id": 1, "source": "agent", "tool_calls": [{"function_name": "akm_show", "arguments": %b}, {}]}'
    (evidence.trial / "agent" / "trajectory.json").write_bytes(b'{"steps": [%b]}' % (call % said))
    assert [call["arguments_json"] for call in rows_of(evidence.read(), "tool_calls")] == [kept, None]


def test_a_command_line_of_akm_at_the_end_of_a_long_script_is_seen(jobs: Jobs) -> None:
    evidence = Evidence(jobs)
    script = "# " + "notes " * 3000 + "\nakm search 'how to deploy' --json"
    call = {"function_name": "bash", "arguments": {"command": script}}
    (evidence.trial / "agent" / "trajectory.json").write_text(
        json.dumps({"steps": [{"step_id": 1, "source": "agent", "tool_calls": [call]}]})
    )
    (row,) = rows_of(evidence.read(), "tool_calls")
    assert (row["akm_verb"], row["akm_query"], len(row["arguments_json"]) <= 8000) == ("search", "how to deploy", True)


def test_steps_of_a_multi_step_trial_are_read_in_order(jobs: Jobs) -> None:
    trial = jobs.trial()
    for i, name in enumerate(("01-first", "02-second")):
        agent = trial / "steps" / name / "agent"
        agent.mkdir(parents=True)
        step = {"step_id": 2, "source": "agent", "tool_calls": [{"tool_call_id": f"c{i}", "function_name": f"t{i}"}]}
        (agent / "trajectory.json").write_text(json.dumps({"steps": [step]}))
        verifier = trial / "steps" / name / "verifier"
        verifier.mkdir()
        (verifier / "ctrf.json").write_text(json.dumps({"results": {"tests": [{"name": name, "status": "passed"}]}}))
    got = read_trial(TrialDir(str(trial), trial.name, ("result.json",), ("steps",), 0), "reward", 2**62)
    assert [(c["index"], c["tool"]) for c in rows_of(got, "tool_calls")] == [(0, "t0"), (1, "t1")]
    assert [(t["index"], t["name"]) for t in rows_of(got, "tests")] == [(0, "01-first"), (1, "02-second")]


def usage(kind: str, **fields: Any) -> dict[str, Any]:
    return {"event_type": kind, "source": "user", "query": None, "entry_ref": None, "metadata": None, **fields}


def use(verb: str, query: str | None = None, refs: tuple[str, ...] = (), tool: str | None = None) -> AkmUse:
    return AkmUse(tool or f"akm_{verb}", "completed", None, AkmCall(verb, query, refs, answered=True))


def test_automatic_or_by_the_model() -> None:
    rows = [
        usage("curate", query='"the whole prompt"\n'),
        usage("curate", query="asked by the model"),
        usage("show", entry_ref="bench//skills/a"),
        usage("show", entry_ref="bench//skills/other"),
        usage("feedback", entry_ref="bench//skills/a", metadata='{"reason":"opencode auto: akm_show succeeded"}'),
        usage("feedback", entry_ref="bench//skills/a", metadata='{"reason":"it helped"}'),
        usage("search", query="probe", source="audit"),
    ]
    mark_automatic(rows, [use("curate", "asked by the model"), use("show", refs=("skills/a",))], known=True)
    assert [r.get("automatic") for r in rows] == [True, False, False, None, True, False, None]


def test_nothing_is_claimed_without_the_models_calls_or_with_shell_calls() -> None:
    rows = [usage("curate", query="q")]
    mark_automatic(rows, [], known=False)
    assert rows[0]["automatic"] is None
    mark_automatic(rows, [use("search", "x", tool="bash")], known=True)
    assert rows[0]["automatic"] is None
