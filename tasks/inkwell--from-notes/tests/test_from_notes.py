"""A new press with every section, from notes in plain words."""

import akm_verify


def given():
    return akm_verify.load_document("press.yaml")


def test_head():
    head = {key: given().get(key) for key in ("inkwell", "press", "edition", "ports")}
    assert head == {"inkwell": 3, "press": "gazette", "edition": 1, "ports": ["9443/tls"]}


def test_health():
    assert given()["blot"] == {"path": "/fit", "every": 12, "miss": 5}


def test_limits():
    assert given()["nib"] == {"flow": 2400, "pool": 90}


def test_scaling():
    assert given()["reams"] == {"least": 2, "most": 5, "by": "cpu", "at": 8}


def test_nothing_else():
    assert set(given()) == {"inkwell", "press", "edition", "ports", "blot", "nib", "reams"}


def test_notes_are_as_before():
    notes = akm_verify.read_answer("notes.md")
    assert notes.startswith("# gazette\n") and "40 requests" in notes
