"""Histories made by hand, small enough to check a ranking by eye."""

from akm_harbor.memory.datasets.model import Evidence, Instance, Question, Session, Turn


def turn(turn_id, text, role="user", has_answer=None, caption=None):
    return Turn(turn_id, role.capitalize(), role, text, caption, has_answer)


def question(question_id="q", text="Where is the red boat?", evidence=None, **changes):
    base = {
        "date": None,
        "time": None,
        "type_raw": "4",
        "type": "single-hop",
        "is_abstention": False,
        "answer": "a",
        "answer_type": "string",
    }
    return Question(question_id, text, evidence=evidence or Evidence(), **{**base, **changes})


def ok(turns, sessions, repaired=None, status="ok"):
    return Evidence(tuple(turns), status, tuple(turns), tuple(sessions), repaired)


def boats(*questions):
    """Two sessions about boats and one about tea; session id `s1` occurs twice."""
    return Instance(
        "boats",
        (
            Session(
                "s1",
                "2024/01/01 (Mon) 10:00",
                None,
                (
                    turn("s1_1", "The red boat lies at the north pier."),
                    turn("s1_2", "Noted.", "assistant", has_answer=True),
                ),
            ),
            Session(
                "s2",
                None,
                None,
                (turn("s2_1", "Green tea without sugar, please."), turn("s2_2", "Tea is on its way.", "assistant")),
            ),
            Session(
                "s1",
                "2024/01/03 (Wed) 10:00",
                None,
                (turn("s3_1", "The blue boat sank."), turn("s3_2", "", "assistant")),
            ),
        ),
        questions or (question(evidence=ok(["s1_1"], ["s1"])),),
    )
