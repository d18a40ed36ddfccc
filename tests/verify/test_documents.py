"""Reading and comparing documents, and reading answers safely."""

import os

import pytest

from akm_harbor.verify.answers import WrongAnswerError, read_answer
from akm_harbor.verify.documents import compare, load_document, parse_document
from akm_harbor.verify.outcome import BrokenVerifierError


def test_equal_up_to_the_order_of_keys():
    assert compare({"a": 1, "b": [1, {"c": None}]}, {"b": [1, {"c": None}], "a": 1}) == []


@pytest.mark.parametrize(
    ("given", "wanted", "line"),
    [
        ({"a": 1}, {"a": "1"}, '$.a is int 1, not str "1"'),
        ({"a": True}, {"a": 1}, "$.a is bool true, not int 1"),
        ({}, {"a": 1}, "$.a is missing"),
        ({"a": 1, "b": 2}, {"a": 1}, "$.b was not asked for"),
        ({"a": [1, 2]}, {"a": [2, 1]}, "$.a[0] is 1, not 2"),
        ({"a": [1]}, {"a": [1, 2]}, "$.a has 1 items, not 2"),
        (None, {"a": 1}, '$ is nothing null, not dict {"a": 1}'),
    ],
)
def test_differences_are_named(given, wanted, line):
    assert line in compare(given, wanted)


def test_partly_lets_mappings_hold_more():
    assert compare({"a": {"b": 1, "c": 2}, "d": 3}, {"a": {"b": 1}}, partly=True) == []
    assert compare({"a": [1, 2]}, {"a": [1]}, partly=True) != []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", '{"a": 1, "a": 2}'),
        ("json", '{"a": NaN}'),
        ("json", '{"a": 1'),
        ("json", "[" * 100_000),
        ("yaml", "a: 1\na: 2\n"),
        ("yaml", "a: [1\n"),
        ("yaml", "a: 1\n---\nb: 2\n"),
        ("yaml", "? [a]\n: 1\n"),
        ("yaml", "!!python/object/apply:os.system [echo]\n"),
        ("toml", "a = 1\na = 2\n"),
    ],
)
def test_what_is_not_one_document(kind, text):
    with pytest.raises(ValueError):  # noqa: PT011
        parse_document(text, kind)


def test_kinds():
    assert parse_document("a: {b: 1}\nc: *x\n".replace("c: *x\n", ""), "yml") == {"a": {"b": 1}}
    assert parse_document("x: &x {a: 1}\ny: {<<: *x, b: 2}\n", "yaml") == {"x": {"a": 1}, "y": {"a": 1, "b": 2}}
    assert parse_document("a = 1\n", "toml") == {"a": 1}
    with pytest.raises(BrokenVerifierError, match="unknown kind"):
        parse_document("", "xml")


def test_load_document(tmp_path):
    (tmp_path / "a.yaml").write_text("a: 1\n")
    assert load_document(tmp_path / "a.yaml") == {"a": 1}
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(WrongAnswerError, match="is not valid"):
        load_document(tmp_path / "b.json")


def test_answers_are_read_safely(tmp_path):
    secret = tmp_path / "wanted.txt"
    secret.write_text("the answer\n")
    (tmp_path / "link.txt").symlink_to(secret)
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "folder.txt").mkdir()
    (tmp_path / "big.txt").write_bytes(b"x" * 2_000_000)
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    for name, why in [
        ("none.txt", "is missing"),
        ("link.txt", "not a regular file"),
        ("pipe.txt", "not a regular file"),
        ("folder.txt", "not a regular file"),
        ("big.txt", "larger than"),
        ("bytes.txt", "not UTF-8"),
    ]:
        with pytest.raises(WrongAnswerError, match=why):
            read_answer(tmp_path / name)
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.txt").write_text("x\n")
    (tmp_path / "door").symlink_to(tmp_path / "real")
    with pytest.raises(WrongAnswerError, match="behind a link"):
        read_answer(tmp_path / "door" / "a.txt")
    (tmp_path / "dos.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    assert read_answer(tmp_path / "dos.txt") == "a\nb\n"
