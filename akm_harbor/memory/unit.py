"""The unit of work of a probe: one history, one arm, one granularity, one repeat.

A unit is self-contained and pure but for the clock, so it can run in this process, in another,
on another machine, or twice.
"""

import dataclasses
import hashlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from akm_harbor.memory import context as contexts
from akm_harbor.memory.backends.registry import Arm, make_backend
from akm_harbor.memory.columns import RETRIEVAL, TRIALS
from akm_harbor.memory.context import CONTEXTS, Context, Reading
from akm_harbor.memory.datasets.model import Instance, Question
from akm_harbor.memory.documents import Gold, History, Piece, name_documents
from akm_harbor.memory.label import RetrievalProtocol
from akm_harbor.memory.measures import AtK, Judged, evidence_in_context
from akm_harbor.memory.protocol import Backend, BackendError, Description, Hit, Ingested, Query
from akm_harbor.memory.text import transform

OK, SEARCH_FAILED, INGEST_FAILED = "ok", "search-failed", "ingest-failed"


@dataclass(frozen=True, slots=True)
class Source:
    """Where the questions come from, as every row names it."""

    benchmark: str
    variant: str
    sha256: str
    revision: str | None


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of work.

    Attributes:
        instance: the history with the questions to ask.
        source: the dataset.
        arm: the backend and its settings.
        description: what the backend said of itself before the run.
        protocol: what makes the numbers comparable.
        seed: seed of the names and of the document order.
        repeat: which repeat.
        reading: the contexts to hand on, for a study that reads them; None: a probe, which keeps none.
    """

    instance: Instance
    source: Source
    arm: Arm
    description: Description
    protocol: RetrievalProtocol
    seed: int
    repeat: int
    reading: Reading | None = None

    @property
    def depth(self) -> int:
        """How many documents are asked for; one more than are used shows whether the cut is a tie."""
        filled = self.reading is not None and any(budget is not None for budget in self.reading.budgets)
        return max(*self.protocol.ks, self.protocol.topk, self.reading.depth if self.reading and filled else 0) + 1

    def key(self) -> str:
        """Digest of everything its result depends on."""
        parts = [
            self.source.sha256,
            self.instance.instance_id,
            [question.question_id for question in self.instance.questions],
            self.arm.label,
            dataclasses.asdict(self.description),
            self.protocol.id,
            self.seed,
            self.repeat,
            None if self.reading is None else dataclasses.asdict(self.reading),
        ]
        return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class UnitResult:
    """What a unit yields.

    Attributes:
        trials: rows of `memory_trials`, one a question.
        retrieval: rows of `memory_retrieval`.
        problems: (kind, detail, action) of what did not fit.
        contexts: what a reader is given, one row a question and budget; empty in a probe.
    """

    trials: pa.Table
    retrieval: pa.Table
    problems: tuple[tuple[str, str, str], ...] = ()
    contexts: pa.Table = field(default_factory=CONTEXTS.empty_table)


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question's outcome before it becomes a row."""

    question: Question
    gold: Gold
    started: datetime
    ms: float
    hits: Sequence[Hit]
    error: BackendError | None = None


def run_unit(unit: Unit) -> UnitResult:
    """Store one history and ask all its questions; failures become rows, never exceptions."""
    history = History(unit.instance, unit.source.benchmark, unit.protocol.granularity, unit.protocol.corpus)
    documents = name_documents(history, unit.seed)
    names = {key: document.name for key, document in documents.items()}
    problems: list[tuple[str, str, str]] = []
    place = f"{unit.instance.instance_id} ({unit.arm.label}, {unit.protocol.granularity})"
    if history.empty_pieces:
        problems.append(("empty-document", f"{place}: {history.empty_pieces}", "not stored: nothing to store"))
    with tempfile.TemporaryDirectory(prefix="akm-harbor-memory-") as work:
        try:
            backend = make_backend(unit.arm, Path(work))
            backend.reset()
            began = time.perf_counter()
            ingested = backend.ingest(list(documents.values()))
        except BackendError as error:
            problems.append((error.kind, f"{place}: {error.message}", "its questions have status ingest-failed"))
            return _failed(unit, history, error, problems)
        ingest_ms = (time.perf_counter() - began) * 1000
        asked = [_ask(backend, unit, history, question, names) for question in unit.instance.questions]
    for one in asked:
        if one.error is not None:
            detail = f"{place}: {one.question.question_id}: {one.error.message}"
            problems.append((one.error.kind, detail, "the question has status search-failed"))
    by_name = {documents[piece.key].name: piece for piece in history.pieces}
    rows = [_row(unit, history, one, by_name, ranks=backend.ranks) for one in asked]
    common = {**_common(unit), **_stored(unit, history, ingested, ingest_ms)}
    trials = TRIALS.from_rows([{**common, **row} for row, _ in rows])
    read = [row for one in asked if one.error is None for row in _read(unit, one, by_name, ranks=backend.ranks)]
    handed_on = pa.Table.from_pylist(read, schema=CONTEXTS)
    return UnitResult(trials, _retrieval(unit, rows), tuple(problems), handed_on)


def _read(unit: Unit, asked: _Asked, by_name: Mapping[str, Piece], *, ranks: bool) -> list[dict[str, Any]]:
    """The contexts of one question, one a budget."""
    if unit.reading is None:
        return []
    found = contexts.passages([by_name[hit.name] for hit in asked.hits], asked.hits)
    rows = []
    for budget in unit.reading.budgets:
        made: Context
        if budget is None:
            made = contexts.whole(found[: unit.protocol.topk] if ranks else found, order=unit.reading.order)
        else:
            made = contexts.filled(found, budget, unit.reading.order, ranked=ranks)
        row = {
            "question_id": asked.question.question_id,
            "budget": budget,
            "context": made.text,
            "ctx_tokens": made.tokens,
            "ctx_sha256": made.sha256,
            "evidence_in_ctx": evidence_in_context(asked.gold.texts, made.text),
            "budget_filled": made.filled,
        }
        rows.append(row)
    return rows


def _ask(backend: Backend, unit: Unit, history: History, question: Question, names: Mapping[str, str]) -> _Asked:
    gold = history.gold(question)
    told: tuple[str, ...] = ()
    if backend.uses_gold:
        told = tuple(names[piece.key] for piece in history.pieces if set(history.covers(piece)) & gold.units)
    query = Query(transform(question.text, unit.arm.query), told)
    started, began = datetime.now(UTC), time.perf_counter()
    try:
        hits = backend.search(query, unit.depth)
    except BackendError as error:
        return _Asked(question, gold, started, (time.perf_counter() - began) * 1000, (), error)
    return _Asked(question, gold, started, (time.perf_counter() - began) * 1000, hits)


def _row(
    unit: Unit, history: History, asked: _Asked, by_name: Mapping[str, Piece], *, ranks: bool
) -> tuple[dict[str, Any], list[AtK]]:
    """The trial row of a question, and its metrics at every k."""
    row = _question(asked.question, asked.gold, asked.started)
    if asked.error is not None:
        failed = {"status": SEARCH_FAILED, "error_class": asked.error.kind, "error": asked.error.message}
        return {**row, **failed}, []
    protocol, hits = unit.protocol, asked.hits
    limit = unit.depth - 1 if ranks else len(hits)
    ranked = [by_name[hit.name] for hit in hits]
    context = contexts.whole(contexts.passages(ranked[: protocol.topk] if ranks else ranked, hits), protocol.budget)
    row |= {
        "status": OK,
        "search_ms": asked.ms,
        "n_hits": min(len(hits), limit),
        "zero_hit": not hits or (ranks and all(hit.score <= 0 for hit in hits)),
        "tied_topk": ranks and len(hits) > protocol.topk and hits[protocol.topk - 1].score == hits[protocol.topk].score,
        "retrieved_ids": [piece.key for piece in ranked[:limit]],
        "retrieved_scores": [hit.score for hit in hits[:limit]],
        "ctx_tokens": context.tokens,
        "ctx_sha256": context.sha256,
        "evidence_in_ctx": evidence_in_context(asked.gold.texts, context.text),
    }
    if not ranks:
        return row, []
    judged = Judged(history, asked.question, asked.gold, ranked)
    main = judged.at(protocol.topk)
    row |= {
        "recall_any": main.recall_any,
        "recall_all": main.recall_all,
        "recall_frac": main.recall_frac,
        "recall_frac_audited": main.recall_frac_audited,
        "ndcg_lme": main.ndcg_lme,
        "ndcg_std": main.ndcg_std,
        "mrr": judged.reciprocal_rank,
    }
    return row, [judged.at(k) for k in protocol.ks]


def _common(unit: Unit) -> dict[str, Any]:
    description, protocol = unit.description, unit.protocol
    return {
        "benchmark": unit.source.benchmark,
        "variant": unit.source.variant,
        "dataset_sha256": unit.source.sha256,
        "dataset_rev": unit.source.revision,
        "instance_id": unit.instance.instance_id,
        "arm": unit.arm.label,
        "backend": description.name,
        "backend_version": description.version,
        "backend_build_sha": description.build_sha,
        "backend_json": json.dumps(dict(description.settings), sort_keys=True, default=str),
        "protocol_id": protocol.id,
        "seed": unit.seed,
        "repeat": unit.repeat,
        "topk": protocol.topk,
        "granularity": protocol.granularity,
        "corpus": protocol.corpus,
        "query_transform": unit.arm.query,
        "tokenizer": protocol.tokenizer,
        "attempt": 1,
    }


def _stored(unit: Unit, history: History, ingested: Ingested, ingest_ms: float) -> dict[str, Any]:
    return {
        "ingest_docs": ingested.docs,
        "ingest_ms": ingest_ms,
        "ingest_llm_tokens": ingested.llm_tokens,
        "index_bytes": ingested.index_bytes,
        "k_ge_corpus": unit.protocol.topk >= len(history.pieces),
    }


def _question(question: Question, gold: Gold, started: datetime) -> dict[str, Any]:
    return {
        "question_id": question.question_id,
        "qtype_raw": question.type_raw,
        "qtype": question.type,
        "is_abstention": question.is_abstention,
        "gold_ids": sorted(gold.units),
        "gold_status": gold.status,
        "audit_flag": question.audit_flag,
        "question": question.text,
        "question_date": question.date,
        "gold_answer": question.answer,
        "rubric": list(question.rubric),
        "started_at": started,
    }


def _failed(unit: Unit, history: History, error: BackendError, problems: list[tuple[str, str, str]]) -> UnitResult:
    now = datetime.now(UTC)
    failure = {"status": INGEST_FAILED, "error_class": error.kind, "error": error.message}
    rows = [{**_common(unit), **_question(q, history.gold(q), now), **failure} for q in unit.instance.questions]
    return UnitResult(TRIALS.from_rows(rows), RETRIEVAL.from_rows([]), tuple(problems))


def _retrieval(unit: Unit, rows: Sequence[tuple[Mapping[str, Any], Sequence[AtK]]]) -> pa.Table:
    key = {"arm": unit.arm.label, "granularity": unit.protocol.granularity, "repeat": unit.repeat}
    names = [name for name in RETRIEVAL.names if name in AtK.__dataclass_fields__]
    return RETRIEVAL.from_rows(
        {**key, "question_id": row["question_id"], **{name: getattr(at, name) for name in names}}
        for row, ats in rows
        for at in ats
    )
