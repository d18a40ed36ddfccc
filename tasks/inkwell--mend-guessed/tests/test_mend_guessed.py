"""Sections that inkwell does not know, replaced by those it does."""

import akm_verify


def given():
    return akm_verify.load_document("press.yaml")


def test_health():
    assert given()["blot"] == {"path": "/ready", "every": 4, "miss": 2}


def test_scaling():
    assert given()["reams"] == {"least": 2, "most": 6, "by": "cpu", "at": 5}


def test_edition_is_raised():
    assert given()["edition"] == 6


def test_nothing_unknown_is_left():
    assert set(given()) == {"inkwell", "press", "edition", "ports", "nib", "blot", "reams"}


def test_rest_is_as_before():
    assert given()["inkwell"] == 3 and given()["press"] == "margin"
    assert given()["ports"] == ["8080/http"] and given()["nib"] == {"flow": 300, "pool": 20}
