"""The service `relay` takes its variables from mail.env; nothing else changes."""

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


def test_relay_reads_the_file():
    value = given()["services"]["relay"].get("env_file")
    items = value if isinstance(value, list) else [value]
    paths = [item.get("path") if isinstance(item, dict) else item for item in items]
    assert [str(path).removeprefix("./") for path in paths] == ["mail.env"]
    assert all(item.get("required", True) is True for item in items if isinstance(item, dict))


def test_rest_is_as_before():
    assert akm_verify.compare(without(given(), "services", "relay", "env_file"), BEFORE) == []


def test_the_file_itself_is_as_before():
    assert akm_verify.read_answer("mail.env") == "SMTP_HOST=mx.lan\nSMTP_PORT=2525\n"
