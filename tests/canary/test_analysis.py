import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from akm_harbor.canary.alerts import Kind, Rule, Settings
from akm_harbor.canary.analysis import analyse
from akm_harbor.canary.columns import CYCLES, TABLES
from akm_harbor.canary.explain import why_lost
from akm_harbor.canary.listing import as_text, listing
from akm_harbor.canary.locate import locate
from akm_harbor.canary.simulate.history import Story, tell
from akm_harbor.canary.sources import Gathered, gather, write_dataset
from akm_harbor.canary.status import verdict
from akm_harbor.canary.store import mint_set, take_snapshot
from akm_harbor.errors import AkmHarborError
from akm_harbor.report.verdict import to_plain
from akm_harbor.tables.dataset import read_table
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import StoreCorruptError
from tests.canary.support import execute, unpack

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def _told(story: Story) -> Gathered:
    found = Gathered(sources=[story.label])
    for name, rows in tell(story).items():
        found.rows[name] += rows
    return found


def test_a_collapsed_store_warns_with_numbers_and_names(collapse: Path) -> None:
    (store,) = analyse(gather([collapse])).stores
    assert (store.status, store.confidence) == ("warn", "high")
    assert "16 of 40 canaries found" in store.message
    newest = [finding for finding in store.findings if finding.position == 11]
    assert [finding.alert.kind for finding in newest] == [Kind.RECALL, Kind.DECLINE, Kind.SHRINK]
    lost = newest[0].lost
    assert {one.anchor_ref for one in lost} >= {"memories/bream-proxy-headers", "memories/lynx-retry-budget"}
    # the index beside it is still the one of the newest cycle, so it can say what became of them
    assert all(one.why == "gone, and no asset names it as its source" for one in lost)
    assert newest[0].next


def test_an_index_that_moved_on_is_not_asked_about_the_past(collapse: Path) -> None:
    execute(collapse / "index.db", "DELETE FROM entries_fts; DELETE FROM entries;")
    (store,) = analyse(gather([collapse])).stores
    assert {one.why for one in store.findings[0].lost} == {"not found; akm records no more than the rank"}


@pytest.mark.parametrize(
    ("row", "why", "instead"),
    [
        ({"anchor_present": True, "results": 10, "first_ref": "m/x"}, "still there, but 10 others come first", "m/x"),
        ({"anchor_present": True, "results": 2, "first_ref": "m/x"}, "reworded", "m/x"),
        ({"anchor_present": False, "followers": ["m/y"], "first_ref": "m/x"}, "merged or renamed into m/y", "m/y"),
        ({"anchor_present": False, "followers": [], "first_ref": None}, "gone, and no asset names it", None),
        ({"anchor_present": None}, "akm records no more than the rank", None),
        (None, "akm records no more than the rank", None),
    ],
)
def test_why_a_canary_is_lost(row: dict | None, why: str, instead: str | None) -> None:
    said, replaced = why_lost({"hit": False, **row} if row is not None else None)
    assert why in said
    assert replaced == instead


def test_snapshots_of_a_real_store_name_what_became_of_each_anchor(tmp_path: Path) -> None:
    folder = tmp_path / "akm"
    files = None
    for number in range(12):
        unpack(f"real/index-{number:02d}.db", folder / "index.db")
        files = locate(folder)
        if number == 0:
            mint_set(files, files.history, Problems(), now=NOW)
        take_snapshot(files, files.history, Problems(), now=NOW + timedelta(days=number))
    assert files is not None
    for source in (folder, files.history):
        (store,) = analyse(gather([source])).stores
        assert store.status == "warn"
        assert len(store.rows) == 12
        reasons = {one.why for finding in store.findings if finding.position == 11 for one in finding.lost}
        assert reasons == {
            "gone, and no asset names it as its source",
            "still there, but reworded: it no longer has the words of its question",
        }


def test_too_little_history_is_unknown_and_a_quiet_one_passes() -> None:
    short = analyse(_told(Story("s", days=2)))
    assert (short.status, short.stores[0].confidence) == ("unknown", "low")
    assert "Too little history" in short.stores[0].message
    medium = analyse(_told(Story("s", days=4)))
    assert (medium.status, medium.stores[0].confidence) == ("pass", "medium")
    long = analyse(_told(Story("s", days=30)))
    assert (long.status, long.stores[0].confidence) == ("pass", "high")
    assert verdict(long)["exit_code"] == 0
    assert verdict(short)["exit_code"] == 4


def test_the_worst_store_decides(collapse: Path) -> None:
    found = gather([collapse])
    for name, rows in tell(Story("quiet", days=30)).items():
        found.rows[name] += rows
    result = analyse(found)
    assert [store.status for store in result.stores] == ["warn", "pass"]
    plain = to_plain(verdict(result))
    assert plain["status"] == "warn"
    assert plain["exit_code"] == 3
    assert plain["stores"][0]["alerts"][0]["lost"][0]["anchor_ref"]


def test_the_rule_is_the_users_choice(collapse: Path) -> None:
    (store,) = analyse(gather([collapse]), Rule.AS_AKM).stores
    assert [finding.alert.kind for finding in store.findings[:2]] == [Kind.RECALL, Kind.SHRINK]
    assert "dropped ≥0.15" in store.message


def test_sets_are_never_joined() -> None:
    result = analyse(_told(Story("s", days=12, refresh_at=10)), settings=Settings(window=2))
    (store,) = result.stores
    assert store.judged[Rule.CALIBRATED].judged == (False, False, *[True] * 8, False, False)
    assert len(listing(result)[0].cycles) == 2


def test_a_dataset_gives_what_its_sources_gave(collapse: Path, tmp_path: Path) -> None:
    found = gather([collapse])
    write_dataset(found, tmp_path / "dataset", "x")
    again = gather([tmp_path / "dataset"])
    for table in TABLES:
        assert again.rows[table.name] == table.from_rows(found.rows[table.name]).to_pylist()
    assert read_table(tmp_path / "dataset", CYCLES).num_rows == 12
    first, second = analyse(found).stores[0], analyse(again).stores[0]
    assert (first.message, first.status) == (second.message, second.status)


def test_several_stores_of_one_name_are_told_apart(tmp_path: Path, collapse: Path) -> None:
    for place in ("one", "two"):
        shutil.copytree(collapse, tmp_path / place / "akm")
    result = analyse(gather([tmp_path / "one" / "akm", tmp_path / "two" / "akm"]))
    assert [store.label for store in result.stores] == ["one/akm", "two/akm"]


def test_one_broken_source_does_not_hide_the_others(tmp_path: Path, collapse: Path) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "state.db").write_bytes((collapse / "state.db").read_bytes()[:5000])
    result = analyse(gather([broken, collapse]))
    assert [store.label for store in result.stores] == ["collapse"]
    assert {problem.kind for problem in result.problems} == {"sqlite-corrupt"}
    with pytest.raises(StoreCorruptError):
        gather([broken])


def test_nothing_to_look_at_says_why(healthy: Path, tmp_path: Path) -> None:
    with pytest.raises(AkmHarborError, match="never wrote a cycle"):
        analyse(gather([healthy]))
    unpack("healthy/index.db", tmp_path / "fresh" / "index.db")
    with pytest.raises(AkmHarborError, match="no history yet"):
        gather([tmp_path / "fresh"])


def test_the_listing(collapse: Path) -> None:
    result = analyse(gather([collapse]))
    (store,) = listing(result)
    assert len(store.canaries) == 40
    assert len(store.cycles) == 6
    assert store.cycles[-1].alerts == ("collapse-recall", "collapse-decline", "collapse-shrink")
    text = as_text((store,))
    assert "canary-mpumy6kj-7724, 40 canaries" in text
    assert "memories/dace-locale-files" in text
    assert "16/40" in text
