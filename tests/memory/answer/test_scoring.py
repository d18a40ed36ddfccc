"""Answers become scores by each benchmark's own arithmetic, and can be derived again from stored replies."""

import hashlib
import json

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.answer import judge_prompt
from akm_harbor.memory.answer.scoring import (
    BeamJudge,
    LongMemEvalJudge,
    OwnJudge,
    Task,
    calls_of,
    in_order,
    make_scorer,
    replay,
    verdict,
)
from akm_harbor.memory.scorers import beam, upstream
from tests.memory.support import (
    BEAM_UPSTREAM,
    LONGMEMEVAL_UPSTREAM,
    lines,
    needs_beam_upstream,
    needs_longmemeval_upstream,
)

SCORERS = ["locomo-f1/3eb6f2c5", "akm-harbor-judge/1", "longmemeval-judge/9e0b455f", beam.UPSTREAM, beam.PAPER]


def task(question_id="q", qtype="single-session-user", **changes):
    base = {"qtype_raw": "4", "question": "Which boat?", "gold": "the red boat", "rubric": (), "is_abstention": False}
    return Task(question_id=question_id, qtype=qtype, **{**base, **changes})


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ("yes", "yes"),
        ("Yes.", "yes"),
        ("**Yes**, it states the same.", "yes"),
        ("no", "no"),
        ("No, the answer differs.", "no"),
        ("", "undecided"),
        ("yes and no", "undecided"),
        ("No... well, yes.", "undecided"),
        ("The answer is yes", "undecided"),
        ("yesterday", "undecided"),
        ("eyes", "undecided"),
        ("I cannot judge this.", "undecided"),
        ("\u662f", "undecided"),
    ],
)
def test_a_verdict_is_given_or_it_is_not(reply, found):
    assert verdict(reply) == found


def test_locomo_scores_are_the_reference_scores():
    scorer = make_scorer("locomo-f1", "")
    for row in lines("locomo_reference_synthetic.jsonl"):
        one = task(qtype_raw=str(row["category"]), gold=None if row["answer"] is None else str(row["answer"]))
        score = scorer.score(one, row["prediction"], in_order([]))
        assert score.official == pytest.approx(row["official_score"], abs=1e-12)
        assert score.verdict is None


def asked_of(scorer, one, replies, answer="a blue boat"):
    seen = []
    left = iter(replies)

    def ask(asked):
        seen.append(asked)
        return next(left)

    return scorer.score(one, answer, ask), seen


def test_our_own_judge_is_asked_by_the_kind_of_question():
    for one, kind, part in (
        (task(), judge_prompt.FACT, "Reference: the red boat"),
        (task(gold=None, rubric=("names a boat",)), judge_prompt.RUBRIC, "- names a boat"),
        (task(gold="never said", is_abstention=True), judge_prompt.NONE, "cannot be answered: never said"),
    ):
        score, (asked,) = asked_of(OwnJudge(), one, ["yes"])
        assert score.official == 1.0
        assert score.prompt_id == asked.prompt_id == judge_prompt.DIGESTS[kind]
        assert part in asked.messages[0][1]
        assert "Answer to be judged: a blue boat" in asked.messages[0][1]


def test_braces_in_a_question_are_not_read_as_slots():
    text = judge_prompt.fill(judge_prompt.FACT, "{answer}?", "{gold}", (), "{question}")
    assert "Question: {answer}?" in text
    assert "Answer to be judged: {question}" in text


def test_an_undecided_verdict_has_no_score():
    score, _ = asked_of(OwnJudge(), task(), ["Hard to say."])
    assert (score.official, score.verdict) == (None, "undecided")
    assert "neither yes nor no" in score.note


def longmemeval_double():
    """Prompts of the shape of upstream's, but ours."""
    templates = {
        1: "default {} Correct Answer: {} said {}",
        2: "temporal {} Correct Answer: {} said {}",
        3: "update {} Correct Answer: {} said {}",
        4: "preference {} Rubric: {} said {}",
        5: "abstention {} Explanation: {} said {}",
    }
    return LongMemEvalJudge(upstream.LongMemEvalPrompts(templates))


def test_longmemeval_is_routed_by_id_first_and_asked_as_upstream_asks():
    scorer = longmemeval_double()
    score, (asked,) = asked_of(scorer, task("q_abs", "temporal-reasoning"), ["yes"])
    assert asked.messages[0][1].startswith("abstention")
    assert dict(asked.settings) == {"n": 1, "temperature": 0, "max_tokens": 10}
    assert (score.official, score.aux) == (1.0, 1.0)
    _, (asked,) = asked_of(scorer, task("q", "temporal-reasoning"), ["no"])
    assert asked.messages[0][1].startswith("temporal")


def test_upstreams_label_always_decides_and_stands_beside():
    score, _ = asked_of(longmemeval_double(), task(), ["I saw it with my own eyes"])
    assert (score.official, score.aux, score.verdict) == (None, 1.0, "undecided")
    score, _ = asked_of(longmemeval_double(), task(), ["Perhaps."])
    assert (score.official, score.aux) == (None, 0.0)


def beam_double(name=beam.PAPER):
    judge = "<question> <rubric_item> <llm_response>"
    return BeamJudge(upstream.BeamPrompts(judge, "same?", "{first_paragraph}|{second_paragraph}"), name)


def test_beam_asks_once_a_rubric_item_and_keeps_or_cuts_the_halves():
    one = task(qtype="summarization", rubric=("a", "b"))
    replies = ['{"score": 0.5}', '{"score": 1}']
    score, seen = asked_of(beam_double(), one, replies)
    assert score.official == 0.75
    assert [a.messages[0][1].split()[-4] for a in seen] == ["a", "b"]
    assert asked_of(beam_double(beam.UPSTREAM), one, replies)[0].official == 0.5
    assert calls_of(beam_double(), one) == 2


def test_beams_event_ordering_asks_which_events_are_the_same_and_can_be_undecided():
    one = task(qtype=beam.EVENT_ORDERING, rubric=("first", "second"))
    replies = ["yes", "yes", '{"score": 1}', '{"score": 1}']
    score, seen = asked_of(beam_double(), one, replies, "one\ntwo")
    assert score.official == 1.0
    assert seen[0].messages == (("system", "same?"), ("user", "first|one"))
    score, _ = asked_of(beam_double(), one, ["perhaps"], "one")
    assert (score.official, score.note) == (None, "whether two events are the same was answered neither yes nor no")
    assert calls_of(beam_double(), one) == 5


def test_a_reply_without_a_score_is_undecided_not_zero():
    score, _ = asked_of(beam_double(), task(qtype="summarization", rubric=("a",)), ["a fine answer"])
    assert score.official is None
    assert "no score" in score.note


@pytest.mark.parametrize("scorer_id", SCORERS)
def test_a_score_follows_from_stored_replies_without_upstreams_prompts(scorer_id):
    scorer = replay(scorer_id)
    assert scorer.id == scorer_id
    one = task(qtype="summarization" if scorer_id.startswith("beam") else "multi-session", rubric=("a",))
    reply = json.dumps({"score": 1}) if scorer_id.startswith("beam") else "yes"
    assert scorer.score(one, "the red boat", in_order([reply])).official == 1.0
    if scorer.judged:
        with pytest.raises(LookupError, match="reply is missing"):
            scorer.score(one, "the red boat", in_order([]))


def test_unknown_scorers_are_refused():
    with pytest.raises(UsageError, match="no scorer"):
        make_scorer("mine", "")
    with pytest.raises(UsageError, match="no scorer"):
        replay("mine/1")


def test_another_version_of_upstream_is_refused(tmp_path):
    path = tmp_path / upstream.LONGMEMEVAL_JUDGE.path
    path.parent.mkdir(parents=True)
    path.write_text("def get_anscheck_prompt(): pass\n")
    with pytest.raises(upstream.UpstreamError, match="another version"):
        make_scorer("longmemeval-judge", str(tmp_path))


@needs_longmemeval_upstream
def test_upstreams_real_prompts_have_the_reference_digests():
    scorer = make_scorer("longmemeval-judge", LONGMEMEVAL_UPSTREAM)
    assert scorer.sha == replay(scorer.id).sha
    score, (asked,) = asked_of(scorer, task(), ["yes"])
    assert score.official == 1.0
    assert hashlib.sha256(asked.messages[0][1].encode()).hexdigest()
    assert "the red boat" in asked.messages[0][1]


@needs_beam_upstream
def test_beams_real_prompts_ask_about_the_item():
    scorer = make_scorer("beam-paper", BEAM_UPSTREAM)
    assert scorer.sha == replay(scorer.id).sha
    _, (asked,) = asked_of(scorer, task(qtype="summarization", rubric=("names the boat",)), ['{"score": 1}'])
    assert "names the boat" in asked.messages[0][1]
    assert "<question>" not in asked.messages[0][1]
