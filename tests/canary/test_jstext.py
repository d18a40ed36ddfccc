import pytest

from akm_harbor.canary.jstext import code_unit_key, collapsed, fixed, number, utf16_length, words


def test_white_space_is_javascripts() -> None:
    assert words("a\u00a0b\ufeffc\u3000d") == ["a", "b", "c", "d"]
    assert words("a\x1cb\x85c") == ["a\x1cb\x85c"]
    assert collapsed("  A \t\n B\ufeff") == "a b"


def test_length_counts_code_units() -> None:
    assert utf16_length("a😀é") == 4


def test_order_is_by_code_unit_not_by_code_point() -> None:
    late, astral = "\uff61", "😀"
    assert late < astral
    assert code_unit_key(astral) < code_unit_key(late)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.8125, "0.813"), (0.0625, "0.063"), (0.75, "0.750"), (1.0005, "1.000"), (1, "1.000")]
)
def test_fixed_rounds_exact_ties_up(value: float, shown: str) -> None:
    assert fixed(value, 3) == shown


def test_numbers_in_sentences() -> None:
    assert (number(0.15), number(1.0), number(0.1)) == ("0.15", "1", "0.1")
