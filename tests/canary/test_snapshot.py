from datetime import UTC, datetime
from pathlib import Path

import pytest

from akm_harbor.canary.history import read_history
from akm_harbor.canary.locate import locate
from akm_harbor.canary.mint import Canary
from akm_harbor.canary.snapshot import cycle_row, rank_rows, read_index, read_salience
from akm_harbor.tables.problems import Problems
from tests.canary.support import NUMBERS, execute, recorded, unpack

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def _canaries(state: Path) -> list[Canary]:
    history = read_history(locate(state), "x", Problems())
    return [Canary(row["id"], row["anchor_ref"], row["query"]) for row in history.queries]


def test_the_last_recorded_cycle_is_recomputed_exactly(collapse: Path) -> None:
    stored = recorded("collapse/detector-steps.json")[-1]["row"]
    reading = read_index(collapse / "index.db", _canaries(collapse))
    row = cycle_row("x", reading, stored["canary_set_id"], at=NOW, row_id=12)
    assert {name: row[name] for name in NUMBERS} == {name: stored[name] for name in NUMBERS}
    assert row["n_hits"] == 16


@pytest.mark.parametrize(("recording", "k"), [("real", 10), ("odd", 3)])
def test_every_cycle_of_a_real_store_has_akms_numbers(tmp_path: Path, recording: str, k: int) -> None:
    """Built and changed with the real CLI, the detector run after every change; half of `real` while akm was busy."""
    canaries = _canaries(unpack(f"{recording}/state.db", tmp_path / "state.db"))
    steps = recorded(f"{recording}/steps.json")
    assert len(steps) == {"real": 12, "odd": 3}[recording]
    for number, step in enumerate(steps):
        index = unpack(f"{recording}/index-{number:02d}.db", tmp_path / "index.db")
        row = cycle_row("x", read_index(index, canaries, k=k), "s", at=NOW, row_id=1, k=k)
        assert {name: row[name] for name in NUMBERS} == {name: step["row"][name] for name in NUMBERS}, number


def test_a_build_is_its_documents_and_its_time(collapse: Path) -> None:
    path = collapse / "index.db"
    first = read_index(path).build_id
    assert read_index(path).build_id == first
    execute(path, "UPDATE utility_scores SET utility = utility + 1;")
    assert read_index(path).build_id == first
    execute(path, "UPDATE entries SET entry_json = replace(entry_json, 'General', 'general') WHERE id = 435;")
    second = read_index(path).build_id
    assert second != first
    execute(path, "UPDATE index_meta SET value = '2027-01-01T00:00:00.000Z' WHERE key = 'builtAt';")
    assert read_index(path).build_id not in {first, second}


def test_rank_rows_say_what_answers_now(collapse: Path) -> None:
    reading = read_index(collapse / "index.db", _canaries(collapse))
    cycle = cycle_row("x", reading, "s", at=NOW, row_id=1)
    rows = {row["canary_id"]: row for row in rank_rows(cycle, reading.answers)}
    assert rows[1]["hit"] is False
    assert rows[1]["anchor_present"] is False
    assert rows[8]["hit_ref"] == "memories/dace-locale-files"
    assert cycle["index_built_at"] == datetime(2026, 11, 30, 21, 47, 40, 501000, tzinfo=UTC)


def test_salience_is_optional(collapse: Path, tmp_path: Path) -> None:
    problems = Problems()
    assert read_salience(None, problems) == {}
    assert read_salience(collapse / "state.db", problems) == {}
    execute(
        collapse / "state.db", "INSERT INTO asset_salience (asset_ref, rank_score, updated_at) VALUES ('b//m', 0.7, 1);"
    )
    assert read_salience(collapse / "state.db", problems) == {"b//m": 0.7}
    assert not list(problems)
    broken = tmp_path / "broken.db"
    broken.write_bytes(b"not a database at all")
    assert read_salience(broken, problems) == {}
    assert [problem.kind for problem in problems] == ["salience-unreadable"]
