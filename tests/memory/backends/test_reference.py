"""The ends of the scale."""

from akm_harbor.memory.backends.reference import FullContext, NoMemory, Oracle
from akm_harbor.memory.protocol import Document, Query

DOCUMENTS = [Document("mb", "two", "2"), Document("ma", "one", "1"), Document("mc", "three", "3")]


def test_no_memory_finds_nothing():
    backend = NoMemory()
    backend.reset()
    assert backend.ingest(DOCUMENTS).docs == 0
    assert backend.search(Query("one"), 5) == []


def test_full_context_is_everything_in_the_order_it_was_said():
    backend = FullContext()
    backend.ingest(DOCUMENTS)
    assert [hit.name for hit in backend.search(Query("x"), 1)] == ["ma", "mb", "mc"]
    assert not backend.ranks
    backend.reset()
    assert backend.search(Query("x"), 1) == []


def test_the_oracle_returns_what_it_was_told_and_no_more():
    backend = Oracle()
    backend.ingest(DOCUMENTS)
    assert [hit.name for hit in backend.search(Query("x", ("mc", "ma")), 5)] == ["ma", "mc"]
    assert [hit.name for hit in backend.search(Query("x", ("mc", "ma")), 1)] == ["ma"]
    assert backend.search(Query("x"), 5) == []
    assert backend.uses_gold
