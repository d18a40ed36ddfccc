"""Derive a published result again, with no model: every score from its row, every mean from the scores."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from akm_harbor.errors import UsageError
from akm_harbor.memory.answer.calls import READER
from akm_harbor.memory.answer.judge_probe import rates
from akm_harbor.memory.answer.protocol_label import labelled
from akm_harbor.memory.answer.result import StudyResult
from akm_harbor.memory.answer.rows import EMPTY, FINISHED, REFUSED, UNDECIDED, replies_of
from akm_harbor.memory.answer.scoring import Score, Scorer, in_order, replay, verdict
from akm_harbor.memory.answer.spec import budget_name
from akm_harbor.memory.answer.study import task_of
from akm_harbor.memory.answer.table import score_rows
from akm_harbor.memory.context import TOLERANCE
from akm_harbor.memory.unit import OK

_EXACT = 1e-12
_KEY = ("arm", "budget", "question_id", "repeat", "judge_repeat")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that does not follow from the rows.

    Attributes:
        where: the row, the line of the table, or the key of the manifest.
        what: which value.
        stored: as published.
        derived: as it follows.
    """

    where: str
    what: str
    stored: object
    derived: object

    def __str__(self) -> str:
        return f"{self.where}: {self.what} is {_shown(self.stored)}, {_shown(self.derived)} follows"


def verify(result: StudyResult) -> list[Finding]:
    """Everything in a result that does not follow from its rows and calls; empty: verified."""
    rows = _records(result.trials)
    return [*_rows(result, rows), *_table(result), *_manifest(result, rows), *_probe(result)]


def row_name(row: Mapping[str, Any]) -> str:
    """How a row is called in a message."""
    budget = budget_name(None if row["budget"] is None else int(row["budget"]))
    judged = "" if row["judge_repeat"] is None else f", judgement {int(row['judge_repeat'])}"
    return f"{row['arm']}, {budget}, {row['question_id']}, repeat {int(row['repeat'])}{judged}"


def _records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dictionaries, whatever pandas makes of a null turned back into None."""
    return [{str(name): _plain(value) for name, value in row.items()} for row in frame.to_dict("records")]


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    return None if value is None or value is pd.NaT or (isinstance(value, float) and math.isnan(value)) else value


def _rows(result: StudyResult, rows: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    calls = {str(call["key"]): call for call in _records(result.calls)}
    seen: set[tuple[Any, ...]] = set()
    scorers: dict[str, Scorer] = {}
    for row in rows:
        name = row_name(row)
        key = tuple(row[column] for column in _KEY)
        if key in seen:
            yield Finding(name, "the row", "there twice", "one row")
        seen.add(key)
        scorer_id = str(row["scorer_id"])
        if scorer_id not in scorers:
            try:
                scorers[scorer_id] = replay(scorer_id)
            except UsageError:
                yield Finding(name, "scorer_id", scorer_id, "a scorer that is known")
                continue
        scorer = scorers[scorer_id]
        if row["scorer_sha"] != scorer.sha:
            yield Finding(name, "scorer_sha", row["scorer_sha"], scorer.sha)
        yield from _against_calls(row, name, calls)
        yield from _score(row, name, scorer)
        if row["budget"] is not None and row["ctx_tokens"] is not None:
            filled = row["budget"] * (1 - TOLERANCE) <= row["ctx_tokens"] <= row["budget"]
            if bool(row["budget_filled"]) != filled:
                yield Finding(name, "budget_filled", row["budget_filled"], filled)


def _against_calls(row: Mapping[str, Any], name: str, calls: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """A row repeats what its calls said."""
    reader = calls.get(str(row["reader_call"]))
    if row["answer"] is not None and reader is None:
        yield Finding(name, "reader_call", row["reader_call"], "a call in memory_calls")
    elif reader is not None and row["answer"] is not None:
        pairs = [("answer", "text"), ("reader_model_served", "model_served"), ("finish_reason", "finish_reason")]
        pairs += [("in_tok", "in_tok"), ("out_tok", "out_tok"), ("reader_usd", "usd")]
        for mine, theirs in pairs:
            if not _equal(row[mine], reader[theirs]):
                yield Finding(name, mine, row[mine], reader[theirs])
    keys = list(row["judge_calls"] or [])
    missing = [key for key in keys if key not in calls]
    if missing:
        yield Finding(name, "judge_calls", missing[0], "a call in memory_calls")
        return
    said = [str(calls[key]["text"]) for key in keys]
    try:
        stored = replies_of(row["judge_raw"], keys)
    except ValueError:
        stored = [str(row["judge_raw"])]
    if stored != said:
        yield Finding(name, "judge_raw", row["judge_raw"], said[0] if len(said) == 1 else json.dumps(said))


def _score(row: Mapping[str, Any], name: str, scorer: Scorer) -> Iterator[Finding]:
    derived = Score(None)
    status = row["status"]
    if status in FINISHED and row["answer"] is not None:
        try:
            replies = replies_of(row["judge_raw"], list(row["judge_calls"] or []))
            derived = scorer.score(task_of(dict(row)), str(row["answer"]), in_order(replies))
        except (LookupError, ValueError) as error:
            yield Finding(name, "score_official", row["score_official"], f"nothing ({error})")
            return
        wanted = _status(row, derived)
        if status != wanted:
            yield Finding(name, "status", status, wanted)
    for column, value in (
        ("score_official", derived.official),
        ("score_aux", derived.aux),
        ("verdict", derived.verdict),
    ):
        if not _equal(row[column], value):
            yield Finding(name, column, row[column], value)


def _status(row: Mapping[str, Any], score: Score) -> str:
    if score.official is None:
        return UNDECIDED
    if row["finish_reason"] == "content_filter":
        return REFUSED
    return OK if str(row["answer"]).strip() else EMPTY


def _table(result: StudyResult) -> Iterator[Finding]:
    stored = {_line(row): row for row in _records(result.scores)}
    derived = {_line(row): row for row in score_rows(result.trials)}
    for line in [*stored, *(line for line in derived if line not in stored)]:
        name = f"memory_scores: {line[0]}, {budget_name(line[1])}, {line[2]}"
        if line not in derived or line not in stored:
            there = "there" if line in stored else "missing"
            yield Finding(name, "the line", there, "missing" if there == "there" else "there")
            continue
        for column, value in derived[line].items():
            if not _equal(stored[line][column], value):
                yield Finding(name, column, stored[line][column], value)
        if stored[line]["n"] > stored[line]["asked"]:
            yield Finding(name, "n", stored[line]["n"], f"at most {stored[line]['asked']}")


def _line(row: Mapping[str, Any]) -> tuple[str, int | None, str]:
    return str(row["arm"]), None if row["budget"] is None else int(row["budget"]), str(row["group"])


def _manifest(result: StudyResult, rows: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    manifest = result.manifest
    statuses: dict[str, int] = {}
    for row in rows:
        statuses[row["status"]] = statuses.get(row["status"], 0) + 1
    if manifest["statuses"] != dict(sorted(statuses.items())):
        yield Finding("manifest", "statuses", manifest["statuses"], dict(sorted(statuses.items())))
    if manifest["complete"] and not set(statuses) <= FINISHED:
        yield Finding("manifest", "complete", stored=True, derived=False)
    yield from _protocols(manifest, rows)
    usd = {"reader_usd": 0.0, "judge_usd": 0.0}
    for call in _records(result.calls):
        usd["reader_usd" if call["role"] == READER else "judge_usd"] += call["usd"] or 0.0
    for name, value in usd.items():
        if abs(manifest["spent"][name] - value) > 1e-9:
            yield Finding("manifest: spent", name, manifest["spent"][name], value)
    yield from _all_there(manifest, rows)


def _protocols(manifest: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    for budget, protocol in manifest["protocols"].items():
        derived = labelled(protocol)["id"]
        if protocol["id"] != derived:
            yield Finding(f"manifest: protocol {budget}", "id", protocol["id"], derived)
    for row in rows:
        wanted = manifest["protocols"].get(budget_name(None if row["budget"] is None else int(row["budget"])), {})
        if row["protocol_id"] != wanted.get("id"):
            yield Finding(row_name(row), "protocol_id", row["protocol_id"], wanted.get("id"))
    whole = {"reader_served": "reader_model_served", "judge_served": "judge_model_served"}
    for field, column in {**whole, "judge_prompt_ids": "judge_prompt_id"}.items():
        found = sorted({str(row[column]) for row in rows if row[column]})
        for budget, protocol in manifest["protocols"].items():
            if protocol[field] != found:
                yield Finding(f"manifest: protocol {budget}", field, protocol[field], found)


def _all_there(manifest: Mapping[str, Any], rows: Sequence[dict[str, Any]]) -> Iterator[Finding]:
    """No row was taken away: every arm and budget has every question, as often as was asked."""
    repeats = manifest["repeats"]
    per_question = repeats["reader"] * (repeats["judge"] or 1)
    parts: dict[tuple[str, str], int] = {}
    for row in rows:
        part = (row["arm"], budget_name(None if row["budget"] is None else int(row["budget"])))
        parts[part] = parts.get(part, 0) + 1
    for arm in manifest["arms"]:
        for budget in manifest["protocols"]:
            wanted = manifest["questions"] * per_question
            if parts.get((arm, budget), 0) != wanted:
                yield Finding(f"memory_trials: {arm}, {budget}", "rows", parts.get((arm, budget), 0), wanted)


def _probe(result: StudyResult) -> Iterator[Finding]:
    rows = _records(result.probe)
    said = {str(call["key"]): call["text"] for call in _records(result.calls)}
    for row in rows:
        name = f"memory_judge_probe: {row['question_id']}, {row['kind']}"
        if row["call"] is not None and row["call"] not in said:
            yield Finding(name, "call", row["call"], "a call in memory_calls")
        elif row["call"] is not None and row["judge_raw"] != said[row["call"]]:
            yield Finding(name, "judge_raw", row["judge_raw"], said[row["call"]])
        if row["judge_raw"] is not None and row["verdict"] != verdict(row["judge_raw"]):
            yield Finding(name, "verdict", row["verdict"], verdict(row["judge_raw"]))
    derived = rates(rows) if rows else None
    stored = result.manifest.get("judge_probe")
    if json.dumps(stored, sort_keys=True) != json.dumps(derived, sort_keys=True):
        yield Finding("manifest", "judge_probe", stored, derived)


def _equal(stored: Any, derived: Any) -> bool:
    stored, derived = _plain(stored), _plain(derived)
    if isinstance(stored, float | int) and isinstance(derived, float | int):
        return math.isclose(stored, derived, rel_tol=_EXACT, abs_tol=_EXACT)
    return bool(stored == derived)


def _shown(value: object) -> str:
    text = "empty" if value is None else repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 120 else text[:117] + "..."
