import pytest

from akm_harbor.report.offline import external_references

OUTSIDE = [
    '<img src="https://x.test/a.png">',
    '<img srcset="b.png 2x">',
    "<link rel=stylesheet href=//x.test/a.css>",
    '<script src="a.js"></script>',
    "<script>fetch('//x')</script>",
    '<iframe srcdoc="x"></iframe>',
    '<base href="https://x.test/">',
    '<meta http-equiv="Refresh" content="0;url=https://x.test">',
    "<style>@import 'https://x.test/a.css';</style>",
    "<style>@import url(a.css);</style>",
    "<p style=\"background: URL( 'https://x.test/a' )\">",
    '<svg><image xlink:href="https://x.test/a"/></svg>',
    '<svg><use href="https://x.test/a#b"/></svg>',
    '<video poster="a.jpg"></video>',
    '<form action="https://x.test"></form>',
    '<object data="a.swf"></object>',
    '<a href=" JavaScript:alert(1)">x</a>',
    '<a href="#x" ping="https://x.test">x</a>',
]
INSIDE = [
    '<img src="data:image/png;base64,AAAA">',
    '<a href="https://x.test/">read more</a>',
    '<a href="#tasks">x</a>',
    '<svg><use xlink:href="#marker"/></svg>',
    "<style>p { fill: url(#clip) }</style>",
    "<p>&lt;script src=https://x.test&gt; url(https://x.test)</p>",
    '<link rel="icon" href="data:,">',
]


@pytest.mark.parametrize("html", OUTSIDE)
def test_found(html):
    assert external_references(f"<html><body>{html}</body></html>")


@pytest.mark.parametrize("html", INSIDE)
def test_harmless(html):
    assert external_references(f"<html><body>{html}</body></html>") == []
