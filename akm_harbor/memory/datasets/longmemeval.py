"""LongMemEval v1: one question a record, each with its own haystack of dated sessions."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from akm_harbor.memory.datasets.checks import Reading, leftover, require
from akm_harbor.memory.datasets.dates import parse_date
from akm_harbor.memory.datasets.model import (
    ASSISTANT,
    OTHER,
    USER,
    Evidence,
    Instance,
    Question,
    Session,
    Turn,
    answer_text,
)
from akm_harbor.memory.datasets.reading import WrongSchemaError, iter_records

BENCHMARK = "longmemeval"
TYPES = (
    "single-session-user",
    "single-session-assistant",
    "single-session-preference",
    "multi-session",
    "temporal-reasoning",
    "knowledge-update",
)
ABSTENTION_MARK = "_abs"
_RECORD = frozenset(
    {
        "question_id",
        "question_type",
        "question",
        "answer",
        "question_date",
        "haystack_session_ids",
        "haystack_dates",
        "haystack_sessions",
        "answer_session_ids",
    }
)
_TURN = frozenset({"role", "content", "has_answer"})


def read(path: Path, reading: Reading) -> Iterator[Instance]:
    """Yield one instance a question, in file order.

    Raises:
        WrongSchemaError: a record without the fields that make it LongMemEval.
    """
    for number, record in enumerate(iter_records(path)):
        yield _instance(record, number, reading)


def _instance(record: Mapping[str, Any], number: int, reading: Reading) -> Instance:
    path, place = reading.path, f"record {number}"
    published_id = require(record, "question_id", str, path, place)
    question_type = require(record, "question_type", str, path, place)
    require(record, "question", str, path, place)
    ids = require(record, "haystack_session_ids", list, path, place)
    dates = require(record, "haystack_dates", list, path, place)
    sessions = require(record, "haystack_sessions", list, path, place)
    if not len(ids) == len(dates) == len(sessions):
        raise WrongSchemaError(
            f"{place} ({published_id}): {len(ids)} session ids, {len(dates)} dates, {len(sessions)} sessions; "
            "the three run in parallel",
            path=path,
        )
    question_id = reading.unique_question_id(published_id)
    if question_type not in TYPES:
        reading.note("unknown-question-type", f"{question_id}: {question_type}", "kept; no judge prompt fits it")
    read_sessions = tuple(
        _session(str(session_id), date, turns, question_id, reading)
        for session_id, date, turns in zip(ids, dates, sessions, strict=True)
    )
    if len(set(map(str, ids))) < len(ids):
        reading.note("duplicate-session-id", question_id, "both kept; a session's place identifies it, not its id")
    question = _question(record, question_id, read_sessions, reading)
    return Instance(question_id, read_sessions, (question,))


def _question(record: Mapping[str, Any], question_id: str, sessions: tuple[Session, ...], reading: Reading) -> Question:
    answer, answer_type = answer_text(record.get("answer"))
    if answer is None:
        reading.note("missing-answer", question_id, "kept; it can be retrieved for, not judged")
    date = record.get("question_date")
    time = parse_date(date if isinstance(date, str) else None)
    if time is None:
        reading.note("unparseable-date", f"{question_id}: {date!r}", "text kept, time left empty")
    extra = leftover(record, _RECORD)
    if extra:
        reading.note("unknown-field", f"{question_id}: {', '.join(sorted(extra))}", "kept in extra_json")
    marked = [turn for session in sessions for turn in session.turns if turn.has_answer]
    return Question(
        question_id=question_id,
        text=record["question"],
        date=date if isinstance(date, str) else None,
        time=time,
        type_raw=record["question_type"],
        type=record["question_type"],
        is_abstention=ABSTENTION_MARK in record["question_id"],
        answer=answer,
        answer_type=answer_type,
        evidence=_evidence(record.get("answer_session_ids"), question_id, sessions, reading),
        has_user_target=any(turn.role == USER for turn in marked),
        extra=extra,
    )


def _evidence(published: Any, question_id: str, sessions: tuple[Session, ...], reading: Reading) -> Evidence:
    raw = tuple(str(entry) for entry in published) if isinstance(published, list) else ()
    known = {session.session_id for session in sessions}
    turns = tuple(dict.fromkeys(t.turn_id for s in sessions for t in s.turns if t.has_answer))
    found = tuple(dict.fromkeys(entry for entry in raw if entry in known))
    if not raw:
        reading.note("missing-evidence", question_id, "kept; recall is empty for it")
        return Evidence(raw, "none", turns, ())
    if len(found) < len(set(raw)):
        gone = sorted(set(raw) - known)
        reading.note("dangling-evidence", f"{question_id}: {', '.join(gone)}", "kept; recall is empty for it")
        return Evidence(raw, "dangling", turns, found)
    return Evidence(raw, "ok", turns, found)


def _session(session_id: str, date: Any, turns: Any, question_id: str, reading: Reading) -> Session:
    place = f"{question_id}/{session_id}"
    if not isinstance(turns, list):
        raise WrongSchemaError(f"{place}: a session must be a list of turns", path=reading.path)
    if not turns:
        reading.note("empty-session", place, "kept without turns")
    raw_date = date if isinstance(date, str) else None
    time = parse_date(raw_date)
    if time is None:
        reading.note("unparseable-date", f"{place}: {date!r}", "text kept, time left empty")
    return Session(
        session_id, raw_date, time, tuple(_turn(t, i, session_id, place, reading) for i, t in enumerate(turns))
    )


def _turn(turn: Any, position: int, session_id: str, place: str, reading: Reading) -> Turn:
    if not isinstance(turn, dict):
        raise WrongSchemaError(f"{place}: turn {position} is {type(turn).__name__}, not an object", path=reading.path)
    content = turn.get("content")
    role = turn.get("role")
    if not isinstance(content, str):
        reading.note("turn-without-text", f"{place}, turn {position}", "kept with empty text")
        content = ""
    mark = turn.get("has_answer")
    return Turn(
        turn_id=f"{session_id}_{position + 1}",
        speaker=str(role),
        role=role if role in (USER, ASSISTANT) else OTHER,
        text=content,
        has_answer=mark if isinstance(mark, bool) else None,
        extra=leftover(turn, _TURN),
    )
