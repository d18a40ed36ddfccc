"""An old Compose file, rewritten for the Compose Specification."""

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


def limits(name):
    return given()["services"][name]["deploy"]


def test_head_and_links_are_gone():
    assert list(given()) == ["services"]
    assert "links" not in given()["services"]["scan"]


def test_limits_have_moved():
    assert set(limits("scan")) == set(limits("broker")) == {"resources"}
    scan = limits("scan")["resources"]
    assert set(scan) == {"limits"} and set(scan["limits"]) == {"cpus", "memory"}
    assert float(scan["limits"]["cpus"]) == 0.5
    assert str(scan["limits"]["memory"]).lower() in ("512m", "512mb")
    broker = limits("broker")["resources"]
    assert set(broker) == {"limits"} and set(broker["limits"]) == {"memory"}
    assert str(broker["limits"]["memory"]).lower() in ("128m", "128mb")


def test_rest_is_as_before():
    rest = {name: without(service, "deploy") for name, service in given()["services"].items()}
    assert rest == {"scan": {"image": "scan:9", "depends_on": ["broker"]}, "broker": {"image": "broker:4"}}
