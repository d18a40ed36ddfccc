"""What a reader sees: dates, order, and budgets that are met."""

import itertools

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory import tokens
from akm_harbor.memory.context import RANK, TIME, Passage, Reading, count, filled, passages, whole
from akm_harbor.memory.documents import History
from akm_harbor.memory.protocol import Hit
from tests.memory.histories import boats

WORDS = [
    "amber",
    "bridge",
    "copper",
    "dune",
    "ember",
    "fjord",
    "garnet",
    "harbor",
    "island",
    "jasper",
    "kelp",
    "lagoon",
    "meadow",
    "nectar",
]


def found(n=40, length=30):
    """Passages of different lengths, the later ones first."""
    return [
        Passage(f"[day {i}]\n" + " ".join(itertools.islice(itertools.cycle(WORDS[i % 7 :]), length + i)), f"{i:03d}")
        for i in reversed(range(n))
    ]


def test_dates_stand_above_what_was_said():
    pieces = History(boats(), "locomo", "turn").pieces[:1]
    assert whole(passages(pieces, [Hit("m", 1.0)])).text.startswith("[2024/01/01 (Mon) 10:00]\nUser: The red boat")


def test_a_backends_own_text_takes_the_place_of_the_stored_one():
    pieces = History(boats(), "locomo", "turn").pieces[:1]
    assert passages(pieces, [Hit("m", 1.0, "short")])[0].text == "[2024/01/01 (Mon) 10:00]\nshort"


def test_time_puts_the_earlier_document_first_and_rank_does_not():
    assert whole(found(3), order=RANK).text.startswith("[day 2]")
    assert whole(found(3), order=TIME).text.startswith("[day 0]")


@pytest.mark.parametrize("budget", [50, 100, 173, 500, 1000])
@pytest.mark.parametrize("ranked", [True, False])
@pytest.mark.parametrize("order", [TIME, RANK])
def test_a_filled_context_is_within_two_percent_and_never_above(budget, ranked, order):
    made = filled(found() if ranked else found()[::-1], budget, order, ranked=ranked)
    assert made.filled
    assert budget * 0.98 <= made.tokens <= budget
    assert made.tokens == count(made.text)


def test_what_is_cut_is_the_lowest_ranked_or_the_earliest():
    best = filled(found(), 300)
    assert "[day 39]" in best.text
    assert "[day 0]" not in best.text
    latest = filled(found()[::-1], 300, ranked=False)
    assert latest.text.endswith(found()[0].text)


def test_too_little_text_does_not_fill_and_says_so():
    made = filled(found(2), 1000)
    assert made.filled is False
    assert made.text == whole(found(2), order=TIME).text
    assert filled([], 1000).tokens == 0


def test_a_cut_keeps_the_budget_where_characters_have_several_tokens():
    made = filled([Passage("\u6771\u4eac\U0001f6a4" * 200, "0")], 101)
    assert 99 <= made.tokens <= 101
    assert "\ufffd" not in made.text


def test_cutting_takes_the_beginning_or_the_end():
    assert tokens.cut("one two three four", 2) == "one two"
    assert tokens.cut("one two three four", 2, keep_end=True).strip() == "three four"
    assert tokens.cut("one two", 0) == ""


def test_without_a_vocabulary_the_cut_follows_the_estimate(monkeypatch):
    tokens.counter.cache_clear()
    monkeypatch.setattr(tokens, "_vocabulary_folder", lambda: None)
    assert tokens.cut("12345678", 1) == "1234"
    assert tokens.cut("12345678", 1, keep_end=True) == "5678"
    tokens.counter.cache_clear()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"order": "size"}, "no order"),
        ({"budgets": (10,)}, "at least 50"),
        ({"budgets": ()}, "at least 50"),
        ({"budgets": (None, None)}, "named twice"),
        ({"depth": 0}, "depth"),
    ],
)
def test_what_cannot_be_meant_is_refused(changes, said):
    with pytest.raises(UsageError, match=said):
        Reading(**changes)
