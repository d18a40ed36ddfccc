import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from akm_harbor.canary.history import History, read_history
from akm_harbor.canary.locate import labels, locate
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import StoreCorruptError, StoreSchemaError
from tests.canary.support import execute, recorded, unpack

CYCLES = """
CREATE TABLE schema_migrations (id TEXT PRIMARY KEY);
CREATE TABLE improve_runs (id TEXT PRIMARY KEY, started_at TEXT, completed_at TEXT, dry_run INTEGER, ok INTEGER,
  scope_mode TEXT, metrics_json TEXT, result_json TEXT);
CREATE TABLE proposals (id TEXT PRIMARY KEY, ref TEXT, status TEXT, updated_at TEXT, content TEXT);
CREATE TABLE improve_cycle_metrics (id INTEGER PRIMARY KEY, run_id TEXT, ts TEXT, pass TEXT, canary_set_id TEXT,
  mean_recall REAL, canary_ranks_json TEXT, store_total INTEGER, distinct_content_ratio REAL, shiny INTEGER);
CREATE TABLE canary_queries (id INTEGER PRIMARY KEY, canary_set_id TEXT, anchor_ref TEXT, query TEXT, active INTEGER,
  created_at TEXT);
"""


def _read(path: Path) -> tuple[History, Problems]:
    problems = Problems()
    return read_history(locate(path), "s", problems), problems


def _cycle(number: int, **more: object) -> tuple[object, ...]:
    row: dict[str, object] = {
        "id": number, "run_id": f"r{number}", "ts": f"2026-01-0{number}T00:00:00.000Z", "pass": "both",
        "canary_set_id": "c", "mean_recall": 0.5, "canary_ranks_json": "[[101,0],[205,-1]]", "store_total": 10,
        "distinct_content_ratio": 0.9, "shiny": 1,
    }  # fmt: skip
    return tuple((row | more).values())


SIX = "VALUES (?, ?, ?, ?, ?, ?)"
INSERT = f"INSERT INTO improve_cycle_metrics VALUES ({', '.join('?' * 10)})"


def test_the_recording_as_stored(collapse: Path) -> None:
    history, problems = _read(collapse)
    assert not list(problems)
    steps = recorded("collapse/detector-steps.json")
    assert [row["run_id"] for row in history.cycles] == [step["row"]["run_id"] for step in steps]
    for row, step in zip(history.cycles, steps, strict=True):
        stored = {**step["row"], "ts": datetime.fromisoformat(step["row"]["ts"])}
        assert {name: row[name] for name in stored} == stored
    assert len(history.queries) == 40
    assert len(history.ranks) == 480
    assert len(history.events) == 15
    assert history.events[1]["kind"] == "collapse-recall"
    assert json.loads(history.events[1]["metrics_json"])["currentRecall"] == 0.75
    assert history.cycles[7]["distinct_contents"] == 39


def test_rows_of_other_ages_are_tolerated(tmp_path: Path) -> None:
    """No accepted_actions, an unknown column, `both` as the pass, odd ids, three spellings of an anchor."""
    queries = [
        (101, "c", "memory:alpha", "alpha", 1, "2026-01-01 00:00:00"),
        (205, "c", "bench//lessons/beta", "beta", 1, "2026-01-01T00:00:00.000Z"),
        (206, "old", "knowledge/gamma", "gamma", 1, "2025-01-01T00:00:00.000Z"),
    ]
    path = execute(
        tmp_path / "state.db", CYCLES,
        rows=[(INSERT, [_cycle(1), _cycle(2, run_id="r1")]), (f"INSERT INTO canary_queries {SIX}", queries)],
    )  # fmt: skip
    history, problems = _read(path)
    assert not list(problems)
    assert [row["accepted_actions"] for row in history.cycles] == [None, None]
    assert [row["anchor_ref"] for row in history.ranks[:2]] == ["memories/alpha", "lessons/beta"]
    assert [row["anchor_type"] for row in history.queries] == ["memory", "lesson", "knowledge"]
    assert history.queries[0]["created_at"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert (history.cycles[0]["n_hits"], history.cycles[0]["n_canaries"]) == (1, 2)


def test_what_does_not_fit_becomes_a_problem_and_keeps_its_row(tmp_path: Path) -> None:
    path = execute(
        tmp_path / "state.db", CYCLES,
        rows=[(INSERT, [_cycle(1, canary_ranks_json="{"), _cycle(2, ts="yesterday"), _cycle(3, mean_recall="x")])],
    )  # fmt: skip
    history, problems = _read(path)
    assert len(history.cycles) == 3
    assert history.cycles[1]["ts"] is None
    assert history.cycles[2]["mean_recall"] is None
    assert sorted(problem.kind for problem in problems) == ["canary-ranks-unreadable", "invalid-time"]


def test_history_survives_in_the_backup_the_migration_left(tmp_path: Path, collapse: Path) -> None:
    shutil.move(collapse / "state.db", collapse / "state.db.pre-028-improve-ledger.bak")
    execute(
        collapse / "state.db",
        "CREATE TABLE schema_migrations (id TEXT); INSERT INTO schema_migrations VALUES ('028-improve-ledger');"
        "CREATE TABLE events (id INTEGER, event_type TEXT, ts TEXT, metadata_json TEXT);"
        "CREATE TABLE improve_ledger (ref TEXT, outcome TEXT, last_attempt_at TEXT);"
        "INSERT INTO improve_ledger VALUES ('memories/x', 'accepted', '2026-07-05T00:00:00.000Z');",
    )
    history, problems = _read(collapse)
    assert not list(problems)
    assert {row["source"] for row in history.cycles} == {"backup"}
    assert len(history.cycles) == 12
    assert [(row["source"], row["accepted"]) for row in history.actions] == [("improve_ledger", 1)]


def test_a_backup_beside_the_database_it_was_copied_from_adds_nothing(collapse: Path) -> None:
    shutil.copy(collapse / "state.db", collapse / "state.db.pre-018-drop-dead-lane-schema.bak")
    history, _ = _read(collapse)
    assert len(history.cycles) == 12
    assert len(history.ranks) == 480
    assert {row["source"] for row in history.cycles} == {"state.db"}


def test_an_unreadable_backup_does_not_hide_the_rest(collapse: Path) -> None:
    (collapse / "state.db.pre-028-improve-ledger.bak").write_bytes(b"")
    history, problems = _read(collapse)
    assert len(history.cycles) == 12
    assert [problem.kind for problem in problems] == ["sqlite-empty"]


@pytest.mark.parametrize(
    ("migration", "kind"), [("028-improve-ledger", "detector-removed"), ("015-encoding-source", "detector-not-yet")]
)
def test_why_there_is_no_history(tmp_path: Path, migration: str, kind: str) -> None:
    path = execute(
        tmp_path / "state.db",
        f"CREATE TABLE schema_migrations (id TEXT); INSERT INTO schema_migrations VALUES ('{migration}');"
        "CREATE TABLE events (id INTEGER, event_type TEXT, ts TEXT, metadata_json TEXT);",
    )
    history, problems = _read(path)
    assert history.cycles == []
    (problem,) = problems
    assert problem.kind == kind
    assert migration in problem.detail
    assert "canary snapshot" in problem.action


def test_a_detector_that_never_ran(healthy: Path) -> None:
    _, problems = _read(healthy)
    assert [problem.kind for problem in problems] == ["no-cycles"]


def test_another_database_is_refused_with_what_it_holds(healthy: Path) -> None:
    shutil.copy(healthy / "index.db", healthy / "other.db")
    with pytest.raises(StoreSchemaError, match=r"not akm's state\.db.*entries"):
        _read(healthy / "other.db")


def test_a_damaged_database_alone_is_an_error(tmp_path: Path) -> None:
    path = unpack("collapse/state.db", tmp_path / "state.db")
    raw = bytearray(path.read_bytes())
    raw[4096:12288] = b"\xa5" * 8192
    path.write_bytes(raw)
    with pytest.raises(StoreCorruptError):
        _read(path)


def test_accepted_changes_come_from_the_runs_where_they_are_counted(tmp_path: Path) -> None:
    runs = [
        (
            "r1",
            "2026-01-01T00:00:00Z",
            "2026-01-01T00:01:00Z",
            0,
            1,
            "all",
            '{"acceptedCount": 4, "plannedCount": 9}',
            None,
        ),
        ("x", "2026-01-01T12:00:00Z", "2026-01-01T12:01:00Z", 0, 1, "all", '{"acceptedCount": 3}', "{}"),
        ("dry", "2026-01-01T13:00:00Z", "2026-01-01T13:01:00Z", 1, 1, "all", '{"acceptedCount": 50}', None),
        ("empty", "2026-01-02T13:00:00Z", None, 0, 0, "all", None, None),
    ]
    path = execute(
        tmp_path / "state.db", CYCLES,
        rows=[
            (INSERT, [_cycle(1), _cycle(2, run_id="unknown")]),
            ("INSERT INTO improve_runs VALUES (?,?,?,?,?,?,?,?)", runs),
        ],
    )  # fmt: skip
    history, _ = _read(path)
    # by its own run, and, where that is gone, by the time since the cycle before
    assert [row["accepted_measured"] for row in history.cycles] == [4, 7]
    assert {row["accepted_source"] for row in history.cycles} == {"improve_runs"}
    assert [(row["accepted"], row["source"]) for row in history.actions] == [(7, "improve_runs")]
    by_id = {row["id"]: row for row in history.runs}
    assert by_id["r1"]["planned_count"] == 9
    assert by_id["empty"]["completed_at"] is None
    assert by_id["empty"]["ok"] is False


def test_accepted_proposals_count_where_runs_do_not(tmp_path: Path) -> None:
    proposals = [
        ("1", "memories/a", "accepted", "2026-01-01T12:00:00.000Z", ""),
        ("2", "memories/b", "accepted", "2026-01-02T00:00:00.000Z", ""),
        ("3", "memories/c", "pending", "2026-01-01T13:00:00.000Z", ""),
    ]
    path = execute(
        tmp_path / "state.db", CYCLES,
        rows=[(INSERT, [_cycle(1), _cycle(2)]), ("INSERT INTO proposals VALUES (?,?,?,?,?)", proposals)],
    )  # fmt: skip
    history, _ = _read(path)
    assert [row["accepted_measured"] for row in history.cycles] == [0, 2]
    assert history.cycles[1]["accepted_source"] == "proposals"


def test_secrets_do_not_reach_the_tables(tmp_path: Path) -> None:
    secret = "sk-ant-REDACTED"
    path = execute(
        tmp_path / "state.db", CYCLES,
        rows=[(f"INSERT INTO canary_queries {SIX}", [(1, "c", "m", f"key {secret}", 1, "2026-01-01T00:00:00Z")])],
    )  # fmt: skip
    history, _ = _read(path)
    assert secret not in history.queries[0]["query"]


def test_finding_a_store(tmp_path: Path, collapse: Path) -> None:
    for path in (collapse, collapse / "index.db", collapse / "state.db"):
        files = locate(path)
        assert files.folder == collapse.resolve()
        assert files.index is not None
        assert files.state is not None
    assert locate(collapse).history == collapse.resolve().with_name("collapse.canary")
    with pytest.raises(AkmHarborError, match="no such"):
        locate(tmp_path / "nowhere")
    (tmp_path / "hollow").mkdir()
    with pytest.raises(AkmHarborError, match=r"no index\.db and no state\.db"):
        locate(tmp_path / "hollow")


def test_labels_are_as_long_as_it_takes(tmp_path: Path) -> None:
    folders = [tmp_path / "one" / "akm", tmp_path / "two" / "akm", tmp_path / "three"]
    assert labels(folders) == ["one/akm", "two/akm", f"{tmp_path.name}/three"]
    assert labels(folders[:1]) == ["akm"]
