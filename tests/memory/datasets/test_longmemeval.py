"""LongMemEval records, whole and damaged: what fits is read, what does not is counted."""

import pytest

from akm_harbor.memory.datasets.reading import WrongSchemaError
from tests.memory.datasets.helpers import LONGMEMEVAL, changed, read_all


def read(tmp_path, *records):
    return read_all("longmemeval", tmp_path / "f.json", list(records))


def test_a_record_becomes_one_instance(tmp_path):
    (instance,), problems = read(tmp_path, LONGMEMEVAL)
    assert not problems
    (question,) = instance.questions
    assert (question.question_id, question.type, question.answer, question.answer_type) == (
        "q1",
        "multi-session",
        "two",
        "string",
    )
    assert question.time.isoformat() == "2023-05-30T23:40:00+00:00"
    assert question.evidence.sessions == ("answer_q1_1",)
    assert question.evidence.turns == ("answer_q1_1_1",)
    assert question.has_user_target is True
    assert [s.session_id for s in instance.sessions] == ["filler_1", "answer_q1_1"]
    assert instance.sessions[1].turns[0].text == "I own two kites"


@pytest.mark.parametrize(
    ("answer", "text", "kind"),
    [(3, "3", "integer"), ("3", "3", "string"), (3.0, "3.0", "number"), (["a", "b"], "a, b", "list")],
)
def test_answers_keep_the_type_they_were_published_with(tmp_path, answer, text, kind):
    (instance,), _ = read(tmp_path, changed(LONGMEMEVAL, answer=answer))
    assert (instance.questions[0].answer, instance.questions[0].answer_type) == (text, kind)


def test_abstention_is_in_the_id(tmp_path):
    (instance,), _ = read(tmp_path, changed(LONGMEMEVAL, question_id="q1_abs"))
    assert instance.questions[0].is_abstention
    assert instance.questions[0].type == "multi-session"


def test_a_session_listed_twice_is_kept_twice(tmp_path):
    record = changed(LONGMEMEVAL, haystack_session_ids=["filler_1", "filler_1"], answer_session_ids=["filler_1"])
    (instance,), problems = read(tmp_path, record)
    assert len(instance.sessions) == 2
    assert problems["duplicate-session-id"].detail == "1 x: q1"


def test_unparseable_dates_keep_their_text_and_no_time(tmp_path):
    record = changed(LONGMEMEVAL, question_date="soon", haystack_dates=["2023/13/20 (Sat) 02:21", "x"])
    (instance,), problems = read(tmp_path, record)
    assert instance.questions[0].date == "soon"
    assert instance.questions[0].time is None
    assert [s.time for s in instance.sessions] == [None, None]
    assert problems["unparseable-date"].detail.startswith("3 x: ")


def test_evidence_that_is_missing_or_points_nowhere_is_counted(tmp_path):
    instances, problems = read(
        tmp_path,
        changed(LONGMEMEVAL, answer_session_ids=["gone_1"]),
        changed(LONGMEMEVAL, question_id="q2", answer_session_ids=[]),
        changed(LONGMEMEVAL, question_id="q3", answer_session_ids=None),
    )
    assert [i.questions[0].evidence.status for i in instances] == ["dangling", "none", "none"]
    assert "gone_1" in problems["dangling-evidence"].detail
    assert problems["missing-evidence"].detail.startswith("2 x")


def test_repeated_question_ids_stay_apart(tmp_path):
    instances, problems = read(tmp_path, LONGMEMEVAL, LONGMEMEVAL)
    assert [i.questions[0].question_id for i in instances] == ["q1", "q1#2"]
    assert problems["duplicate-question-id"].action == "kept, with #n behind its id"


def test_empty_sessions_and_textless_turns_are_kept_and_counted(tmp_path):
    record = changed(LONGMEMEVAL, haystack_sessions=[[], [{"role": "tool", "content": None}]])
    (instance,), problems = read(tmp_path, record)
    assert [len(s.turns) for s in instance.sessions] == [0, 1]
    assert instance.sessions[1].turns[0].text == ""
    assert instance.sessions[1].turns[0].role == "other"
    assert {"empty-session", "turn-without-text"} <= problems.keys()


def test_fields_nobody_knows_are_kept(tmp_path):
    record = changed(LONGMEMEVAL, difficulty="hard")
    record["haystack_sessions"][0][0]["mood"] = "calm"
    (instance,), problems = read(tmp_path, record)
    assert instance.questions[0].extra == {"difficulty": "hard"}
    assert instance.sessions[0].turns[0].extra == {"mood": "calm"}
    assert "unknown-field" in problems


def test_unknown_types_and_missing_answers_are_kept_and_counted(tmp_path):
    (instance,), problems = read(tmp_path, changed(LONGMEMEVAL, question_type="riddle", answer=None))
    assert instance.questions[0].type == "riddle"
    assert instance.questions[0].answer is None
    assert {"unknown-question-type", "missing-answer"} <= problems.keys()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (changed(LONGMEMEVAL, question=None), "field 'question' is absent"),
        (changed(LONGMEMEVAL, question_id=7), "field 'question_id' is int, str was expected"),
        (changed(LONGMEMEVAL, haystack_dates=["one"]), "the three run in parallel"),
        (changed(LONGMEMEVAL, haystack_sessions=["text", "text"]), "must be a list of turns"),
        (changed(LONGMEMEVAL, haystack_sessions=[["text"], []]), "turn 0 is str"),
    ],
)
def test_another_schema_is_refused_with_its_place(tmp_path, record, said):
    with pytest.raises(WrongSchemaError, match=said):
        read(tmp_path, record)
