import math
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from akm_harbor.canary.layout import Entry, detect, read_entries
from akm_harbor.canary.query import (
    any_word_expression,
    comparable,
    lexical_plan,
    prefix_expression,
    search,
    strict_expression,
)
from tests.canary.layouts import build
from tests.canary.support import execute, recorded

GOLDEN = recorded("golden-fts-hash-bigram.json")["fts"]


def _found(path: Path, query: str, limit: int = 10) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        index = detect(db)
        refs = {row.row_id: row.ref for row in read_entries(db, index) if isinstance(row, Entry)}
        return [refs[row_id] for row_id in search(db, index, query, limit)]


def test_every_golden_query_comes_out_as_akm_has_it(healthy: Path) -> None:
    assert len(GOLDEN) == 29
    for case in GOLDEN:
        expression = strict_expression(case["query"])
        assert expression == case["sanitized"]
        assert prefix_expression(expression) == case["prefix"]
        assert _found(healthy / "index.db", case["query"], 50) == [ref for ref, _ in case["hits"]], case["query"]


def test_damage_is_not_mistaken_for_no_result(healthy: Path) -> None:
    execute(healthy / "index.db", "DROP TABLE entries_fts_data;")
    with pytest.raises(sqlite3.Error):
        _found(healthy / "index.db", "heron")


def test_the_later_plan() -> None:
    assert lexical_plan("Heron heron ÖL ab") == ('"Heron" "ÖL" "ab"', '"Heron"* "ÖL" "ab"', '"Heron"* OR "ÖL" OR "ab"')
    assert lexical_plan("memories/heron") == ('"memories" "heron"', '"memories"* "heron"*')
    assert lexical_plan("ab") == ('"ab"',)
    assert lexical_plan(" ... ") == ()


def test_any_word_leaves_out_function_words_unless_nothing_else_is_left() -> None:
    assert any_word_expression("How is the Heron") == '"heron"'
    assert any_word_expression("how is the") == '"how" OR "is" OR "the"'
    assert any_word_expression("!") is None


@pytest.mark.parametrize("layout", ["document", "fragments", "units", "contentless"])
def test_words_of_name_and_description_find_the_asset(tmp_path: Path, layout: str) -> None:
    path = build(tmp_path / "index.db", layout, "x")
    assert _found(path, "heron cache entries expire")[0] == "memories/heron-cache"
    assert _found(path, "OTTER and queue")[0] == "memories/otter-queue"
    assert _found(path, "nothing whatever") == []


@pytest.mark.parametrize(
    ("layout", "sees"), [("document", False), ("fragments", True), ("units", True), ("contentless", False)]
)
def test_bodies_are_searched_where_the_layout_holds_them(tmp_path: Path, layout: str, *, sees: bool) -> None:
    found = _found(build(tmp_path / "index.db", layout, "x"), "marmot")
    # a shorter body is the better match
    assert found == (["memories/otter-queue", "lessons/flags"] if sees else [])
    assert _found(tmp_path / "index.db", "marmot", 1) == found[:1]


def test_relaxed_search_comes_last_and_finds_any_word(tmp_path: Path) -> None:
    path = build(tmp_path / "index.db", "document", "22")
    assert set(_found(path, "heron otter")) == {"memories/heron-cache", "memories/otter-queue"}
    assert _found(path, "heron/otter") == []


def test_scores_of_two_tables_become_comparable() -> None:
    assert comparable(-5.0, fragment=True) > comparable(-5.0) > comparable(-1.0) > comparable(0.0) == 0.3
    assert comparable(-math.inf) == 0.8
    assert comparable(math.nan) == 0.3
