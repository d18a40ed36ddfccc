"""Prompts and evaluators of an upstream checkout: digests, extraction, cross-checks with the ports."""

import functools
import hashlib
import json
import math
import operator
import random
import sys
from pathlib import Path

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.datasets.beam import ABILITIES
from akm_harbor.memory.scorers import beam, locomo, longmemeval, ranking, upstream
from tests.memory.support import (
    BEAM_UPSTREAM,
    LOCOMO_UPSTREAM,
    LONGMEMEVAL_UPSTREAM,
    lines,
    needs_beam_upstream,
    needs_locomo_upstream,
    needs_longmemeval_upstream,
)

PYTHON = Path(sys.executable)
FAKE_JUDGE = """
def get_anscheck_prompt(task, question, answer, response, abstention=False):
    if not abstention:
        if task in ["a"]:
            template = "P1 {} Correct Answer: {} R {}"
        elif task == "b":
            template = "P2 {} Correct Answer: {} R {}"
        elif task == "c":
            template = "P3 {} Correct Answer: {} R {}"
        else:
            template = "P4 {} Rubric: {} R {}"
    else:
        template = "P5 {} Explanation: {} R {}"
    return template.format(question, answer, response)
"""
FAKE_EVALUATE_QA = """
import json, os, sys
model, hyp, ref = sys.argv[1:]
known = {q["question_id"] for q in json.load(open(ref))}
with open(f"{hyp}.eval-results-{model}", "w") as out:
    for line in open(hyp):
        row = json.loads(line)
        if row["question_id"] in known:
            row["autoeval_label"] = {"model": model, "label": row["hypothesis"] == os.environ["OPENAI_API_KEY"]}
            print(json.dumps(row), file=out)
"""


def checkout_double(tmp_path, monkeypatch, name, pinned, text):
    """A stand-in for an upstream checkout: one file of ours, pinned to its own digest."""
    path = tmp_path / pinned.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    monkeypatch.setattr(
        upstream, name, upstream.Pinned(pinned.project, pinned.path, hashlib.sha256(text.encode()).hexdigest())
    )
    return tmp_path


def test_another_version_of_upstream_is_refused(tmp_path):
    path = tmp_path / upstream.LONGMEMEVAL_JUDGE.path
    path.parent.mkdir(parents=True)
    path.write_text("def get_anscheck_prompt(): ...\n")
    with pytest.raises(upstream.UpstreamError, match="another version of LongMemEval"):
        upstream.longmemeval_prompts(tmp_path)


def test_a_missing_checkout_says_what_to_name(tmp_path):
    with pytest.raises(upstream.UpstreamError, match="Name a checkout of BEAM"):
        upstream.beam_prompts(tmp_path)


def test_prompts_come_from_the_syntax_tree(tmp_path, monkeypatch):
    text = FAKE_JUDGE + "\nraise SystemExit('never run')\n"
    root = checkout_double(tmp_path, monkeypatch, "LONGMEMEVAL_JUDGE", upstream.LONGMEMEVAL_JUDGE, text)
    prompts = upstream.longmemeval_prompts(root)
    assert prompts.prompt("temporal-reasoning", "q{}", "a", "r", abstention=False) == "P2 q{} Correct Answer: a R r"
    assert prompts.prompt("whatever", "q", "a", "r", abstention=True).startswith("P5")
    with pytest.raises(NotImplementedError):
        prompts.prompt("whatever", "q", "a", "r", abstention=False)


def test_the_judge_runs_as_upstream_ships_it_and_its_output_counts(tmp_path, monkeypatch):
    root = checkout_double(tmp_path, monkeypatch, "LONGMEMEVAL_JUDGE", upstream.LONGMEMEVAL_JUDGE, FAKE_EVALUATE_QA)
    reference = tmp_path / "ref.json"
    reference.write_text(json.dumps([{"question_id": "q1"}, {"question_id": "q2"}]))
    environment = {"OPENAI_API_KEY": "right"}
    verdicts = upstream.run_longmemeval_judge(
        PYTHON,
        root,
        tmp_path / "w",
        hypotheses={"q1": "right", "q2": "wrong"},
        reference=reference,
        environment=environment,
    )
    assert verdicts == {"q1": True, "q2": False}
    with pytest.raises(upstream.UpstreamError, match="judged 1 of 2 answers; missing q9"):
        upstream.run_longmemeval_judge(
            PYTHON,
            root,
            tmp_path / "w",
            hypotheses={"q1": "x", "q9": "y"},
            reference=reference,
            environment=environment,
        )
    with pytest.raises(UsageError, match="no judge"):
        upstream.run_longmemeval_judge(PYTHON, root, tmp_path / "w", hypotheses={}, reference=reference, model="gpt-5")


def test_a_judge_that_exits_0_without_a_result_is_an_error(tmp_path, monkeypatch):
    root = checkout_double(tmp_path, monkeypatch, "LONGMEMEVAL_JUDGE", upstream.LONGMEMEVAL_JUDGE, "print('usage')\n")
    with pytest.raises(upstream.UpstreamError, match="wrote no result"):
        upstream.run_longmemeval_judge(
            PYTHON, root, tmp_path / "w", hypotheses={"q": "a"}, reference=tmp_path / "ref.json"
        )


def test_a_judge_that_hangs_is_stopped(tmp_path, monkeypatch):
    text = "import time; time.sleep(60)\n"
    root = checkout_double(tmp_path, monkeypatch, "LONGMEMEVAL_JUDGE", upstream.LONGMEMEVAL_JUDGE, text)
    with pytest.raises(upstream.UpstreamError, match="did not end within"):
        upstream.run_longmemeval_judge(
            PYTHON, root, tmp_path / "w", hypotheses={"q": "a"}, reference=tmp_path / "r", timeout_s=0.5
        )


@needs_longmemeval_upstream
def test_upstreams_prompts_have_the_recorded_digests():
    prompts = upstream.longmemeval_prompts(Path(LONGMEMEVAL_UPSTREAM))
    rows = [row for row in lines("longmemeval_reference.jsonl") if row["kind"] == "judge_prompt"]
    for row in rows:
        digest = prompts.digest(row["question_type"], abstention=row["abstention"])
        assert digest == row["prompt_sha256_with_markers"]
        text = prompts.prompt(row["question_type"], "", "", "", abstention=row["abstention"])
        assert len(text) == row["length_chars_without_markers"]
        assert text.endswith(row["ends_with"])


@needs_locomo_upstream
def test_upstreams_locomo_scores_equal_the_ports():
    rows = [
        {**row, "context": row["prediction_context"]}
        for row in lines("locomo_reference_synthetic.jsonl")
        if row["prediction_context"] != []
    ]
    found = upstream.run_driver(PYTHON, Path(LOCOMO_UPSTREAM), upstream.LOCOMO_EVALUATION, rows)
    for row, scored in zip(rows, found, strict=True):
        assert scored["score"] == pytest.approx(
            locomo.score(row["category"], row["prediction"], row["answer"]), abs=1e-12
        )
        assert scored["recall"] == pytest.approx(locomo.recall(row["evidence"], row["context"]), abs=1e-12)


@needs_longmemeval_upstream
def test_upstreams_retrieval_metrics_equal_the_ports():
    rng = random.Random(1)
    rows = []
    for _ in range(200):
        n = rng.randint(1, 60)
        corpus = [f"{rng.choice(['answer', 'noans', 'x'])}_{rng.randint(0, 9)}_{i}" for i in range(n)]
        rankings = rng.sample(range(n), n)
        gold = sorted({c for c in corpus if c.startswith("answer")})
        for level in ("own", "session"):
            row = {"rankings": rankings, "correct_docs": gold, "corpus_ids": corpus, "k": rng.choice([1, 3, 5, 10, 30])}
            rows.append({**row, "level": level})
    found = upstream.run_driver(PYTHON, Path(LONGMEMEVAL_UPSTREAM), upstream.LONGMEMEVAL_RETRIEVAL, rows)
    functions = {"own": ranking.evaluate_lme, "session": ranking.evaluate_lme_turn2session}
    for row, scored in zip(rows, found, strict=True):
        ours = functions[row["level"]](row["rankings"], row["correct_docs"], row["corpus_ids"], row["k"])
        assert list(scored.values()) == pytest.approx(ours, abs=1e-12)


@needs_beam_upstream
def test_upstreams_beam_scores_equal_the_ports():
    rng = random.Random(2)
    styles = [
        lambda s: json.dumps({"score": s, "reason": "r"}),
        lambda s: f"```json\n{json.dumps({'score': s})}\n```",
        lambda s: f"Here: {json.dumps({'score': s})} done",
        lambda s: f"{{'score': {s}, 'reason': 'x'}}",
    ]
    rows = []
    for ability in [*beam_abilities(), *["event_ordering"] * 40]:
        rubric = [f"event {c}" for c in rng.sample("abcdefgh", rng.randint(2, 6))]
        answer = rng.choices([*rubric, "event y", "event z"], k=rng.randint(1, 7))
        same = [[a, a] for a in rubric]
        replies = [rng.choice(styles)(rng.choice([0.0, 0.5, 1.0])) for _ in rubric]
        rows.append(
            {"ability": ability, "rubric": rubric, "response": "\n".join(answer), "replies": replies, "same": same}
        )
    found = upstream.run_driver(PYTHON, Path(BEAM_UPSTREAM), upstream.BEAM_METRICS, rows)
    for row, scored in zip(rows, found, strict=True):
        ask = functools.partial(reply_in_turn, iter(row["replies"]))
        ours = beam.score_answer(
            row["ability"], row["rubric"], row["response"], ask, same=operator.eq, scorer=beam.UPSTREAM
        )
        assert ours.nugget == pytest.approx(scored["llm_judge_score"], abs=1e-12), row
        if ours.ordering:
            for name in ("precision", "recall", "f1", "tau_norm", "final_score"):
                value = getattr(ours.ordering, name)
                assert value == pytest.approx(scored[name], abs=1e-12) or math.isnan(value) == math.isnan(scored[name])


def reply_in_turn(replies, item, response):
    return next(replies)


def beam_abilities():
    return [ability for ability in ABILITIES for _ in range(8)]


@needs_beam_upstream
def test_beams_prompts_have_their_slots():
    prompts = upstream.beam_prompts(Path(BEAM_UPSTREAM))
    for placeholder in beam.PLACEHOLDERS.values():
        assert placeholder in prompts.judge
    messages = prompts.equivalence("one", "two")
    assert [m["role"] for m in messages] == ["system", "user"]
    assert "one" in messages[1]["content"]
    assert "two" in messages[1]["content"]


def test_longmemeval_reference_covers_every_prompt():
    assert set(longmemeval.ANSWER_LABELS) == {1, 2, 3, 4, 5}
