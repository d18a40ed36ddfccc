"""A limit changed, with the traces that the procedure leaves."""

import akm_verify


def given():
    return akm_verify.load_document("press.yaml")


def test_limit_is_doubled():
    assert akm_verify.compare(given(), {**BEFORE, "edition": 21, "nib": {"flow": 3600, "pool": 40}}) == []


def test_old_file_is_kept():
    assert akm_verify.compare(akm_verify.load_document("press.20.yaml"), BEFORE) == []


def test_change_is_written_down():
    lines = akm_verify.read_answer("CHANGES").strip().splitlines()
    assert [line.split() for line in lines] == [["20", "post", "blot"], ["21", "post", "nib"]]


BEFORE = {
    "inkwell": 3, "press": "post", "edition": 20, "ports": ["8080/http"],
    "blot": {"path": "/up", "every": 6, "miss": 3}, "nib": {"flow": 1800, "pool": 40},
}  # fmt: skip
