"""Small well-formed records of each benchmark, to be damaged one field at a time."""

import copy
import json

from akm_harbor.memory.datasets.checks import Reading
from akm_harbor.memory.datasets.detect import READERS
from akm_harbor.tables import Problems

LONGMEMEVAL = {
    "question_id": "q1",
    "question_type": "multi-session",
    "question": "How many kites?",
    "answer": "two",
    "question_date": "2023/05/30 (Tue) 23:40",
    "haystack_session_ids": ["filler_1", "answer_q1_1"],
    "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 03:00"],
    "haystack_sessions": [
        [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "good day"}],
        [
            {"role": "user", "content": "I own two kites", "has_answer": True},
            {"role": "assistant", "content": "nice", "has_answer": False},
        ],
    ],
    "answer_session_ids": ["answer_q1_1"],
}
LOCOMO = {
    "sample_id": "conv-1",
    "qa": [{"question": "Who sings?", "answer": "Ada", "category": 4, "evidence": ["D1:2"]}],
    "conversation": {
        "speaker_a": "Ada",
        "speaker_b": "Bo",
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Bo", "dia_id": "D1:1", "text": "Hi"},
            {"speaker": "Ada", "dia_id": "D1:2", "text": "I sing", "blip_caption": "a choir", "query": "choir singing"},
        ],
        "session_20_date_time": "9:00 am on 1 June, 2023",
    },
    "event_summary": {"events_session_1": {}},
}
CONVOMEM = {
    "evidenceItems": [
        {
            "question": "Which boat?",
            "answer": "The red one",
            "message_evidences": [{"speaker": "User", "text": "My boat is red."}],
            "conversations": [],
            "category": "user_facts",
            "personId": "p1",
        }
    ],
    "conversations": [
        {
            "id": "x",
            "containsEvidence": True,
            "messages": [{"speaker": "User", "text": "My boat is red."}, {"speaker": "Assistant", "text": "Noted."}],
        }
    ],
    "contextSize": 1,
}


def changed(record, **changes):
    """A deep copy with top-level fields replaced; None removes a field."""
    new = copy.deepcopy(record)
    for key, value in changes.items():
        if value is None:
            del new[key]
        else:
            new[key] = value
    return new


def read_all(benchmark, path, records=None):
    """(instances, problem kinds with details) of a file, written first if records are given."""
    if records is not None:
        path.write_text(json.dumps(records), encoding="utf-8")
    problems = Problems()
    reading = Reading(path, problems)
    instances = list(READERS[benchmark](path, reading))
    reading.finish()
    return instances, {problem.kind: problem for problem in problems}
