"""LoCoMo records, whole and damaged, and the counts that the field gets wrong."""

from collections import Counter
from pathlib import Path

import pytest

from akm_harbor.memory.datasets.locomo import CATEGORIES
from akm_harbor.memory.datasets.reading import WrongSchemaError
from tests.memory.datasets.helpers import LOCOMO, changed, read_all
from tests.memory.support import LOCOMO as REAL
from tests.memory.support import needs_locomo


def read(tmp_path, *records):
    return read_all("locomo", tmp_path / "f.json", list(records))


def with_qa(*questions):
    base = {"question": "?", "answer": "a", "category": 1, "evidence": ["D1:1"]}
    return changed(LOCOMO, qa=[{**base, **q} for q in questions])


def test_a_record_becomes_one_instance_with_all_its_questions(tmp_path):
    (instance,), problems = read(tmp_path, LOCOMO)
    assert not problems
    assert instance.instance_id == "conv-1"
    assert [s.session_id for s in instance.sessions] == ["S1"]
    assert instance.sessions[0].time.isoformat() == "2023-05-08T13:56:00+00:00"
    turn = instance.sessions[0].turns[1]
    assert (turn.turn_id, turn.text, turn.caption) == ("D1:2", "I sing", "a choir")
    assert turn.extra == {"query": "choir singing"}  # kept, and never indexed: it leaks answers
    (question,) = instance.questions
    assert (question.question_id, question.type_raw, question.type) == ("conv-1/qa0", "4", "single-hop")
    assert question.evidence.sessions == ("S1",)


def test_nothing_of_the_record_is_lost(tmp_path):
    (instance,), _ = read(tmp_path, LOCOMO)
    kept = instance.extra["conversation"]
    assert kept == {"speaker_a": "Ada", "speaker_b": "Bo", "session_20_date_time": "9:00 am on 1 June, 2023"}
    assert instance.extra["event_summary"] == {"events_session_1": {}}


def test_category_names_follow_upstream_not_the_papers_order():
    assert CATEGORIES == {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}


@pytest.mark.parametrize(
    ("evidence", "status", "repaired"),
    [
        (["D1:1", "D1:2"], "ok", None),
        ([], "none", None),
        (["D1:1; D1:2"], "malformed", ("D1:1", "D1:2")),
        (["D"], "malformed", ()),
        (["D:11:26"], "malformed", ()),
        (["D1:1 D1:2 D9:9"], "malformed", ("D1:1", "D1:2")),
        (["D01:02"], "dangling", ("D1:2",)),
        (["D10:19"], "dangling", ()),
    ],
)
def test_evidence_is_judged_as_published_and_mended_beside(tmp_path, evidence, status, repaired):
    (instance,), _ = read(tmp_path, with_qa({"evidence": evidence}))
    found = instance.questions[0].evidence
    assert (found.status, found.repaired_turns) == (status, repaired)
    assert found.raw == tuple(evidence)


def test_adversarial_questions_need_no_answer(tmp_path):
    (instance,), problems = read(
        tmp_path, with_qa({"category": 5, "answer": None, "adversarial_answer": "x"}, {"answer": 7})
    )
    adversarial, integer = instance.questions
    assert adversarial.is_abstention
    assert adversarial.answer is None
    assert adversarial.extra == {"adversarial_answer": "x"}
    assert (integer.answer, integer.answer_type) == ("7", "integer")
    assert not problems


def test_missing_answers_elsewhere_are_counted(tmp_path):
    _, problems = read(tmp_path, with_qa({"answer": None}))
    assert problems["missing-answer"].detail == "1 x: conv-1/qa0"


def test_empty_sessions_bad_dates_and_textless_turns_are_counted(tmp_path):
    conversation = {
        "session_1": [],
        "session_2": [{"speaker": "A", "dia_id": "D2:1"}],
        "session_2_date_time": "one fine day",
    }
    (instance,), problems = read(tmp_path, changed(LOCOMO, conversation=conversation, qa=[]))
    assert [len(s.turns) for s in instance.sessions] == [0, 1]
    assert {"empty-session", "unparseable-date", "turn-without-text"} <= problems.keys()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (changed(LOCOMO, qa=None), "field 'qa' is absent"),
        (changed(LOCOMO, conversation={"speaker_a": "x"}), "no session_N"),
        (with_qa({"category": 6}), "category 6 is not one of 1-5"),
        (with_qa({"category": "4"}), "field 'category' is str, int"),
        (changed(LOCOMO, qa=["?"]), "qa0 is str"),
        (changed(LOCOMO, conversation={"session_1": [{"text": "no id"}]}), "field 'dia_id' is absent"),
    ],
)
def test_another_schema_is_refused_with_its_place(tmp_path, record, said):
    with pytest.raises(WrongSchemaError, match=said):
        read(tmp_path, record)


@needs_locomo
def test_the_published_file_has_its_known_counts_and_defects():
    instances, problems = read_all("locomo", Path(REAL))
    questions = [q for i in instances for q in i.questions]
    assert Counter(int(q.type_raw) for q in questions) == {1: 282, 2: 321, 3: 96, 4: 841, 5: 446}
    assert [len(i.questions) for i in instances] == [199, 105, 193, 260, 242, 158, 190, 239, 196, 204]
    assert sum(len(i.sessions) for i in instances) == 272
    assert sum(len(s.turns) for i in instances for s in i.sessions) == 5882
    assert Counter(q.evidence.status for q in questions) == {"ok": 1973, "malformed": 6, "dangling": 3, "none": 4}
    assert Counter(q.answer_type for q in questions) == {"string": 1536, "integer": 6, "missing": 444}
    assert set(problems) == {"malformed-evidence", "dangling-evidence", "missing-evidence"}
