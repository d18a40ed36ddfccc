import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from akm_harbor.canary.entries import Document, Heading
from akm_harbor.canary.fields import rows
from akm_harbor.canary.layout import Entry, Layout
from akm_harbor.canary.mint import Canary, CanarySet, mint, mint_as_akm, new_set_id
from akm_harbor.canary.refs import concept_id, type_of
from akm_harbor.canary.snapshot import read_index
from akm_harbor.tables.sqlite import open_readonly
from tests.canary.support import unpack

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def _entry(row: int, type_: str, name: str, description: str | None = None, **more: object) -> Entry:
    document = Document(name=name, type=type_, description=description, **more)  # type: ignore[arg-type]
    return Entry(row, f"/s:{type_}:{name}", concept_id(type_, name), document)


def _minted(found: CanarySet | None) -> list[tuple[str, str]]:
    assert found is not None
    return [(canary.anchor_ref, canary.query) for canary in found.canaries]


@pytest.mark.parametrize(("recording", "count"), [("real", 40), ("odd", 50)])
def test_as_akm_mints_the_very_set_akm_minted(tmp_path: Path, recording: str, count: int) -> None:
    """Two stores built with the real CLI; `odd` has Unicode, operators, blanks, folders and no frontmatter."""
    reading = read_index(unpack(f"{recording}/index-00.db", tmp_path / "index.db"))
    with open_readonly(unpack(f"{recording}/state.db", tmp_path / "state.db")) as db:
        akms = [(row["anchor_ref"], row["query"]) for row in rows(db, "canary_queries")]
    assert len(akms) == count
    assert _minted(mint_as_akm(reading.entries, at=NOW, count=count)) == akms


def test_as_akm_on_the_older_recording(healthy: Path, collapse: Path) -> None:
    """The collapse recording began with the assets of the healthy one."""
    with open_readonly(collapse / "state.db") as db:
        akms = [(row["anchor_ref"], row["query"]) for row in rows(db, "canary_queries")]
    assert _minted(mint_as_akm(read_index(healthy / "index.db").entries, at=NOW)) == akms


def test_as_akm_drops_an_empty_query_after_the_count_is_taken() -> None:
    entries = [_entry(1, "memory", "a"), _entry(2, "memory", "bb")]
    assert _minted(mint_as_akm(entries, at=NOW, count=3)) == [("memories/bb", "bb")]


def test_as_akm_reads_salience_under_the_short_id_only() -> None:
    entries = [_entry(1, "memory", "aa"), _entry(2, "memory", "bb"), _entry(3, "memory", "cc")]
    found = mint_as_akm(entries, at=NOW, salience={"bench//memories/cc": 9.0, "memories/bb": 1.0})
    assert [ref for ref, _ in _minted(found)] == ["memories/bb", "memories/aa", "memories/cc"]


def test_salience_then_utility_then_name() -> None:
    entries = [_entry(i, "memory", name) for i, name in enumerate(("aa", "bb", "cc", "dd"), 1)]
    found = mint(entries, Layout.ENTRY_JSON, at=NOW, salience={"bench//memories/dd": 0.9}, utility={3: 2.0})
    assert [ref for ref, _ in _minted(found)] == ["memories/dd", "memories/cc", "memories/aa", "memories/bb"]


def test_a_third_of_each_type_and_the_rest_from_what_is_left() -> None:
    entries = [_entry(i, "memory", f"m{i:02d}") for i in range(30)]
    entries += [_entry(100 + i, "lesson", f"l{i}") for i in range(2)]
    entries += [_entry(200 + i, "knowledge", f"k{i}") for i in range(9)]
    entries += [_entry(300, "skill", "s0")]
    found = [type_of(ref) for ref, _ in _minted(mint(entries, Layout.ENTRY_JSON, at=NOW, count=12))]
    assert found == ["memory"] * 4 + ["lesson"] * 2 + ["knowledge"] * 4 + ["knowledge"] * 2


def test_the_designed_query_prefers_the_heading_and_says_nothing_twice() -> None:
    toc = (Heading(" "), Heading("Sizing the Pool"))
    entry = _entry(1, "knowledge", "db-pool_size", "Pool size of it", tags=("db", "Pool", "x y", "fourth"), toc=toc)
    assert _minted(mint([entry], Layout.FRAGMENTS, at=NOW)) == [("knowledge/db-pool_size", "db pool size Sizing the")]


def test_only_words_the_search_can_match_are_asked() -> None:
    entry = _entry(1, "memory", "café-menu", "OR the 日本 list")
    assert _minted(mint([entry], Layout.ENTRY_JSON, at=NOW)) == [("memories/café-menu", "menu the list")]
    assert _minted(mint([entry], Layout.UNITS, at=NOW)) == [("memories/café-menu", "café menu the 日本 list")]


def test_what_cannot_be_asked_is_passed_over_before_the_count() -> None:
    entries = [_entry(1, "memory", "日本"), _entry(2, "memory", "bb")]
    assert _minted(mint(entries, Layout.ENTRY_JSON, at=NOW, count=3)) == [("memories/bb", "bb")]
    assert mint(entries[:1], Layout.ENTRY_JSON, at=NOW) is None
    assert mint([], Layout.ENTRY_JSON, at=NOW) is None


def test_ids_go_on_from_where_they_were() -> None:
    found = mint([_entry(1, "memory", "aa")], Layout.ENTRY_JSON, at=NOW, first_id=41)
    assert found is not None
    assert found.canaries == (Canary(41, "memories/aa", "aa"),)


def test_the_mint_time_can_be_read_from_the_set_id() -> None:
    match = re.fullmatch(r"canary-([0-9a-z]+)-[0-9a-f]{4}", new_set_id(NOW))
    assert match is not None
    assert int(match[1], 36) == int(NOW.timestamp() * 1000)
