import xml.etree.ElementTree as ET

import pytest

from akm_harbor.report.figures import figure, to_svg
from akm_harbor.report.offline import external_references

SVG = "{http://www.w3.org/2000/svg}"


def draw(label, title="A title"):
    with figure(4, 2) as (drawn, axes):
        axes.barh([0], [1], hatch="//")
        axes.set_yticks([0], [label])
        return to_svg(drawn, title, f"described: {label}")


@pytest.mark.parametrize("label", ["plain", "<script>alert(1)</script>", "$x^{$ \\frac", "日本語 \u202e", "]]><!--"])
def test_hostile_labels_are_inert(label):
    svg = draw(label)
    root = ET.fromstring(svg)
    assert not list(root.iter(f"{SVG}script"))
    assert external_references(str(svg)) == []
    texts = [t.text or "" for t in root.iter(f"{SVG}text")]
    assert any((t and t in label.replace("\u202e", "")) or label in t for t in texts)


def test_figures_are_deterministic_and_do_not_share_ids():
    assert draw("x") == draw("x")
    ids = [{e.get("id") for e in ET.fromstring(draw("x", t)).iter() if e.get("id")} for t in ("One", "Two")]
    referenced = [{i for i in found if i.startswith(("p", "m", "h")) and len(i) == 11} for found in ids]
    assert not referenced[0] & referenced[1]


def test_a_reader_is_told_what_it_shows():
    root = ET.fromstring(draw("x"))
    assert root.get("role") == "img"
    assert [root.find(f"{SVG}{name}").text for name in ("title", "desc")] == ["A title", "described: x"]
    assert root.get("width") is None
    assert root.get("viewBox")
