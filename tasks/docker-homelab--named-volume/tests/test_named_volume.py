"""PostgreSQL keeps its data in the named volume ledger-data; nothing else changes."""

from pathlib import Path

import akm_verify

BEFORE = akm_verify.parse_document(Path(__file__).with_name("before.yaml").read_text(encoding="utf-8"), "yaml")


def given():
    return akm_verify.load_document("compose.yaml")


def without(document, *path):
    """A copy of a document without the value at a path."""
    head, rest = path[0], path[1:]
    if not rest:
        return {key: value for key, value in document.items() if key != head}
    return {**document, head: without(document[head], *rest)}


def mount(item):
    """A mount in either syntax, as (kind, source, target)."""
    if isinstance(item, dict):
        return item.get("type"), item.get("source"), item.get("target")
    source, _, target = str(item).partition(":")
    return "volume", source, target


def test_data_lies_in_the_volume():
    mounts = given()["services"]["db"].get("volumes") or []
    assert [mount(item) for item in mounts] == [("volume", "ledger-data", "/var/lib/postgresql/data")]


def test_volume_is_declared():
    assert list(given().get("volumes") or {}) == ["ledger-data"]
    assert given()["volumes"]["ledger-data"] in (None, {})


def test_rest_is_as_before():
    assert akm_verify.compare(without(without(given(), "services", "db", "volumes"), "volumes"), BEFORE) == []
