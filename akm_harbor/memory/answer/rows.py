"""Where every outcome lands: the rows of a finished, or stopped, study."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from akm_harbor.memory.answer import failures
from akm_harbor.memory.answer.book import Book
from akm_harbor.memory.answer.calls import Reply
from akm_harbor.memory.answer.grading import Graded, failure_class
from akm_harbor.memory.answer.judge_probe import Fabricated
from akm_harbor.memory.answer.retrieved import UnitRows
from akm_harbor.memory.answer.study import Place, StudyRun, reader_settings
from akm_harbor.memory.unit import OK

EMPTY, REFUSED, UNDECIDED, OTHER_MODEL = "empty-answer", "refused", "undecided", "other-model"
READER_FAILED, JUDGE_FAILED, NOT_RUN = "reader-failed", "judge-failed", "not-run"
FINISHED = frozenset({OK, EMPTY, REFUSED, UNDECIDED})
"""Nothing is missing from such a row; a study is complete when all its rows are such."""


def trial_rows(run: StudyRun) -> Iterator[dict[str, Any]]:
    """Rows of memory_trials without protocol_id and run_id, in the plan's order."""
    judged = run.grader.scorer.judged and run.study.judge is not None
    judge_repeats = range(run.study.judge.repeats) if judged and run.study.judge else range(1)
    for number, unit in enumerate(run.retrieved.units):
        for row in unit.trials:
            for budget in run.reading.budgets:
                for repeat in range(run.study.reader.repeats):
                    place = Place(number, row["question_id"], -1 if budget is None else budget, repeat)
                    read = {**row, **_context(unit, row, budget), "repeat": repeat, **_asked(run, budget)}
                    for judge_repeat in judge_repeats:
                        read["judge_repeat"] = judge_repeat if judged else None
                        yield {**read, **_outcome(run, row, place, judge_repeat)}


def _context(unit: UnitRows, row: Mapping[str, Any], budget: int | None) -> dict[str, Any]:
    empty = dict.fromkeys(("ctx_tokens", "ctx_sha256", "evidence_in_ctx", "budget_filled"))
    return {"budget": budget, **empty, **unit.measures.get((row["question_id"], budget), {})}


def _asked(run: StudyRun, budget: int | None) -> dict[str, Any]:
    """What every row of a study says of reader and scorer."""
    reader, judge, scorer = run.study.reader, run.study.judge, run.grader.scorer
    return {
        "budget": budget,
        "prompt_sha256": run.prompt.sha256,
        "reader_model_req": reader.model,
        "temperature": reader.temperature,
        "max_tokens": reader_settings(reader)["max_tokens"],
        "scorer_id": scorer.id,
        "scorer_sha": scorer.sha,
        "judge_model_req": judge.model if judge else None,
        "attempt": None,
    }


def _outcome(run: StudyRun, row: Mapping[str, Any], place: Place, judge_repeat: int) -> dict[str, Any]:
    if row["status"] != OK:
        return {}
    key = run.answers.get(place)
    if place in run.answers and key is None:
        too_long = f"the prompt does not fit into {run.window} tokens, so it was not sent"
        return _failure(READER_FAILED, failures.CONTEXT_TOO_LONG, too_long)
    reply = run.reply(place)
    if reply is None:
        return _failure(NOT_RUN, failures.STOPPED, "the run had been stopped before it came to this")
    read = _read(run, reply)
    if not reply.answered or not run.book.served_as_asked(reply):
        return read
    graded = run.graded.get((place, judge_repeat))
    if graded is None:
        return {**read, **_failure(JUDGE_FAILED, failures.STOPPED, "not judged: the run had been stopped")}
    return {**read, **judged_columns(run.book, graded, read)}


def _read(run: StudyRun, reply: Reply) -> dict[str, Any]:
    """The reader's columns, and the status as far as the reader decides it."""
    usd = run.book.price(reply)
    read: dict[str, Any] = {
        "reader_call": reply.key,
        "reader_model_served": reply.model_served,
        "finish_reason": reply.finish_reason,
        "in_tok": reply.in_tok,
        "out_tok": reply.out_tok,
        "reader_usd": usd,
        "usd": usd,
        "answer": reply.text,
        "attempt": reply.attempts,
        "started_at": datetime.fromisoformat(reply.started_at) if reply.started_at else None,
    }
    if not reply.answered:
        kind = reply.error_class or "unknown"
        status = NOT_RUN if kind in failures.NOT_SENT else READER_FAILED
        status = REFUSED if kind == failures.CONTENT_FILTER else status
        return {**read, **_failure(status, kind, reply.error)}
    if not run.book.served_as_asked(reply):
        served = f"{reply.model_req} was asked for, {reply.model_served or 'an unnamed model'} answered"
        return {**read, **_failure(OTHER_MODEL, failures.OTHER_MODEL, served)}
    if reply.finish_reason == "content_filter":
        return {**read, "status": REFUSED}
    return {**read, "status": OK if (reply.text or "").strip() else EMPTY}


def judged_columns(book: Book, graded: Graded, read: Mapping[str, Any]) -> dict[str, Any]:
    """The judge's columns, and the status as far as the judge decides it."""
    prices = [book.price(reply) for reply in graded.replies]
    judge_usd = None if None in prices else sum(p for p in prices if p is not None)
    counted = [(r.in_tok, r.out_tok) for r in graded.replies]
    known = all(a is not None and b is not None for a, b in counted)
    judged: dict[str, Any] = {}
    if graded.replies:
        judged = {
            "judge_calls": [reply.key for reply in graded.replies],
            "judge_model_served": _joined([reply.model_served or "" for reply in graded.replies]),
            "judge_raw": _raw([reply.text or "" for reply in graded.replies]),
            "judge_tokens": sum((a or 0) + (b or 0) for a, b in counted) if known else None,
            "judge_usd": judge_usd,
            "usd": None if judge_usd is None or read["usd"] is None else read["usd"] + judge_usd,
        }
    if graded.score is None:
        assert graded.failure is not None
        reason = failure_class(graded.failure)
        served = f"{graded.failure.model_served or 'an unnamed model'} answered for {graded.failure.model_req}"
        return {**judged, **_failure(JUDGE_FAILED, reason, graded.failure.error or served)}
    score = graded.score
    judged |= {
        "judge_prompt_id": score.prompt_id,
        "verdict": score.verdict,
        "score_official": score.official,
        "score_aux": score.aux,
    }
    if score.official is None:
        judged |= {"status": UNDECIDED, "error": score.note}
    return judged


def _failure(status: str, kind: str, message: str | None) -> dict[str, Any]:
    return {"status": status, "error_class": kind, "error": message}


def _joined(names: Sequence[str]) -> str:
    return ", ".join(sorted(set(names)))


def _raw(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else json.dumps(list(texts), ensure_ascii=False)


def replies_of(raw: str | None, calls: Sequence[str]) -> list[str]:
    """The judge's replies behind a row's `judge_raw`."""
    if not calls or raw is None:
        return []
    return [raw] if len(calls) == 1 else [str(text) for text in json.loads(raw)]


def call_rows(book: Book) -> Iterator[dict[str, Any]]:
    """Rows of memory_calls: every call that a row of this study rests on, by key."""
    for key in sorted(book.used):
        reply = book.used[key]
        if not reply.answered and reply.error_class in failures.NOT_SENT:
            continue
        row = {name: value for name, value in reply.to_json().items() if name not in ("started_at", "ended_at")}
        for name, text in (("started_at", reply.started_at), ("ended_at", reply.ended_at)):
            row[name] = datetime.fromisoformat(text) if text else None
        yield {**row, "usd": book.price(reply)}


def probe_rows(probed: Iterable[tuple[Fabricated, Graded | None]]) -> Iterator[dict[str, Any]]:
    """Rows of memory_judge_probe."""
    for made, graded in probed:
        score = graded.score if graded else None
        reply = graded.replies[0] if graded and graded.replies else None
        yield {
            "question_id": made.task.question_id,
            "qtype": made.task.qtype,
            "kind": made.kind,
            "answer": made.answer,
            "expected": made.expected,
            "verdict": score.verdict if score else None,
            "judge_raw": reply.text if reply else None,
            "call": reply.key if reply else None,
            "judge_prompt_id": score.prompt_id if score else None,
            "judge_model_served": reply.model_served if reply else None,
        }
