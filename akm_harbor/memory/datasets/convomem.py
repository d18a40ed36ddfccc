"""ConvoMem: test cases of mixed conversations, evidence given as the messages themselves."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from akm_harbor.memory.datasets.checks import Reading, leftover, require
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

BENCHMARK = "convomem"
CATEGORIES = {
    "user_evidence": "user-facts",
    "assistant_facts_evidence": "assistant-facts",
    "changing_evidence": "changing-facts",
    "abstention_evidence": "abstention",
    "preference_evidence": "preference",
    "implicit_connection_evidence": "implicit-connection",
}
_ROLES = {"user": USER, "assistant": ASSISTANT}
_ITEM = frozenset({"question", "answer", "message_evidences", "conversations", "category"})


def files(root: Path) -> list[Path]:
    """The batches below a folder (or the one file), in reading order."""
    if root.is_file():
        return [root]
    found = sorted(root.rglob("batched_*.json"))
    if not found:
        raise WrongSchemaError(
            "no batched_*.json below it", path=root, hint="Name core_benchmark/pre_mixed_testcases or a part of it."
        )
    return found


def read(path: Path, reading: Reading) -> Iterator[Instance]:
    """Yield one instance a test case.

    Raises:
        WrongSchemaError: a record without the fields that make it ConvoMem.
    """
    for file in files(path):
        folder = next((part for part in reversed(file.parts) if part in CATEGORIES), None)
        prefix = file.relative_to(path).with_suffix("").as_posix() if path.is_dir() else file.stem
        for number, record in enumerate(iter_records(file)):
            yield _instance(record, f"{prefix}/{number}", folder, reading)


def _instance(record: Mapping[str, Any], name: str, folder: str | None, reading: Reading) -> Instance:
    items = require(record, "evidenceItems", list, reading.path, name)
    mixed = record.get("conversations")
    if not isinstance(mixed, list):
        mixed = [c for item in items if isinstance(item, dict) for c in item.get("conversations") or []]
    sessions = tuple(_session(c, i, name, reading) for i, c in enumerate(mixed))
    said: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for session in sessions:
        for turn in session.turns:
            said.setdefault((turn.speaker.lower(), turn.text.strip()), []).append((turn.turn_id, session.session_id))
    questions = tuple(_question(item, f"{name}/{i}", folder, said, reading) for i, item in enumerate(items))
    extra = leftover(record, frozenset({"evidenceItems", "conversations"}))
    return Instance(name, sessions, questions, extra)


def _session(conversation: Any, position: int, name: str, reading: Reading) -> Session:
    place = f"{name}/conversation {position}"
    if not isinstance(conversation, dict):
        raise WrongSchemaError(f"{place} is not an object", path=reading.path)
    messages = require(conversation, "messages", list, reading.path, place)
    if not messages:
        reading.note("empty-session", place, "kept without turns")
    # The id would do, but `containsEvidence` sits beside it: neither goes to a backend.
    session_id = f"c{position + 1}"
    return Session(
        session_id, None, None, tuple(_turn(m, i, session_id, place, reading) for i, m in enumerate(messages))
    )


def _turn(message: Any, position: int, session_id: str, place: str, reading: Reading) -> Turn:
    if not isinstance(message, dict):
        raise WrongSchemaError(f"{place}: message {position} is not an object", path=reading.path)
    text = message.get("text")
    if not isinstance(text, str):
        reading.note("turn-without-text", f"{place}, message {position}", "kept with empty text")
        text = ""
    speaker = str(message.get("speaker"))
    return Turn(
        turn_id=f"{session_id}_{position + 1}",
        speaker=speaker,
        role=_ROLES.get(speaker.lower(), OTHER),
        text=text,
        extra=leftover(message, frozenset({"speaker", "text"})),
    )


def _question(
    item: Any,
    place: str,
    folder: str | None,
    said: Mapping[tuple[str, str], list[tuple[str, str]]],
    reading: Reading,
) -> Question:
    if not isinstance(item, dict):
        raise WrongSchemaError(f"{place}: an evidence item is not an object", path=reading.path)
    text = require(item, "question", str, reading.path, place)
    answer, answer_type = answer_text(item.get("answer"))
    if answer is None:
        reading.note("missing-answer", place, "kept; it can be retrieved for, not judged")
    published = str(item.get("category"))
    kind = CATEGORIES[folder] if folder else published.replace("_", "-")
    evidences = item.get("message_evidences") or []
    raw, turns, sessions = [], [], []
    for evidence in evidences:
        entry = evidence if isinstance(evidence, dict) else {}
        key = (str(entry.get("speaker")).lower(), str(entry.get("text")).strip())
        raw.append(f"{entry.get('speaker')}: {entry.get('text')}")
        for turn_id, session_id in said.get(key, []):
            turns.append(turn_id)
            sessions.append(session_id)
    missing = sum(
        (str(e.get("speaker")).lower(), str(e.get("text")).strip()) not in said
        for e in evidences
        if isinstance(e, dict)
    )
    status = "ok" if raw and not missing else "dangling" if raw else "none"
    if missing:
        reading.note("dangling-evidence", place, "kept; recall is empty for it")
    return Question(
        question_id=reading.unique_question_id(place),
        text=text,
        date=None,
        time=None,
        type_raw=folder or published,
        type=kind,
        is_abstention=kind == "abstention",
        answer=answer,
        answer_type=answer_type,
        evidence=Evidence(tuple(raw), status, tuple(dict.fromkeys(turns)), tuple(dict.fromkeys(sessions))),
        extra=leftover(item, _ITEM),
    )
