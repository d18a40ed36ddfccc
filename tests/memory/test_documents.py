"""Cutting a history, naming its documents, finding its evidence."""

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.documents import (
    History,
    check_corpus,
    check_granularity,
    name_documents,
    opaque_name,
)
from tests.memory.histories import boats, ok, question, turn


def keys(history):
    return [piece.key for piece in history.pieces]


def test_turns_sessions_and_windows():
    assert keys(History(boats(), "locomo", "turn")) == ["0:0", "0:1", "1:0", "1:1", "2:0", "2:1"]
    assert keys(History(boats(), "locomo", "session")) == ["0", "1", "2"]
    assert keys(History(boats(), "locomo", "window:2")) == ["0:0-1", "1:0-1", "2:0-1"]
    assert keys(History(boats(), "locomo", "window:5")) == ["0:0-1", "1:0-1", "2:0-1"]


def test_texts_are_written_as_each_benchmark_has_them():
    history = History(boats(), "locomo", "session")
    assert history.pieces[0].text == "User: The red boat lies at the north pier.\nAssistant: Noted."
    assert history.turn_text(turn("x", "look", caption="a boat")) == "User: look [a boat]"
    user = History(boats(), "longmemeval", "session", "user")
    assert user.pieces[0].text == "The red boat lies at the north pier."  # as upstream: contents alone


def test_documents_without_text_are_counted_not_stored():
    history = History(boats(), "longmemeval", "turn", "user")
    assert keys(history) == ["0:0", "1:0", "2:0"]
    silent = boats()
    only = silent.sessions[2].turns[1]
    assert only.text == ""
    assert History(silent, "longmemeval", "turn").empty_pieces == 0  # `Assistant: ` is text


def test_names_say_nothing_and_follow_from_the_seed():
    history = History(boats(), "locomo", "turn")
    one, same, other = (name_documents(history, seed) for seed in (1, 1, 2))
    assert one == same
    assert {d.name for d in one.values()}.isdisjoint({d.name for d in other.values()})
    assert {d.text for d in one.values()} == {d.text for d in other.values()}
    for document in one.values():
        assert len(document.name) == 13
        assert "answer" not in document.name
    assert len({opaque_name("salt", n) for n in range(10_000)}) == 10_000


def test_documents_come_in_no_order():
    orders = {tuple(name_documents(History(boats(), "locomo", "turn"), seed)) for seed in range(20)}
    assert len(orders) > 10


def test_gold_follows_granularity():
    asked = question(evidence=ok(["s1_1"], ["s1"]))
    assert History(boats(asked), "locomo", "turn").gold(asked).units == {"s1_1"}
    assert History(boats(asked), "locomo", "session").gold(asked).units == {"s1"}
    assert History(boats(asked), "locomo", "turn").gold(asked).texts == ("User: The red boat lies at the north pier.",)


def test_the_user_corpus_cannot_hold_what_the_assistant_said():
    asked = question(evidence=ok(["s1_2"], ["s1"]))
    assert History(boats(asked), "longmemeval", "session", "all").gold(asked).status == "ok"
    gold = History(boats(asked), "longmemeval", "session", "user").gold(asked)
    assert (gold.units, gold.status) == (frozenset(), "none")


def test_sessions_that_share_an_id_cover_the_same_evidence():
    history = History(boats(), "longmemeval", "session")
    assert [history.covers(piece) for piece in history.pieces] == [("s1",), ("s2",), ("s1",)]


def test_defective_evidence_keeps_its_status_and_mended_units():
    asked = question(evidence=ok(["s1_1"], ["s1"], repaired=("s1_1", "s3_1"), status="malformed"))
    gold = History(boats(asked), "locomo", "turn").gold(asked)
    assert (gold.status, gold.repaired) == ("malformed", {"s1_1", "s3_1"})
    dangling = question(evidence=ok(["s1_1"], ["s1"], status="dangling"))
    assert History(boats(dangling), "locomo", "turn").gold(dangling).repaired == frozenset()


@pytest.mark.parametrize("text", ["turns", "window", "window:0", "window:-1", "window:2.5", ""])
def test_unknown_granularities_are_refused(text):
    with pytest.raises(UsageError, match="no granularity"):
        check_granularity(text)


def test_corpora_are_checked():
    assert check_corpus("longmemeval", "user") == "user"
    with pytest.raises(UsageError, match="no user"):
        check_corpus("locomo", "user")
    with pytest.raises(UsageError, match="no corpus"):
        check_corpus("beam", "assistant")
