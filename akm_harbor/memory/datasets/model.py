"""What every benchmark is read into: a history of sessions of turns, with questions."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

USER, ASSISTANT, OTHER = "user", "assistant", "other"


@dataclass(frozen=True, slots=True)
class Turn:
    """One thing somebody said.

    Attributes:
        turn_id: the id that evidence refers to.
        speaker: who speaks, as published.
        role: `user`, `assistant` or `other`.
        text: what was said.
        caption: caption of a shared image.
        has_answer: the source marks this turn as evidence; None where it marks none.
        extra: source fields that have no place here.
    """

    turn_id: str
    speaker: str
    role: str
    text: str
    caption: str | None = None
    has_answer: bool | None = None
    extra: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of a history; its place in `Instance.sessions` is its identity, its id is not.

    Attributes:
        session_id: the source's id; two sessions of a history may share it.
        date: the date as published.
        time: the date parsed, None when it is absent or cannot be parsed.
        turns: in source order.
    """

    session_id: str
    date: str | None
    time: datetime | None
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a question's answer rests on.

    Attributes:
        raw: as published.
        status: `ok`, `none` (nothing published), `malformed` (an entry is not an id) or
            `dangling` (an id that does not exist).
        turns: turn ids that exist.
        sessions: session ids.
        repaired_turns: turn ids after mending; None where nothing was mended.
    """

    raw: tuple[str, ...] = ()
    status: str = "none"
    turns: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    repaired_turns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """One question about a history.

    Attributes:
        question_id: unique in the dataset.
        text: the question.
        date: when it is asked, as published.
        time: the same, parsed.
        type_raw: category as published.
        type: category by upstream's meaning.
        is_abstention: the right answer is that there is none.
        answer: gold as text, None where the source has none.
        answer_type: JSON type of the published answer, or `missing`.
        rubric: rubric items.
        evidence: what the answer rests on.
        has_user_target: some user turn is marked as evidence; None where turns carry no marks.
        audit_flag: why an audit takes this question out.
        extra: source fields that have no place here.
    """

    question_id: str
    text: str
    date: str | None
    time: datetime | None
    type_raw: str
    type: str
    is_abstention: bool
    answer: str | None
    answer_type: str
    rubric: tuple[str, ...] = ()
    evidence: Evidence = Evidence()
    has_user_target: bool | None = None
    audit_flag: str | None = None
    extra: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Instance:
    """One history with its questions.

    Attributes:
        instance_id: the source's id.
        sessions: in source order.
        questions: in source order.
        extra: source fields that have no place here.
    """

    instance_id: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
    extra: dict[str, Any] | None = None


def answer_text(value: Any) -> tuple[str | None, str]:
    """A published answer as text, with the JSON type it had.

    Whole numbers keep Python's spelling, which is what upstream's `str(answer)` gives.
    """
    if value is None:
        return None, "missing"
    if isinstance(value, list):
        return ", ".join(str(part) for part in value), "list"
    kinds = {str: "string", bool: "boolean", int: "integer", float: "number"}
    return str(value), kinds.get(type(value), type(value).__name__)
