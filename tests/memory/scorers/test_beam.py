"""BEAM's scorer, bugs kept and corrected, against what upstream's code returned."""

import json
import math

import pytest

from akm_harbor.memory.scorers import beam
from tests.memory.support import lines

ROWS = lines("beam_reference.jsonl")


def of(kind):
    return [row for row in ROWS if row["kind"] == kind]


def test_every_nugget_row_is_reproduced_both_ways():
    assert len(of("nugget")) == 27
    for row in of("nugget"):
        shipped = beam.nugget_mean(row["judge_scores"], row["category"], beam.UPSTREAM)
        meant = beam.nugget_mean(row["judge_scores"], row["category"], beam.PAPER)
        assert shipped == pytest.approx(row["official_llm_judge_score"], abs=1e-12), row
        assert meant == pytest.approx(row["mean_without_truncation"], abs=1e-12), row


def test_every_ordering_row_is_reproduced_with_its_number_of_judge_calls():
    assert len(of("event_ordering")) == 4
    replies = iter([1.0, 0.5, 1.0, 0.0] * 4)  # the scripted judge of the reference: mean 0.625
    for row in of("event_ordering"):
        calls = 1  # upstream asks once more, for facts it throws away

        def same(first, second):
            nonlocal calls
            calls += 1
            return first == second

        def ask(item, response):
            nonlocal calls
            calls += 1
            return json.dumps({"score": next(replies), "reason": "."})

        rubric = [f"event {n}" for n in row["reference_events"]]
        response = "\n".join(f"event {n}" for n in row["system_events"])
        found = beam.score_answer("event_ordering", rubric, response, ask, same=same, scorer=beam.UPSTREAM)
        order = found.ordering
        for name in ("precision", "recall", "f1", "tau_norm", "final_score"):
            assert getattr(order, name) == pytest.approx(row[name], abs=1e-12), (row["case"], name)
        assert found.nugget == pytest.approx(row["llm_judge_score"], abs=1e-12)
        assert calls == row["judge_calls"]
        assert found.value == order.tau_norm  # upstream's report takes tau alone
        meant = beam.ordering(rubric, response.split("\n"), lambda a, b: a == b)
        assert meant.final_score == pytest.approx(row["final_score"], abs=1e-12)


def test_judge_replies_are_parsed_as_upstream_does():
    for row in of("judge_parse"):
        reply = f"Sure. Here it is: {json.dumps({'score': row['judge_score'], 'reason': 'fine'})} Bye."
        value = beam.nugget_mean([beam.reply_score(reply)], "abstention", beam.UPSTREAM)
        assert value == pytest.approx(row["official_llm_judge_score"], abs=1e-12)


@pytest.mark.parametrize(
    "reply",
    [
        '{"score": 0.5, "reason": "r"}',
        '```json\n{"score": 0.5}\n```',
        'text {"score": 0.5} text',
        "{'score': 0.5, 'reason': 'single quotes'}",
        '{"score": 0.5, "reason": "cut off',
    ],
)
def test_reply_styles_that_upstream_accepts(reply):
    assert beam.reply_score(reply) == 0.5


@pytest.mark.parametrize("reply", ["", "I would give it a high mark.", "[1, 2]", '{"mark": 1}'])
def test_replies_without_a_score_are_never_guessed(reply):
    with pytest.raises(beam.JudgeReplyError):
        beam.reply_score(reply)


@pytest.mark.parametrize("scorer", [beam.UPSTREAM, beam.PAPER])
@pytest.mark.parametrize("score", ["NaN", "1e999", "9" * 5000])
def test_a_score_beyond_numbers_is_an_error_not_a_mean(score, scorer):
    with pytest.raises(beam.JudgeReplyError):
        beam.nugget_mean([beam.reply_score(f'{{"score": {score}}}')], "abstention", scorer)


def test_a_text_score_stops_upstream_and_counts_in_the_corrected_scorer():
    with pytest.raises(beam.JudgeReplyError):
        beam.nugget_mean(["1.0"], "summarization", beam.UPSTREAM)
    assert beam.nugget_mean(["1.0"], "summarization", beam.PAPER) == 1.0
    assert beam.nugget_mean(["0.5"], "event_ordering", beam.UPSTREAM) == 0.5
    with pytest.raises(beam.JudgeReplyError):
        beam.nugget_mean(["high"], "summarization", beam.PAPER)
    with pytest.raises(beam.JudgeReplyError):
        beam.nugget_mean([], "summarization", beam.PAPER)


def test_the_question_reaches_only_the_corrected_judge():
    (row,) = of("judge_prompt_fact")
    template = "Q: <question> R: <rubric_item> A: <llm_response>"
    shipped = beam.judge_prompt(template, "item", "answer", "why?", beam.UPSTREAM)
    assert ("<question>" in shipped) is row["literal_placeholder_present"]
    assert ("why?" in shipped) is row["question_text_reaches_judge"]
    assert beam.judge_prompt(template, "item", "answer", "why?", beam.PAPER) == "Q: why? R: item A: answer"


def test_alignment_is_greedy_and_uses_each_reference_once():
    same = lambda a, b: a[0] == b[0]  # noqa: E731
    assert beam.align(["a1", "a2", "b1"], ["ax", "ay", "az", "b"], same) == ["a1", "a2", "az", "b1"]


def test_an_undefined_tau_is_not_made_up():
    assert math.isnan(beam.ordering(["only"], ["only"], lambda a, b: a == b).tau_norm)


def test_report_averages_conversations_not_questions():
    found = beam.report({"1": {"summarization": [1.0, 0.0]}, "2": {"summarization": [1.0]}})
    assert found == {"summarization": 0.75}
