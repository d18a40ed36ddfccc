"""The press `folio` scales by its CPU."""

import akm_verify


def given():
    return akm_verify.load_document("press.yaml")


def test_scaling():
    assert given()["reams"] == {"least": 3, "most": 9, "by": "cpu", "at": 6}


def test_edition_is_raised():
    assert given()["edition"] == 3


def test_rest_is_as_before():
    rest = {key: value for key, value in given().items() if key not in ("reams", "edition")}
    blot = {"path": "/up", "every": 3, "miss": 5}
    assert akm_verify.compare(rest, {"inkwell": 3, "press": "folio", "ports": ["8080/http"], "blot": blot}) == []
