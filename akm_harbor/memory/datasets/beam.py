"""BEAM: long user-assistant chats (100K to 10M tokens) with twenty probing questions each.

Two layouts are read: a folder of `<id>/chat.json` with `probing_questions.json` beside it or
in a folder of that name (the repository's), and Parquet files with one conversation a row
(the hub's). Where `chat_trunecated.json` (sic) exists it is the chat, as for upstream.
"""

import ast
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from akm_harbor.memory.datasets.checks import Reading, leftover
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
from akm_harbor.memory.datasets.reading import InvalidJsonError, WrongSchemaError, read_json
from akm_harbor.tables.parquet import parquet_file

BENCHMARK = "beam"
ABILITIES = (
    "abstention",
    "contradiction_resolution",
    "event_ordering",
    "information_extraction",
    "instruction_following",
    "knowledge_update",
    "multi_session_reasoning",
    "preference_following",
    "summarization",
    "temporal_reasoning",
)
_GOLD = ("answer", "ideal_answer", "ideal_response", "ideal_summary", "expected_compliance")
_MARKER = re.compile(r"\s*->->\s*\d+\s*,\s*\d+\s*$")
_MESSAGE = frozenset({"role", "id", "content", "time_anchor"})
type _Batch = tuple[str, str | None, list[list[Any]]]
"""label, date, groups of messages"""

_CHATS = ("chat_trunecated.json", "chat.json")


def files(root: Path) -> list[Path]:
    """The files below a folder (or the one file) that make up the dataset, in reading order."""
    if root.is_file():
        return [root]
    parquet = sorted(root.rglob("*.parquet"))
    if parquet:
        return parquet
    found = []
    for folder in _conversations(root):
        found += [_chat_file(folder), _probes_file(folder)]
    return found


def read(path: Path, reading: Reading) -> Iterator[Instance]:
    """Yield one instance a conversation, by number.

    Raises:
        WrongSchemaError: a file without the fields that make it BEAM.
    """
    parquet = [file for file in files(path) if file.suffix == ".parquet"]
    if parquet:
        for file in parquet:
            yield from _rows(file, reading)
        return
    for folder in _conversations(path):
        chat = read_json(_chat_file(folder))
        probes = read_json(_probes_file(folder))
        yield _instance(folder.name, _batches(chat, folder), probes, None, reading)


def _conversations(root: Path) -> list[Path]:
    folders = sorted({file.parent for name in _CHATS for file in root.rglob(name)}, key=_by_number)
    # A 10M conversation also holds its ten plans, each in a folder of its own.
    folders = [f for f in folders if not any(parent in folders for parent in f.parents)]
    if not folders:
        raise WrongSchemaError(
            "no chat.json or Parquet file below it",
            path=root,
            hint="Name the folder that holds the numbered conversations, e.g. chats/100K.",
        )
    return folders


def _by_number(folder: Path) -> tuple[int, str]:
    return (int(folder.name) if folder.name.isdigit() else 1 << 30, str(folder))


def _chat_file(folder: Path) -> Path:
    return next(folder / name for name in _CHATS if (folder / name).is_file())


def _probes_file(folder: Path) -> Path:
    for candidate in (folder / "probing_questions" / "probing_questions.json", folder / "probing_questions.json"):
        if candidate.is_file():
            return candidate
    raise WrongSchemaError("has a chat but no probing_questions.json", path=folder)


def _rows(file: Path, reading: Reading) -> Iterator[Instance]:
    try:
        with parquet_file(file) as parquet:
            for batch in parquet.iter_batches(batch_size=1):
                yield from (_row(row, reading) for row in batch.to_pylist())
    except pa.ArrowInvalid as error:
        raise WrongSchemaError(f"not a Parquet file ({error})", path=file) from error


def _row(row: Mapping[str, Any], reading: Reading) -> Instance:
    name = str(row.get("conversation_id"))
    probes = row.get("probing_questions")
    try:
        parsed = ast.literal_eval(probes) if isinstance(probes, str) else probes
    except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
        raise InvalidJsonError(
            f"conversation {name}: probing_questions is not a Python literal", path=reading.path
        ) from error
    chat = row.get("chat")
    if not isinstance(chat, list):
        raise WrongSchemaError(f"conversation {name}: no chat", path=reading.path)
    batches: list[_Batch] = [(str(i + 1), None, _split(batch or [])) for i, batch in enumerate(chat)]
    extra = leftover(row, frozenset({"conversation_id", "chat", "probing_questions"}))
    return _instance(name, batches, parsed, extra, reading)


def _split(messages: list[Any]) -> list[list[Any]]:
    """Cut a batch where the user asks a new main question, which is how the repository has it."""
    groups: list[list[Any]] = []
    for message in messages:
        if not groups or (isinstance(message, dict) and message.get("question_type") == "main_question"):
            groups.append([])
        groups[-1].append(message)
    return groups


def _batches(chat: Any, folder: Path) -> list[_Batch]:
    """(label, date, groups of messages) of every batch, plans unwrapped."""
    found: list[_Batch] = []
    if not isinstance(chat, list):
        raise WrongSchemaError("a chat must be a list of batches", path=folder)
    for entry in chat:
        if isinstance(entry, dict) and isinstance(entry.get("turns"), list):
            found.append((str(entry.get("batch_number")), entry.get("time_anchor"), entry["turns"]))
        elif isinstance(entry, dict) and entry and all(k.startswith("plan-") for k in entry):
            for plan, batches in entry.items():
                found += [(f"{plan}.{label}", date, turns) for label, date, turns in _batches(batches or [], folder)]
        else:
            raise WrongSchemaError("an entry of the chat is neither a batch nor a plan", path=folder)
    return found


def _instance(
    name: str,
    batches: list[_Batch],
    probes: Any,
    extra: dict[str, Any] | None,
    reading: Reading,
) -> Instance:
    sessions: list[Session] = []
    known: dict[str, str] = {}
    for label, batch_date, groups in batches:
        for number, group in enumerate(groups):
            session_id = f"{label}.{number + 1}"
            turns = tuple(_turn(m, f"{name}/{session_id}", reading) for m in group)
            if not turns:
                reading.note("empty-session", f"{name}/{session_id}", "kept without turns")
            date = next((m["time_anchor"] for m in group if isinstance(m, dict) and m.get("time_anchor")), batch_date)
            time = parse_date(date)
            if date and time is None:
                reading.note("unparseable-date", f"{name}/{session_id}: {date!r}", "text kept, time left empty")
            sessions.append(Session(session_id, date, time, turns))
            for turn in turns:
                if turn.turn_id in known:
                    reading.note("duplicate-turn-id", f"{name}/{turn.turn_id}", "both kept; evidence covers both")
                known[turn.turn_id] = session_id
    if not isinstance(probes, dict):
        raise WrongSchemaError(f"conversation {name}: probing questions are not grouped by ability", path=reading.path)
    questions = tuple(
        _question(q, ability, f"{name}/{ability}/{i}", known, reading)
        for ability, listed in probes.items()
        for i, q in enumerate(listed)
    )
    return Instance(name, tuple(sessions), questions, extra)


def _turn(message: Any, place: str, reading: Reading) -> Turn:
    if not isinstance(message, dict) or "id" not in message:
        raise WrongSchemaError(f"{place}: a message without an id", path=reading.path)
    content = message.get("content")
    if not isinstance(content, str):
        reading.note("turn-without-text", f"{place}/{message['id']}", "kept with empty text")
        content = ""
    role = message.get("role")
    # Upstream's generator leaves a `->-> batch,turn` marker behind most user messages: bookkeeping, not speech.
    return Turn(
        turn_id=str(message["id"]),
        speaker=str(role),
        role=role if role in (USER, ASSISTANT) else OTHER,
        text=_MARKER.sub("", content),
        extra=leftover(message, _MESSAGE),
    )


def _question(probe: Any, ability: str, place: str, known: Mapping[str, str], reading: Reading) -> Question:
    if not isinstance(probe, dict) or not isinstance(probe.get("question"), str):
        raise WrongSchemaError(f"{place}: a probing question without a question", path=reading.path)
    if ability not in ABILITIES:
        reading.note("unknown-question-type", f"{place}: {ability}", "kept")
    gold = next((key for key in _GOLD if probe.get(key) is not None), None)
    answer, answer_type = answer_text(probe[gold] if gold else None)
    if answer is None:
        reading.note("missing-answer", place, "kept; the rubric is what is scored")
    rubric = probe.get("rubric")
    if not isinstance(rubric, list) or not rubric:
        reading.note("missing-rubric", place, "kept; it cannot be scored")
    return Question(
        question_id=reading.unique_question_id(place),
        text=probe["question"],
        date=None,
        time=None,
        type_raw=ability,
        type=ability,
        is_abstention=ability == "abstention",
        answer=answer,
        answer_type=answer_type,
        rubric=tuple(map(str, rubric)) if isinstance(rubric, list) else (),
        evidence=_evidence(probe.get("source_chat_ids"), place, known, reading),
        extra=leftover(probe, frozenset({"question", "rubric", "source_chat_ids", gold or ""})),
    )


def _flat(published: Any) -> list[str]:
    """Ids out of the three published shapes: a list, a dictionary of lists, nothing."""
    if isinstance(published, dict):
        return [entry for part in published.values() for entry in _flat(part)]
    if isinstance(published, list):
        return [entry for part in published for entry in _flat(part)]
    if published is None:
        return []
    return [published if isinstance(published, str) else json.dumps(published)]


def _evidence(published: Any, place: str, known: Mapping[str, str], reading: Reading) -> Evidence:
    raw = tuple(dict.fromkeys(_flat(published)))
    turns = tuple(entry for entry in raw if entry in known)
    sessions = tuple(dict.fromkeys(known[turn] for turn in turns))
    if not raw:
        return Evidence()
    if len(turns) < len(raw):
        gone = [entry for entry in raw if entry not in known]
        reading.note("dangling-evidence", f"{place}: {', '.join(gone)}", "kept; recall is empty for it")
        return Evidence(raw, "dangling", turns, sessions)
    return Evidence(raw, "ok", turns, sessions)
