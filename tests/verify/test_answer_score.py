import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from akm_harbor.memory.datasets.model import Question
from akm_harbor.memory.scorers import locomo
from akm_harbor.memory.task_export import grade
from akm_harbor.verify.answer_score import judge, score_answer, token_f1
from akm_harbor.verify.outcome import BrokenVerifierError

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "data/memory/locomo_reference_synthetic.jsonl").read_text().splitlines()
]
SPEC = {
    "version": 1, "question_id": "h/7", "benchmark": "locomo", "qtype": "single-hop", "scorer": "locomo-f1/x",
    "file": "answer.txt", "measure": "f1", "gold": "the blue bicycle", "phrases": [],
}  # fmt: skip


def question(row):
    answer = None if row["category"] == 5 else str(row["answer"])
    return Question("q", "?", None, None, str(row["category"]), "", row["category"] == 5, answer, "string")


def test_equal_to_the_official_score_on_every_reference_row():
    assert len(ROWS) == 250
    for row in ROWS:
        grading = grade("locomo", question(row))
        assert score_answer(grading.spec(), row["prediction"]) == pytest.approx(row["official_score"], abs=1e-12), row


def test_equal_to_the_package_s_own_port_on_odd_text():
    for a, b in [("", ""), ("a the and", "the"), ("Café, olé!", "cafe ole"), ("x" * 5000, "x"), ("1,000", "1000")]:
        assert token_f1(a, b) == locomo.f1(a, b)


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("AKM_VERIFY_LOGS", str(tmp_path / "logs"))
    for name in ("app", "tests", "logs"):
        (tmp_path / name).mkdir()
    (tmp_path / "tests/question.json").write_text(json.dumps(SPEC))
    return tmp_path


def verdict(place):
    judge(place / "app", place / "tests")
    report = json.loads((place / "logs/score.json").read_text())
    assert json.loads((place / "logs/reward.json").read_text()) == {"reward": report["score"]}
    return report


def test_the_reward_is_the_score_and_the_answer_is_kept(place):
    (place / "app/answer.txt").write_text("a blue bicycle, I think\n")
    report = verdict(place)
    assert report["score"] == pytest.approx(2 * (2 / 4) * 1 / (2 / 4 + 1))
    assert report["answer"] == "a blue bicycle, I think"
    assert report["question_id"] == "h/7"


@pytest.mark.parametrize("bad", ["missing", "link", "folder", "binary", "huge"])
def test_an_answer_that_is_none_earns_nothing(place, bad):
    answer = place / "app/answer.txt"
    if bad == "link":
        (place / "gold").write_text("the blue bicycle")
        answer.symlink_to(place / "gold")
    elif bad == "folder":
        answer.mkdir()
    elif bad == "binary":
        answer.write_bytes(b"\xff\xfe\x00")
    elif bad == "huge":
        answer.write_text("the blue bicycle " * 100_000)
    report = verdict(place)
    assert report["score"] == 0
    assert report["complaint"]


def test_a_planted_reward_is_replaced(place):
    (place / "logs/reward.json").write_text('{"reward": 1}')
    (place / "logs/reward.txt").write_text("1")
    assert verdict(place)["score"] == 0
    assert not (place / "logs/reward.txt").exists()


def test_an_unknown_measure_is_a_broken_verifier():
    with pytest.raises(BrokenVerifierError):
        score_answer({**SPEC, "measure": "vibes"}, "x")


def test_the_generated_file_runs_without_the_package_and_a_broken_one_writes_no_reward(place, tmp_path):
    from akm_harbor.corpus.memory_tasks import _ABOUT, _MODULES
    from akm_harbor.corpus.sync import single_file

    script = place / "tests/akm_answer.py"
    script.write_text(single_file(_MODULES, _ABOUT))
    (place / "app/answer.txt").write_text("blue bicycles")
    command = [sys.executable, "-I", "-S", script, place / "app"]
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert (done.returncode, done.stdout) == (0, "locomo-f1/x: 1.000\n"), done.stderr
    (place / "tests/question.json").write_text("{")
    done = subprocess.run(command, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 2
    assert "no reward is written" in done.stderr
    assert not (place / "logs/reward.json").exists()
