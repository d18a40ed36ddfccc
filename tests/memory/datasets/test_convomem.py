"""ConvoMem test cases: conversations, and evidence found by its text."""

import pytest

from akm_harbor.memory.datasets.reading import WrongSchemaError
from tests.memory.datasets.helpers import CONVOMEM, changed, read_all


def test_a_test_case_becomes_one_instance(tmp_path):
    (instance,), problems = read_all("convomem", tmp_path / "f.json", [CONVOMEM])
    assert not problems
    (question,) = instance.questions
    assert (question.type, question.answer) == ("user-facts", "The red one")
    assert question.evidence.turns == ("c1_1",)
    assert question.evidence.sessions == ("c1",)
    assert instance.sessions[0].turns[0].role == "user"
    assert question.extra == {"personId": "p1"}
    assert instance.extra == {"contextSize": 1}


def test_the_published_folder_names_the_category(tmp_path):
    path = tmp_path / "pre_mixed_testcases" / "abstention_evidence" / "1_evidence" / "batched_000.json"
    path.parent.mkdir(parents=True)
    read_all("convomem", path, [CONVOMEM])
    (instance,), _ = read_all("convomem", tmp_path)
    (question,) = instance.questions
    assert question.type_raw == "abstention_evidence"
    assert question.is_abstention
    assert question.question_id.startswith("pre_mixed_testcases/abstention_evidence/1_evidence/batched_000/0")


def test_conversations_of_the_items_serve_where_none_are_mixed(tmp_path):
    item = {**CONVOMEM["evidenceItems"][0], "conversations": CONVOMEM["conversations"]}
    (instance,), _ = read_all(
        "convomem", tmp_path / "f.json", [changed(CONVOMEM, evidenceItems=[item], conversations=None)]
    )
    assert instance.questions[0].evidence.status == "ok"


def test_evidence_that_nobody_said_is_counted(tmp_path):
    item = {
        **CONVOMEM["evidenceItems"][0],
        "message_evidences": [{"speaker": "User", "text": "Other."}],
        "answer": None,
    }
    (instance,), problems = read_all("convomem", tmp_path / "f.json", [changed(CONVOMEM, evidenceItems=[item])])
    assert instance.questions[0].evidence.status == "dangling"
    assert {"dangling-evidence", "missing-answer"} <= problems.keys()


def test_empty_conversations_and_textless_messages_are_kept(tmp_path):
    record = changed(CONVOMEM, conversations=[{"messages": []}, {"messages": [{"speaker": "User"}]}])
    (instance,), problems = read_all("convomem", tmp_path / "f.json", [record])
    assert len(instance.sessions) == 2
    assert {"empty-session", "turn-without-text"} <= problems.keys()


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (changed(CONVOMEM, evidenceItems=None), "field 'evidenceItems' is absent"),
        (changed(CONVOMEM, evidenceItems=["x"]), "is not an object"),
        (changed(CONVOMEM, conversations=["x"]), "conversation 0 is not an object"),
        (changed(CONVOMEM, conversations=[{}]), "field 'messages' is absent"),
        (changed(CONVOMEM, conversations=[{"messages": ["x"]}]), "message 0 is not an object"),
    ],
)
def test_another_schema_is_refused(tmp_path, record, said):
    with pytest.raises(WrongSchemaError, match=said):
        read_all("convomem", tmp_path / "f.json", [record])


def test_a_folder_without_batches_is_refused(tmp_path):
    with pytest.raises(WrongSchemaError, match="no batched_"):
        read_all("convomem", tmp_path)
