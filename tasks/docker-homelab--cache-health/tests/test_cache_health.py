"""The cache is probed with redis-cli; nothing else changes."""

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


def words(test):
    """The probe's words, whichever of the three spellings is used."""
    if isinstance(test, str):
        return test.split()
    if test[0] == "CMD-SHELL" and len(test) == 2:
        return test[1].split()
    assert test[0] == "CMD"
    return test[1:]


def probe():
    return given()["services"]["cache"]["healthcheck"]


def test_probe_asks_redis():
    assert words(probe()["test"]) == ["redis-cli", "ping"]


def test_timing():
    assert {key: probe()[key] for key in probe() if key != "test"} == {"interval": "15s", "timeout": "3s", "retries": 4}


def test_rest_is_as_before():
    assert akm_verify.compare(without(given(), "services", "cache", "healthcheck"), BEFORE) == []
