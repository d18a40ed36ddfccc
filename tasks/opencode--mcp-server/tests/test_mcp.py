"""The server is added, and the one that was there is kept."""

import akm_verify


def given():
    return akm_verify.load_document("settings.json")


def test_ledger():
    server = dict(given()["mcp"]["ledger"])
    assert server.pop("enabled", True) is True
    assert server == {
        "type": "local",
        "command": ["ledger-mcp", "--read-only"],
        "environment": {"LEDGER_HOME": "/srv/ledger"},
    }


def test_rest_is_as_before():
    document = given()
    assert document["mcp"].pop("ledger")
    assert document == {"theme": "nord", "mcp": {"tracker": {"type": "remote", "url": "https://tracker.example/mcp"}}}
