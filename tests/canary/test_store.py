import shutil
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from akm_harbor.canary.layout import Entry
from akm_harbor.canary.locate import StoreFiles, locate
from akm_harbor.canary.store import Settings, load, mint_set, take_snapshot
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.dataset import replace_dataset
from akm_harbor.tables.problems import Problems
from tests.canary.support import digests, execute

NOW = datetime(2026, 9, 1, tzinfo=UTC)
CHANGE = "UPDATE index_meta SET value = '{}' WHERE key = 'builtAt';"


@pytest.fixture
def files(healthy: Path) -> StoreFiles:
    return locate(healthy)


def _rebuild(files: StoreFiles, number: int) -> None:
    assert files.index is not None
    execute(files.index, CHANGE.format(f"2026-10-{number:02d}T00:00:00.000Z"))


def test_mint_snapshot_and_the_same_build_again(files: StoreFiles) -> None:
    before = digests(files.folder)
    made = mint_set(files, files.history, Problems(), now=NOW)
    taken = take_snapshot(files, files.history, Problems(), now=NOW)
    again = take_snapshot(files, files.history, Problems(), now=NOW + timedelta(days=1))
    assert len(made.canaries) == 40
    assert (taken.new, again.new) == (True, False)
    assert again.cycle["ts"] == taken.cycle["ts"] == NOW
    kept = load(files.history)
    assert len(kept.cycles) == 1
    assert len(kept.ranks) == 40
    assert kept.cycles[0]["mean_recall"] == 1.0
    assert digests(files.folder) == before


def test_a_new_build_is_a_new_row(files: StoreFiles) -> None:
    mint_set(files, files.history, Problems(), now=NOW)
    for number in (1, 2, 3):
        _rebuild(files, number)
        take_snapshot(files, files.history, Problems(), now=NOW + timedelta(days=number))
    assert [row["id"] for row in load(files.history).cycles] == [1, 2, 3]


def test_canaries_are_made_once(files: StoreFiles) -> None:
    mint_set(files, files.history, Problems(), now=NOW)
    with pytest.raises(AkmHarborError, match="already has a canary set"):
        mint_set(files, files.history, Problems(), now=NOW)


def test_refresh_retires_the_old_set_and_keeps_its_rows(files: StoreFiles) -> None:
    first = mint_set(files, files.history, Problems(), now=NOW)
    take_snapshot(files, files.history, Problems(), now=NOW)
    second = mint_set(files, files.history, Problems(), count=10, replace=True, now=NOW + timedelta(hours=1))
    take_snapshot(files, files.history, Problems(), now=NOW + timedelta(days=1))  # the same build, another set
    kept = load(files.history)
    active = kept.active()
    assert active is not None
    assert active.id == second.id
    assert [canary.id for canary in second.canaries] == list(range(41, 51))
    assert [row["canary_set_id"] for row in kept.cycles] == [first.id, second.id]
    assert sum(row["active"] for row in kept.queries) == 10


def test_an_empty_index_does_not_cost_the_baseline(files: StoreFiles) -> None:
    first = mint_set(files, files.history, Problems(), now=NOW)
    assert files.index is not None
    execute(files.index, "DELETE FROM entries;")
    with pytest.raises(AkmHarborError, match="no memory, lesson or knowledge"):
        mint_set(files, files.history, Problems(), replace=True, now=NOW)
    active = load(files.history).active()
    assert active is not None
    assert active.id == first.id


def test_two_active_sets_after_an_interrupted_refresh(files: StoreFiles) -> None:
    mint_set(files, files.history, Problems(), now=NOW)
    second = mint_set(files, files.history, Problems(), replace=True, now=NOW + timedelta(seconds=1))
    kept = load(files.history)
    for row in kept.queries:
        row["active"] = 1
    active = kept.active()
    assert active is not None
    assert active.id == second.id


def test_retention_drops_old_cycles_and_never_canaries(files: StoreFiles) -> None:
    mint_set(files, files.history, Problems(), settings=Settings(retention_days=30), now=NOW)
    take_snapshot(files, files.history, Problems(), now=NOW)
    _rebuild(files, 1)
    taken = take_snapshot(files, files.history, Problems(), now=NOW + timedelta(days=31))
    kept = load(files.history)
    assert taken.dropped == 1
    assert [row["ts"] for row in kept.cycles] == [NOW + timedelta(days=31)]
    assert len(kept.ranks) == 40
    assert len(kept.queries) == 40
    assert kept.settings.retention_days == 30


def test_settings_stay_with_the_history(files: StoreFiles) -> None:
    mint_set(files, files.history, Problems(), settings=Settings(k=3, max_generation=7), now=NOW)
    row = take_snapshot(files, files.history, Problems(), now=NOW).cycle
    assert (row["k"], row["max_generation"]) == (3, 7)


def test_without_a_set_there_is_nothing_to_ask(files: StoreFiles) -> None:
    with pytest.raises(AkmHarborError, match="no canary set yet"):
        take_snapshot(files, files.history, Problems())
    assert not files.history.exists()


def test_accepted_changes_since_the_row_before(files: StoreFiles) -> None:
    assert files.state is not None
    mint_set(files, files.history, Problems(), now=NOW)
    first = take_snapshot(files, files.history, Problems(), now=NOW).cycle
    execute(
        files.state,
        "INSERT INTO proposals (id, stash_dir, ref, status, source, created_at, updated_at, content) VALUES "
        "('1', '/s', 'memories/a', 'accepted', 'reflect', '2026-09-01T12:00:00.000Z', '2026-09-01T12:00:00.000Z', ''),"
        "('2', '/s', 'memories/b', 'accepted', 'reflect', '2026-09-09T12:00:00.000Z', '2026-09-09T12:00:00.000Z', '');",
    )
    _rebuild(files, 1)
    second = take_snapshot(files, files.history, Problems(), now=NOW + timedelta(days=3)).cycle
    assert first["accepted_measured"] is None
    assert (second["accepted_measured"], second["accepted_source"]) == (1, "proposals")


def test_two_snapshots_at_once_lose_no_row(files: StoreFiles, tmp_path: Path) -> None:
    mint_set(files, files.history, Problems(), now=NOW)
    copies = []
    for number in range(4):
        shutil.copytree(files.folder, tmp_path / f"copy{number}")
        copies.append(locate(tmp_path / f"copy{number}"))
        _rebuild(copies[-1], number + 1)
    threads = [
        threading.Thread(target=take_snapshot, args=(copy, files.history, Problems()), kwargs={"now": NOW})
        for copy in copies
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(load(files.history).cycles) == 4


def test_a_lock_left_by_a_killed_process_is_broken(files: StoreFiles) -> None:
    import os

    lock = files.history.with_name(f".{files.history.name}.lock")
    lock.touch()
    os.utime(lock, (1, 1))
    assert mint_set(files, files.history, Problems(), now=NOW).canaries
    assert not lock.exists()


def test_another_dataset_is_left_alone(files: StoreFiles) -> None:
    with replace_dataset(files.history) as dataset:
        dataset.write_manifest({"kind": "something else"})
    with pytest.raises(AkmHarborError, match="not a snapshot history"):
        mint_set(files, files.history, Problems())


def test_a_question_that_looks_like_a_secret_is_not_kept(files: StoreFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    from akm_harbor.canary import mint as minting

    plain = minting._designed_query

    def leaky(document: Entry, layout: object) -> str:
        query = plain(document, layout)  # type: ignore[arg-type]
        return f"{query} ghp_0123456789abcdefghijklmnopqrstuvwxyzAB" if "heron" in query else query

    monkeypatch.setattr(minting, "_designed_query", leaky)
    problems = Problems()
    made = mint_set(files, files.history, problems, now=NOW)
    assert len(made.canaries) == 39
    assert [problem.kind for problem in problems] == ["secret-in-canary"]
