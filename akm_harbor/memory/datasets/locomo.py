"""LoCoMo: ten long two-person dialogues, questions with dialogue ids as evidence.

The category numbers follow upstream's code and the paper's counts, which much of the field
gets wrong: 1 multi-hop (282), 2 temporal (321), 3 open-domain (96), 4 single-hop (841),
5 adversarial (446).
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from akm_harbor.memory.datasets.checks import Reading, leftover, require
from akm_harbor.memory.datasets.dates import parse_date
from akm_harbor.memory.datasets.model import OTHER, Evidence, Instance, Question, Session, Turn, answer_text
from akm_harbor.memory.datasets.reading import WrongSchemaError, iter_records

BENCHMARK = "locomo"
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
ADVERSARIAL = 5
_SESSION = re.compile(r"session_(\d+)")
_DIA_ID = re.compile(r"D(\d+):(\d+)")
_RECORD = frozenset({"sample_id", "conversation", "qa"})
_TURN = frozenset({"dia_id", "speaker", "text", "blip_caption"})
_QA = frozenset({"question", "answer", "category", "evidence"})


def read(path: Path, reading: Reading) -> Iterator[Instance]:
    """Yield one instance a dialogue, in file order.

    Raises:
        WrongSchemaError: a record without the fields that make it LoCoMo.
    """
    for number, record in enumerate(iter_records(path)):
        yield _instance(record, number, reading)


def _instance(record: Mapping[str, Any], number: int, reading: Reading) -> Instance:
    place = f"record {number}"
    sample_id = require(record, "sample_id", str, reading.path, place)
    conversation = require(record, "conversation", dict, reading.path, place)
    published = require(record, "qa", list, reading.path, place)
    sessions, others = _sessions(conversation, sample_id, reading)
    known = {turn.turn_id: session.session_id for session in sessions for turn in session.turns}
    questions = tuple(_question(qa, i, sample_id, known, reading) for i, qa in enumerate(published))
    extra = leftover(record, _RECORD) or {}
    if others:
        extra["conversation"] = others
    return Instance(sample_id, sessions, questions, extra or None)


def _sessions(
    conversation: Mapping[str, Any], sample_id: str, reading: Reading
) -> tuple[tuple[Session, ...], dict[str, Any]]:
    numbers = sorted(int(m[1]) for m in map(_SESSION.fullmatch, conversation) if m)
    used = set()
    sessions = []
    for number in numbers:
        key, date_key = f"session_{number}", f"session_{number}_date_time"
        used |= {key, date_key}
        turns = conversation[key]
        place = f"{sample_id}/{key}"
        if not isinstance(turns, list):
            raise WrongSchemaError(f"{place}: a session must be a list of turns", path=reading.path)
        if not turns:
            reading.note("empty-session", place, "kept without turns")
        raw = conversation.get(date_key)
        date = raw if isinstance(raw, str) else None
        time = parse_date(date)
        if time is None:
            reading.note("unparseable-date", f"{place}: {raw!r}", "text kept, time left empty")
        sessions.append(Session(f"S{number}", date, time, tuple(_turn(t, place, reading) for t in turns)))
    if not sessions:
        raise WrongSchemaError(f"{sample_id}: no session_N in the conversation", path=reading.path)
    return tuple(sessions), {k: v for k, v in conversation.items() if k not in used}


def _turn(turn: Any, place: str, reading: Reading) -> Turn:
    if not isinstance(turn, dict):
        raise WrongSchemaError(f"{place}: a turn is {type(turn).__name__}, not an object", path=reading.path)
    dia_id = require(turn, "dia_id", str, reading.path, place)
    text = turn.get("text")
    if not isinstance(text, str):
        reading.note("turn-without-text", f"{place}/{dia_id}", "kept with empty text")
        text = ""
    caption = turn.get("blip_caption")
    # The annotators' image search string (`query`) leaks gold answers: it stays in extra, unindexed.
    return Turn(
        turn_id=dia_id,
        speaker=str(turn.get("speaker")),
        role=OTHER,
        text=text,
        caption=caption if isinstance(caption, str) and caption else None,
        extra=leftover(turn, _TURN),
    )


def _question(qa: Any, position: int, sample_id: str, known: Mapping[str, str], reading: Reading) -> Question:
    place = f"{sample_id}/qa{position}"
    if not isinstance(qa, dict):
        raise WrongSchemaError(f"{place} is {type(qa).__name__}, not an object", path=reading.path)
    category = require(qa, "category", int, reading.path, place)
    if category not in CATEGORIES:
        raise WrongSchemaError(f"{place}: category {category} is not one of 1-5", path=reading.path)
    answer, answer_type = answer_text(qa.get("answer"))
    if answer is None and category != ADVERSARIAL:
        reading.note("missing-answer", place, "kept; it can be retrieved for, not scored")
    return Question(
        question_id=reading.unique_question_id(place),
        text=require(qa, "question", str, reading.path, place),
        date=None,
        time=None,
        type_raw=str(category),
        type=CATEGORIES[category],
        is_abstention=category == ADVERSARIAL,
        answer=answer,
        answer_type=answer_type,
        evidence=_evidence(qa.get("evidence"), place, known, reading),
        extra=leftover(qa, _QA),
    )


def _evidence(published: Any, place: str, known: Mapping[str, str], reading: Reading) -> Evidence:
    raw = tuple(str(entry) for entry in published) if isinstance(published, list) else ()
    if not raw:
        reading.note("missing-evidence", place, "kept; recall is empty for it")
        return Evidence(raw, "none")
    turns = tuple(dict.fromkeys(entry for entry in raw if entry in known))
    sessions = tuple(dict.fromkeys(known[turn] for turn in turns))
    bad = [entry for entry in raw if entry not in known]
    if not bad:
        return Evidence(raw, "ok", turns, sessions)
    malformed = any(not _DIA_ID.fullmatch(entry) for entry in bad)
    status = "malformed" if malformed else "dangling"
    reading.note(f"{status}-evidence", f"{place}: {'; '.join(bad)}", "kept; recall is empty, audited recall is mended")
    mended = tuple(
        dict.fromkeys(
            turn
            for entry in raw
            for session, number in _DIA_ID.findall(entry)
            if (turn := f"D{int(session)}:{int(number)}") in known
        )
    )
    return Evidence(raw, status, turns, sessions, mended)
