"""For CI: rules from a file, JUnit XML, Markdown; names from a job directory stay text."""

import json
import sys
from xml.etree import ElementTree as ET

import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.ci import junit, markdown
from akm_harbor.ab.result import Options
from akm_harbor.ab.rules import read_rules
from akm_harbor.cli import main
from akm_harbor.errors import UsageError

from .support import dataset, matrix


@pytest.fixture
def call(monkeypatch, capsys):
    def run(*args):
        monkeypatch.setattr(sys, "argv", ["akm-harbor", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return ended.value.code or 0, told.out, told.err

    return run


def cases(text):
    root = ET.fromstring(text)  # our own output
    suite = root.find("testsuite")
    assert suite is not None
    kinds = {
        case.get("name"): next((c.tag for c in case if c.tag in {"failure", "error"}), "passed")
        for case in suite.iter("testcase")
    }
    assert int(suite.get("tests", "")) == len(kinds)
    for kind in ("failure", "error"):
        assert int(suite.get(f"{kind}s", "")) == sum(value == kind for value in kinds.values())
    return kinds


def test_a_better_arm_passes(tmp_path, arms):
    r = analyse(dataset(tmp_path, [*matrix("a", arms[0]), *matrix("b", arms[1])]), "a", "b")
    assert set(cases(junit(r)).values()) == {"passed"}
    text = markdown(r)
    assert text.startswith("## ✅ b against a: improvement\n")
    assert "+14.0 points" in text


def test_a_regression_is_a_failure(tmp_path, arms):
    r = analyse(dataset(tmp_path, [*matrix("a", arms[0]), *matrix("b", arms[1])]), "b", "a")
    assert cases(junit(r))["verdict"] == "failure"
    assert markdown(r).startswith("## ❌ a against b: regression\n")


def test_no_answer_is_an_error_and_names_the_check(tmp_path, arms):
    r = analyse(dataset(tmp_path, [*matrix("a", arms[0]), *matrix("b", arms[1], model_name="other/model")]), "a", "b")
    found = cases(junit(r))
    assert (found["verdict"], found["comparable: model"]) == ("error", "failure")
    assert "- fatal: Model:" in markdown(r)


def test_too_unequal_errors_give_no_answer(tmp_path, arms):
    rows = [*matrix("a", arms[0]), *matrix("b", arms[1])]
    for row in rows[-8:]:
        row |= {"status": "scored_with_error", "exception_type": "AgentTimeoutError", "exception_cause": "agent"}
    data = dataset(tmp_path, rows)
    assert analyse(data, "a", "b").verdict.exit_code == 0
    r = analyse(data, "a", "b", Options(max_error_imbalance=0.1))
    assert (r.verdict.outcome, r.verdict.exit_code) == ("unbalanced-errors", 4)
    assert "14.0 points apart, where 10 points are allowed" in r.verdict.reasons[0]
    assert cases(junit(r))["errors are balanced"] == "error"
    assert analyse(data, "a", "b", Options(max_error_imbalance=0.15)).verdict.exit_code == 0


def test_names_stay_text(tmp_path):
    evil = "]]><script>alert(1)</script>| [x](http://evil.example) @all \x07`"
    rows = [*matrix("a", [[1, 0]] * 3), *matrix("b", [[0, 0]] * 3)]
    for row in rows:
        row["task_name"] = f"{evil} {row['task_name']}"
    r = analyse(dataset(tmp_path, rows), "a", "b")
    text = markdown(r)
    assert "<script" not in text
    assert "://evil" not in text
    assert "@all" not in text
    table = [line for line in text.splitlines() if "alert" in line]
    assert table
    assert all(line.replace("\\|", "").count("|") == 5 for line in table)
    cases(junit(r))


RULES = """
[verdict]
rule = "non-inferior"
margin = 0.1
policy = "missing-fails"
min_delivered = 0.95
max_error_imbalance = 0.1
strict = false
accept = ["dates"]
"""


def test_rules_from_a_file(tmp_path):
    path = tmp_path / "rules.toml"
    path.write_text(RULES)
    rules = read_rules(path)
    assert rules == {
        "rule": "non-inferior", "margin": 0.1, "policy": "missing-fails", "min_delivered": 0.95,
        "max_error_imbalance": 0.1, "strict": False, "accept": ["dates"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("margin", "margn", "has no rule 'margn'"),
        ("[verdict]", "[verdicts]", "unknown part 'verdicts'"),
        ("[verdict]", "", "unknown part"),
        ("margin = 0.1", 'margin = "much"', "must be a number"),
        ("margin = 0.1", "margin = 7", "between 0 and 1"),
        ("margin = 0.1", "margin = true", "must be a number"),
        ("strict = false", "strict = 0", "must be true or false"),
        ('accept = ["dates"]', 'accept = "dates"', "must be a list of names"),
        ('accept = ["dates"]', "accept = [1]", "must be a list of names"),
        ('"non-inferior"', '"better"', "no rule 'better'"),
        ("[verdict]", "[verdict", "cannot be read as TOML"),
    ],
)
def test_rules_that_cannot_be_meant(tmp_path, old, new, message):
    path = tmp_path / "rules.toml"
    path.write_text(RULES.replace(old, new, 1))
    with pytest.raises(UsageError) as error:
        read_rules(path)
    assert message in str(error.value)
    assert error.value.path == path


def test_what_is_typed_goes_before_the_rules(call, tmp_path, arms):
    data = dataset(tmp_path, [*matrix("control", arms[0]), *matrix("akm", arms[1])])
    rules = tmp_path / "rules.toml"
    rules.write_text('[verdict]\nrule = "non-inferior"\nmargin = 0.001\n')
    common = ["report", "ab", data, "-b", "akm", "-t", "control", "-o", tmp_path / "out", "--rules", rules]
    out = tmp_path / "ci"
    code, _, _ = call(*common, "--junit", out / "junit.xml", "--markdown", out / "summary.md")
    assert code == 3
    assert cases((out / "junit.xml").read_text())["verdict"] == "failure"
    assert "lies above minus 0.1 points" in (out / "summary.md").read_text()
    assert call(*common, "--margin", "0.5")[0] == 0
    assert json.loads((tmp_path / "out" / "verdict.json").read_text())["options"]["margin"] == 0.5
