"""The probe of the press `binder` asks less often and forgives more."""

import akm_verify


def given():
    return akm_verify.load_document("press.yaml")


def test_probe():
    assert given()["blot"] == {"path": "/pulse", "every": 9, "miss": 4}


def test_edition_is_raised():
    assert given()["edition"] == 8


def test_rest_is_as_before():
    rest = {key: value for key, value in given().items() if key not in ("blot", "edition")}
    before = {"inkwell": 3, "press": "binder", "ports": ["8443/tls"], "nib": {"flow": 600, "pool": 12}}
    assert akm_verify.compare(rest, before) == []
