"""Check that an HTML page is one file: nothing in it makes a browser ask for anything."""

import re
from html.parser import HTMLParser

_LOADING = {
    "src",
    "srcset",
    "poster",
    "data",
    "background",
    "action",
    "formaction",
    "manifest",
    "ping",
    "cite",
    "longdesc",
    "codebase",
    "archive",
}
_HARMLESS = re.compile(r"^\s*(?:#|data:|about:blank|$)", re.IGNORECASE)
_CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]*)|@import\s+['\"]?([^'\";]*)", re.IGNORECASE)
_LINKS = {"a", "area"}


class _Finder(HTMLParser):
    """Collects what a browser would load; a link one has to click is not loaded."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_style = tag == "style"
        values = {name: value or "" for name, value in attrs}
        for name, value in values.items():
            if name == "style":
                self._css(value)
            elif name in _LOADING or (name in {"href", "xlink:href"} and tag not in _LINKS):
                self._note(value)
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            self.found.append(values.get("content", "refresh"))
        if tag in {"base", "iframe", "object", "embed", "script"}:
            self.found.append(f"<{tag}>")
        if tag in _LINKS and re.match(r"\s*(?:javascript|vbscript):", values.get("href", ""), re.IGNORECASE):
            self.found.append(values["href"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._in_style = False

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._in_style = False

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._css(data)

    def _css(self, text: str) -> None:
        for url, imported in _CSS_URL.findall(text):
            self._note(url or imported)

    def _note(self, value: str) -> None:
        if not _HARMLESS.match(value):
            self.found.append(value.strip()[:200])


def external_references(html: str) -> list[str]:
    """Everything in the page that a browser would fetch, or that could make it fetch, in order.

    Inline data, fragments, and links that wait for a click are fine; a script is not, for who knows what it does.
    """
    finder = _Finder()
    finder.feed(html)
    finder.close()
    return finder.found
