"""BEAM in its layouts: repository folders, plans inside a chat, Parquet rows."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from akm_harbor.memory.datasets import beam
from akm_harbor.memory.datasets.reading import InvalidJsonError, WrongSchemaError
from akm_harbor.memory.datasets.sources import find_source
from tests.memory.datasets.helpers import read_all

MESSAGES = [
    {"role": "user", "id": 0, "content": "I plant leeks ->-> 1,1", "time_anchor": "March-15-2024", "index": "1,1"},
    {"role": "assistant", "id": 1, "content": "Good ->-> 1,1 indeed"},
]
PROBES = {
    "information_extraction": [
        {
            "question": "What do I plant?",
            "answer": "leeks",
            "rubric": ["leeks"],
            "source_chat_ids": [0],
            "difficulty": "easy",
        }
    ],
    "knowledge_update": [
        {"question": "q", "answer": 3, "rubric": ["r"], "source_chat_ids": {"old": [0], "new": [1]}, "note": "kept"}
    ],
    "abstention": [{"question": "q", "ideal_response": "unknown", "rubric": ["r"]}],
}


def chat(messages=MESSAGES, **batch):
    return [{"batch_number": 1, "time_anchor": None, "turns": [messages], **batch}]


def folder(root, number="1", chat_json=None, probes=PROBES, nested=True):
    home = root / number
    where = home / "probing_questions" if nested else home
    where.mkdir(parents=True)
    (home / "chat.json").write_text(json.dumps(chat() if chat_json is None else chat_json))
    (where / "probing_questions.json").write_text(json.dumps(probes))
    return home


def test_a_conversation_becomes_one_instance(tmp_path):
    folder(tmp_path)
    (instance,), problems = read_all("beam", tmp_path)
    assert not problems
    (session,) = instance.sessions
    assert (session.session_id, session.date, session.time.date().isoformat()) == ("1.1", "March-15-2024", "2024-03-15")
    assert session.turns[0].text == "I plant leeks"  # the trailing marker is bookkeeping
    assert session.turns[1].text == "Good ->-> 1,1 indeed"  # elsewhere it is text
    extraction, update, abstention = instance.questions
    assert extraction.question_id == "1/information_extraction/0"
    assert extraction.evidence.turns == ("0",)
    assert extraction.extra == {"difficulty": "easy"}
    assert update.evidence.turns == ("0", "1")
    assert (update.answer, update.answer_type, update.extra) == ("3", "integer", {"note": "kept"})
    assert abstention.is_abstention
    assert (abstention.answer, abstention.evidence.status) == ("unknown", "none")


def test_conversations_come_by_number_and_the_truncated_chat_is_preferred(tmp_path):
    for number in ("10", "2"):
        folder(tmp_path, number, nested=number == "2")
    shorter = chat([{**MESSAGES[0], "content": "cut"}, MESSAGES[1]])
    (tmp_path / "2" / "chat_trunecated.json").write_text(json.dumps(shorter))
    (two, ten), _ = read_all("beam", tmp_path)
    assert (two.instance_id, ten.instance_id) == ("2", "10")
    assert two.sessions[0].turns[0].text == "cut"


def test_plans_are_unwrapped_and_repeated_message_ids_counted(tmp_path):
    home = folder(tmp_path, chat_json=[{"plan-1": chat()}, {"plan-2": chat(), "plan-3": None}])
    (home / "plan-1").mkdir()
    (home / "plan-1" / "chat.json").write_text("[]")  # a plan's own folder is no conversation
    (instance,), problems = read_all("beam", tmp_path)
    assert [s.session_id for s in instance.sessions] == ["plan-1.1.1", "plan-2.1.1"]
    assert problems["duplicate-turn-id"].detail.startswith("2 x")


def test_parquet_rows_hold_the_same_conversation(tmp_path):
    row = {
        "conversation_id": "1",
        "chat": [[MESSAGES[0], {**MESSAGES[1], "time_anchor": None, "index": None}]],
        "probing_questions": repr(PROBES),
        "narratives": "n",
    }
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "part.parquet")
    (instance,), _ = read_all("beam", tmp_path)
    folder(tmp_path / "repo")
    (same,), _ = read_all("beam", tmp_path / "repo")
    assert [q.text for q in instance.questions] == [q.text for q in same.questions]
    assert [t.text for t in instance.sessions[0].turns] == [t.text for t in same.sessions[0].turns]
    assert instance.extra == {"narratives": "n"}


def test_a_main_question_starts_a_session_in_parquet_rows():
    main = {**MESSAGES[0], "question_type": "main_question"}
    assert [len(group) for group in beam._split([main, MESSAGES[1], main, MESSAGES[1], MESSAGES[1]])] == [2, 3]


def test_dangling_evidence_missing_rubrics_and_bad_dates_are_counted(tmp_path):
    probes = {
        "summarization": [{"question": "q", "source_chat_ids": [99]}],
        "riddle": [{"question": "q", "rubric": ["r"]}],
    }
    folder(tmp_path, chat_json=chat([{**MESSAGES[0], "time_anchor": "Smarch-15-2024", "content": None}]), probes=probes)
    (instance,), problems = read_all("beam", tmp_path)
    assert instance.questions[0].evidence.status == "dangling"
    assert {
        "dangling-evidence",
        "missing-rubric",
        "missing-answer",
        "unparseable-date",
        "turn-without-text",
        "unknown-question-type",
    } <= problems.keys()


@pytest.mark.parametrize(
    ("chat_json", "probes", "said"),
    [
        ({"turns": []}, PROBES, "must be a list of batches"),
        ([{"what": 1}], PROBES, "neither a batch nor a plan"),
        (chat([{"role": "user"}]), PROBES, "a message without an id"),
        (chat(), [], "not grouped by ability"),
        (chat(), {"summarization": [{}]}, "without a question"),
    ],
)
def test_another_schema_is_refused(tmp_path, chat_json, probes, said):
    folder(tmp_path, chat_json=chat_json, probes=probes)
    with pytest.raises(WrongSchemaError, match=said):
        read_all("beam", tmp_path)


def test_missing_parts_are_named(tmp_path):
    with pytest.raises(WrongSchemaError, match=r"no chat\.json or Parquet"):
        read_all("beam", tmp_path)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "chat.json").write_text("[]")
    with pytest.raises(WrongSchemaError, match=r"no probing_questions\.json"):
        read_all("beam", tmp_path)


def test_hostile_literals_and_broken_parquet_are_errors(tmp_path):
    pq.write_table(
        pa.Table.from_pylist([{"conversation_id": "1", "chat": [[]], "probing_questions": "__import__('os')"}]),
        tmp_path / "a.parquet",
    )
    with pytest.raises(InvalidJsonError, match="not a Python literal"):
        read_all("beam", tmp_path)
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(WrongSchemaError, match="not a Parquet file"):
        read_all("beam", tmp_path)


def test_the_demo_has_all_ten_abilities():
    instances, problems = read_all("beam", Path(find_source("demo-beam").path))
    assert {q.type for i in instances for q in i.questions} == set(beam.ABILITIES)
    assert not problems
