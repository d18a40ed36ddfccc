import json
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.trials.ctrf import read_compliance, read_tests
from akm_harbor.trials.files import TrialFiles
from tests.trials.conftest import Jobs


def files(jobs: Jobs, name: str, content: bytes) -> TrialFiles:
    trial = jobs.trial()
    (trial / "verifier").mkdir()
    (trial / "verifier" / name).write_bytes(content)
    opened = TrialFiles(str(trial), 2**62)
    opened.seed(("result.json",), ("verifier",))
    return opened


def ctrf(jobs: Jobs, value: Any) -> TrialFiles:
    return files(jobs, "ctrf.json", json.dumps(value).encode())


def test_tests(jobs: Jobs) -> None:
    tests = [
        {"name": "a", "status": "passed", "duration": 1500},
        {"name": "b", "status": "failed", "duration": 2, "message": "assert token=abcdefgh1234"},
        {"name": "c", "status": "skipped", "trace": "why"},
    ]
    opened = ctrf(jobs, {"results": {"tests": tests}})
    rows = read_tests(opened, "verifier")
    assert [(r["name"], r["status"], r["seconds"]) for r in rows] == [
        ("a", "passed", 1.5),
        ("b", "failed", 0.002),
        ("c", "skipped", None),
    ]
    assert rows[2]["message"] == "why"
    assert opened.problems == []


@pytest.mark.parametrize(
    "value", [[], {}, {"results": []}, {"results": {"tests": {}}}, {"results": {"tests": None}}, 3]
)
def test_a_report_of_another_shape_is_a_problem(jobs: Jobs, value: Any) -> None:
    opened = ctrf(jobs, value)
    assert read_tests(opened, "verifier") == []
    assert [p[1] for p in opened.problems] == ["malformed-ctrf"]


def test_odd_tests_keep_their_rows(jobs: Jobs) -> None:
    opened = ctrf(jobs, {"results": {"tests": ["x", {"name": 3, "status": "great", "duration": "long"}, {}]}})
    rows = read_tests(opened, "verifier")
    assert [(r["name"], r["status"], r["seconds"]) for r in rows] == [(None, "other", None)] * 3
    assert [p[1] for p in opened.problems] == ["malformed-ctrf"]


def test_a_report_that_is_no_json(jobs: Jobs) -> None:
    opened = files(jobs, "ctrf.json", b'{"results": ')
    assert read_tests(opened, "verifier") == []
    assert [p[1] for p in opened.problems] == ["invalid-json"]


def test_no_report_is_no_problem(jobs: Jobs) -> None:
    opened = files(jobs, "test-stdout.txt", b"")
    assert read_tests(opened, "verifier") == []
    assert opened.problems == []


def test_compliance(jobs: Jobs) -> None:
    opened = files(jobs, "compliance.json", b'{"score": 0.5, "api_key": "secret-value"}')
    assert read_compliance(opened, "verifier") == '{"score":0.5,"api_key":"[REDACTED]"}'
    assert read_compliance(TrialFiles("/nowhere", 0), "verifier") is None


def test_checks_of_the_corpus_are_tests_with_their_complaints(jobs: Jobs) -> None:
    checks = [
        {"check": "command commands.txt", "ok": False, "complaints": ["--to is missing", "--seal is wax, not tar"]},
        {"check": "workspace", "ok": True, "complaints": []},
        {"check": "odd", "ok": "yes"},
    ]
    opened = files(jobs, "details.json", json.dumps({"checks": checks}).encode())
    rows = read_tests(opened, "verifier")
    assert [(r["index"], r["name"], r["status"], r["message"]) for r in rows] == [
        (0, "command commands.txt", "failed", "--to is missing\n--seal is wax, not tar"),
        (1, "workspace", "passed", None),
    ]
    assert opened.problems == []


def test_a_check_that_is_a_test_too_counts_once(jobs: Jobs) -> None:
    opened = ctrf(jobs, {"results": {"tests": [{"name": "a", "status": "failed", "message": "why"}]}})
    both = [{"check": "a", "ok": False, "complaints": ["why"]}, {"check": "b", "ok": True, "complaints": []}]
    Path(opened.path, "verifier", "details.json").write_text(json.dumps({"checks": both}))
    rows = read_tests(opened, "verifier")
    assert [(r["index"], r["name"], r["status"], r["message"]) for r in rows] == [
        (0, "a", "failed", "why"),
        (1, "b", "passed", None),
    ]


@pytest.mark.parametrize("value", [[], {"checks": 3}, {"checks": None}, {"other": 1}])
def test_details_of_another_verifier_are_none_of_ours(jobs: Jobs, value: Any) -> None:
    opened = files(jobs, "details.json", json.dumps(value).encode())
    assert read_tests(opened, "verifier") == []
    assert opened.problems == []
