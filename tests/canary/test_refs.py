import pytest

from akm_harbor.canary.refs import concept_id, reduced, type_of


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("memories/alpha", "memories/alpha"),
        ("bench//memories/alpha", "memories/alpha"),
        (" bench//memories/alpha#part ", "memories/alpha"),
        ("memory:alpha", "memories/alpha"),
        ("bench//memory:alpha", "memories/alpha"),
        ("memories/./deep//x", "memories/./deep//x"),
        ("memories/deep/../alpha", "memories/alpha"),
        ("memories/cafe\u0301", "memories/caf\u00e9"),
        ("https://example.org/x", "https://example.org/x"),
        ("../../etc/passwd", "../../etc/passwd"),
        ("", ""),
    ],
)
def test_every_spelling_comes_down_to_the_short_id(written: str, short: str) -> None:
    assert reduced(written) == short


def test_type_and_id() -> None:
    assert concept_id("memory", "a/b") == "memories/a/b"
    assert concept_id("poem", "ode") == "ode"
    assert type_of("bench//lessons/x") == "lesson"
    assert type_of("memory:x") == "memory"
    assert type_of("poems/x") is None
