"""What a report page prints, line by line, so that two pages can be compared by what they say."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser

from akm_harbor.ab.differences import ABSENT, Difference

_BLOCKS = {
    *("p", "li", "td", "th", "caption", "figcaption", "summary", "div", "pre", "h1", "h2", "h3", "h4", "section"),
    *("text", "title", "desc", "tr", "details", "footer", "dt", "dd", "svg", "figure", "table"),
}
_HEADINGS = {"h1", "h2", "h3"}
_SPOKEN = ("aria-label", "title", "alt")
_LINES_COMPARED = 60_000
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of text that a page prints or speaks, under the heading it stands below."""

    section: str
    text: str


class _Reader(HTMLParser):
    """Collects text by block; style sheets are no text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[Line] = []
        self._section = ""
        self._text: list[str] = []
        self._heading = self._style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCKS:
            self._flush()
        self._heading = self._heading or tag in _HEADINGS
        self._style = tag == "style"
        for name, value in attrs:
            if name in _SPOKEN and value and tag != "svg":
                self.lines.append(Line(self._section, value))

    def handle_endtag(self, tag: str) -> None:
        self._style = False
        if tag in _HEADINGS:
            self._section = _joined(self._text)
            self._heading = False
        if tag in _BLOCKS:
            self._flush()

    def handle_data(self, data: str) -> None:
        if not self._style:
            self._text.append(data)

    def _flush(self) -> None:
        text = _joined(self._text)
        self._text = []
        if text:
            self.lines.append(Line(self._section, text))

    def close(self) -> None:
        super().close()
        self._flush()


def _joined(parts: list[str]) -> str:
    return " ".join("".join(parts).split())


def printed(html: str) -> list[Line]:
    """Everything a page prints or speaks, in order; figures by their labels and descriptions."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.lines


def page_differences(where: str, published: str, derived: str) -> Iterator[Difference]:
    """Lines that a published page prints differently from the page its rows give."""
    one, two = printed(published)[:_LINES_COMPARED], printed(derived)[:_LINES_COMPARED]
    matcher = difflib.SequenceMatcher(None, [x.text for x in one], [x.text for x in two], autojunk=False)
    pairs: Iterator[tuple[str, int, int, int, int]] = (
        iter(
            [("replace", i, i + 1, i, i + 1) for i, (a, b) in enumerate(zip(one, two, strict=True)) if a.text != b.text]
        )
        if len(one) == len(two)
        else (op for op in matcher.get_opcodes() if op[0] != "equal")
    )
    for _, a, b, c, d in pairs:
        for step in range(max(b - a, d - c)):
            left = one[a + step] if a + step < b else None
            right = two[c + step] if c + step < d else None
            section = (right or left or Line("", "")).section
            yield Difference(where, _where(section), _shown(left), _shown(right))


def _where(section: str) -> str:
    return f"section “{section[:60]}”" if section else "top of the page"


def _shown(line: Line | None) -> str:
    if line is None:
        return ABSENT
    return line.text if len(line.text) <= _SHOWN else f"{line.text[: _SHOWN - 1]}…"
