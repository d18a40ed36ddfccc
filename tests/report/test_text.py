import pytest

from akm_harbor.report.text import short, slug, visible


def test_direction_marks_and_controls_become_code_points():
    assert visible("safe\u202etxt.exe") == "safe⟨U+202E⟩txt.exe"
    assert visible("a\x1b[31mb\x00c") == "a⟨U+001B⟩[31mb⟨U+0000⟩c"
    assert visible("zero\u200bwidth\ufeff") == "zero⟨U+200B⟩width⟨U+FEFF⟩"
    assert visible("lone \ud800 surrogate").encode()
    assert visible("tabs\tand\nlines stay, \u00e9 too") == "tabs\tand\nlines stay, \u00e9 too"


def test_long_text_is_cut_and_says_so():
    assert visible("x" * 1_000_000, 10) == "x" * 10 + "… (1,000,000 characters)"
    assert visible("x" * 10, 10) == "x" * 10


def test_short_keeps_both_ends_on_one_line():
    assert short("a\n b") == "a b"
    cut = short("prefix-" + "m" * 200 + "-suffix", 20)
    assert len(cut) == 20
    assert cut.startswith("prefix-")
    assert short("m" * 30_000_000, 20).count("m") < 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [("akm/t1", "akm-t1"), ("../../etc/passwd", "etc-passwd"), ("Ünïcode", "unicode"), ("日本", "x"), ("", "x")],
)
def test_slug_is_harmless(text, expected):
    assert slug(text) == expected
