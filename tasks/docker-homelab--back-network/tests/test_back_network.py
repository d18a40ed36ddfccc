"""db and api share a network without a way out; nothing else changes."""

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


def networks(name):
    value = given()["services"][name].get("networks")
    return None if value is None else sorted(value)


def test_who_is_where():
    assert networks("db") == ["back"]
    assert networks("api") == ["back", "default"]
    assert networks("web") in (None, ["default"])


def test_network_has_no_way_out():
    declared = given()["networks"]
    assert declared["back"] == {"internal": True}
    assert set(declared) <= {"back", "default"}
    assert declared.get("default") in (None, {})


def test_rest_is_as_before():
    document = without(given(), "networks")
    for name in ("web", "api", "db"):
        document = without(document, "services", name, "networks")
    assert akm_verify.compare(document, BEFORE) == []
