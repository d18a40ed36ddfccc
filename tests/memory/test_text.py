"""Words, keywords and leading sentences."""

import pytest

from akm_harbor.memory import text


def test_tokens_are_ascii_runs():
    assert text.tokens("Caroline's 7,000 cafés!") == ["caroline", "s", "7", "000", "caf", "s"]


def test_keywords_keep_order_and_drop_function_words():
    assert text.keywords("When did the choir sing, and where did the choir go?") == ["choir", "sing", "go"]


def test_the_declared_transforms():
    assert text.transform("When did Bo sing?", text.RAW) == "When did Bo sing?"
    assert text.transform("When did Bo sing?", text.KEYWORDS) == "bo sing"
    assert text.transform("Who are you?", text.KEYWORDS) == "Who are you?"


@pytest.mark.parametrize(
    ("content", "limit", "expected"),
    [
        ("One. Two! Three?", 9, "One. Two!"),
        ("One.\n\nTwo   words.", 100, "One. Two words."),
        ("a" * 20, 10, "a" * 9 + "\u2026"),
        ("", 10, ""),
        ("exactly ten", 11, "exactly ten"),
    ],
)
def test_leading_sentences(content, limit, expected):
    assert text.lead(content, limit) == expected
    assert len(text.lead(content, limit)) <= limit
