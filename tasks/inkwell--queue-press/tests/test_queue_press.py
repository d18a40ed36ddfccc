"""A new press, scaled by how much waits for it."""

import akm_verify


def given():
    return akm_verify.load_document("press.yaml")


def test_head():
    head = {key: given().get(key) for key in ("inkwell", "press", "edition", "ports")}
    assert head == {"inkwell": 3, "press": "sorter", "edition": 1, "ports": ["7443/tls", "7080/http"]}


def test_scaling():
    assert given()["reams"] == {"least": 3, "most": 12, "by": "queue", "at": 250}


def test_nothing_else():
    assert set(given()) == {"inkwell", "press", "edition", "ports", "reams"}
