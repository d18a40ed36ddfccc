import pytest
from jinja2 import UndefinedError
from markupsafe import Markup

from akm_harbor.errors import AkmHarborError
from akm_harbor.report.offline import external_references
from akm_harbor.report.page import environment, render

HOSTILE = "<script>alert(1)</script></style>{{ 7*7 }}{% raw %}\u202e"


def test_everything_printed_is_escaped_and_visible():
    page = environment().from_string("<p title='{{ x }}'>{{ x }}</p>").render(x=HOSTILE)
    assert "<script>" not in page
    assert "49" not in page
    assert page.count("&lt;script&gt;") == 2
    assert "\u202e" not in page


def test_missing_values_fail_loudly_and_none_is_a_dash():
    env = environment()
    assert env.from_string("{{ x }}").render(x=None) == "\u2013"
    with pytest.raises(UndefinedError):
        env.from_string("{{ x }}").render()


def test_page_is_self_contained(tmp_path):
    (tmp_path / "t.html.j2").write_text('{% extends "page.html.j2" %}{% block body %}{{ body }}{% endblock %}')
    context = {"title": HOSTILE, "version": "1", "body": HOSTILE}
    page = render("t.html.j2", context, tmp_path)
    assert external_references(page) == []
    assert "default-src 'none'" in page
    with pytest.raises(AkmHarborError, match=r"refers to 'https://x\.test/a\.png'"):
        render("t.html.j2", {**context, "body": Markup("<img src='https://x.test/a.png'>")}, tmp_path)
