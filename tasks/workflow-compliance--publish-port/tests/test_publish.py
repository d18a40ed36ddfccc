"""One port is published on the loopback address; nothing else changes."""

from pathlib import Path

import akm_verify

BEFORE = akm_verify.parse_document(Path(__file__).with_name("before.yaml").read_text(encoding="utf-8"), "yaml")


def mapping(item):
    """A port in either syntax, as (address, published, target, protocol)."""
    if isinstance(item, dict):
        assert item.get("mode", "ingress") in ("ingress", "host")
        return item.get("host_ip"), str(item.get("published")), str(item.get("target")), item.get("protocol", "tcp")
    text, _, protocol = str(item).partition("/")
    address, published, target = text.rsplit(":", 2)
    return address, published, target, protocol or "tcp"


def test_port_is_published():
    ports = akm_verify.load_document("compose.yaml")["services"]["admin"]["ports"]
    assert [mapping(item) for item in ports] == [("127.0.0.1", "8099", "80", "tcp")]


def test_rest_is_as_before():
    document = akm_verify.load_document("compose.yaml")
    del document["services"]["admin"]["ports"]
    assert akm_verify.compare(document, BEFORE) == []
