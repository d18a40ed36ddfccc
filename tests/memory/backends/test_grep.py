"""Files and the real grep."""

import pytest

from akm_harbor.memory.backends import grep as grep_module
from akm_harbor.memory.backends.grep import Grep
from akm_harbor.memory.protocol import BackendError, Document, Query

DOCUMENTS = [
    Document("maaa", "User: The red boat lies at the north pier: -e flag", "1"),
    Document("mbbb", "User: A boat, a boat, a BOAT!\nAnd naïve tea.", "2"),
    Document("mccc", "User: boats and piers", "3"),
]


@pytest.fixture
def backend(tmp_path):
    made = Grep(tmp_path)
    made.ingest(DOCUMENTS)
    return made


def names(hits):
    return [hit.name for hit in hits]


def test_distinct_words_come_first_then_the_number_of_matches(backend):
    assert names(backend.search(Query("Where is the red boat?"), 5)) == ["maaa", "mbbb"]
    assert names(backend.search(Query("boat"), 5)) == ["mbbb", "maaa"]
    assert names(backend.search(Query("boat"), 1)) == ["mbbb"]


def test_whole_words_only_and_nothing_is_an_answer(backend):
    assert names(backend.search(Query("pier"), 5)) == ["maaa"]
    assert backend.search(Query("zeppelin"), 5) == []
    assert backend.search(Query("?!"), 5) == []


def test_queries_cannot_become_flags_or_patterns(backend):
    assert names(backend.search(Query("-e flag"), 5)) == ["maaa"]
    assert backend.search(Query("--include=x .*"), 5)[:0] == []
    assert names(backend.search(Query("na.ve tea"), 5)) == ["mbbb"]


def test_ties_go_by_place_not_by_name(tmp_path):
    made = Grep(tmp_path / "x")
    made.ingest([Document("mzz", "kite", "1"), Document("maa", "kite", "2")])
    assert names(made.search(Query("kite"), 2)) == ["mzz", "maa"]
    made.reset()
    assert made.search(Query("kite"), 2) == []


def test_a_machine_without_grep_is_told(monkeypatch, tmp_path):
    grep_module._grep.cache_clear()
    monkeypatch.setattr(grep_module.shutil, "which", lambda _: None)
    with pytest.raises(BackendError, match="no grep"):
        Grep(tmp_path)
    grep_module._grep.cache_clear()
