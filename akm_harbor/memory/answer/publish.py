"""Write a study's result: rows, calls, the published table, and a manifest with the whole protocol."""

import dataclasses
import math
import platform
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

import akm_harbor
from akm_harbor.memory.answer.book import Book
from akm_harbor.memory.answer.calls import READER
from akm_harbor.memory.answer.judge_probe import rates
from akm_harbor.memory.answer.protocol_label import StudyProtocol, retrieval_fields
from akm_harbor.memory.answer.result import KIND
from akm_harbor.memory.answer.rows import FINISHED, call_rows, probe_rows, trial_rows
from akm_harbor.memory.answer.spec import Study, budget_name
from akm_harbor.memory.answer.study import StudyRun, reader_settings
from akm_harbor.memory.answer.table import score_table
from akm_harbor.memory.columns import CALLS, JUDGE_PROBE, RETRIEVAL, SCORES, TRIALS
from akm_harbor.tables import PROBLEMS, Problems, redact_value, replace_dataset


@dataclass(frozen=True, slots=True)
class StudyReport:
    """What a study did.

    Attributes:
        path: the dataset written.
        complete: every row has its score, or a verdict that decides nothing.
        rows: rows of memory_trials.
        statuses: rows by status.
        problems: what did not fit.
        manifest: as written.
        scores: the published table.
    """

    path: Path
    complete: bool
    rows: int
    statuses: dict[str, int]
    problems: Problems
    manifest: dict[str, Any]
    scores: pa.Table


def publish(run: StudyRun) -> StudyReport:
    """Write the dataset of a study that was executed, complete or not.

    Raises:
        AkmHarborError: it cannot be written; every answer is in the journal.
    """
    run_id = secrets.token_hex(6)
    rows = list(trial_rows(run))
    protocols = {budget_name(b): _protocol(run, b, rows).as_dict() for b in run.reading.budgets}
    for row in rows:
        row["run_id"] = run_id
        row["protocol_id"] = protocols[budget_name(row["budget"])]["id"]
    trials = TRIALS.from_rows(rows)
    scores = score_table(trials.to_pandas())
    probed = list(probe_rows(run.probed))
    statuses = Counter(row["status"] for row in rows)
    complete = set(statuses) <= FINISHED and run.shut is None
    problems = _problems(run, rows, statuses)
    manifest = _manifest(run, run_id, rows, protocols, probed) | {
        "complete": complete,
        "statuses": dict(sorted(statuses.items())),
        "problems": len(problems),
    }
    with replace_dataset(run.out) as writer:
        writer.write(TRIALS, trials)
        retrieval = pa.concat_tables([unit.retrieval for unit in run.retrieved.units])
        place = retrieval.schema.get_field_index("run_id")
        writer.write(RETRIEVAL, retrieval.set_column(place, "run_id", pa.array([run_id] * len(retrieval), pa.string())))
        writer.write(CALLS, CALLS.from_rows(call_rows(run.book)))
        writer.write(SCORES, scores)
        writer.write(JUDGE_PROBE, JUDGE_PROBE.from_rows(probed))
        writer.write(PROBLEMS, problems.table())
        writer.write_manifest(manifest)
    if complete:
        run.checkpoint.clear()
    return StudyReport(run.out, complete, len(rows), dict(statuses), problems, manifest, scores)


def _protocol(run: StudyRun, budget: int | None, rows: Sequence[dict[str, Any]]) -> StudyProtocol:
    study, scorer = run.study, run.grader.scorer
    return StudyProtocol(
        **retrieval_fields(run.plan.protocols[study.granularity]),
        depth=None if budget is None else study.depth,
        order=study.order,
        budget=budget,
        category_5=study.category_5,
        seed=study.seed,
        reader_model=study.reader.model,
        reader_served=named(rows, "reader_model_served"),
        reader_prompt_sha256=run.prompt.sha256,
        reader_settings=reader_settings(study.reader),
        scorer=scorer.id,
        scorer_sha=scorer.sha,
        judge_model=study.judge.model if study.judge else None,
        judge_served=named(rows, "judge_model_served"),
        judge_prompt_ids=named(rows, "judge_prompt_id"),
        judge_settings=run.grader.settings,
    )


def named(rows: Sequence[dict[str, Any]], column: str) -> tuple[str, ...]:
    """The distinct values of a column, sorted."""
    return tuple(sorted({str(row[column]) for row in rows if row.get(column)}))


def _manifest(
    run: StudyRun,
    run_id: str,
    rows: Sequence[dict[str, Any]],
    protocols: dict[str, Any],
    probed: Sequence[dict[str, Any]],
) -> dict[str, Any]:
    scorer, book = run.grader.scorer, run.book
    return {
        "kind": KIND,
        "run_id": run_id,
        "name": run.study.name,
        "package": akm_harbor.__version__,
        "python": platform.python_version(),
        "stopped": list(book.stopped_by) if book.stopped_by else None,
        "dataset": run.plan.dataset,
        "arms": {arm.label: dataclasses.asdict(described) for arm, described in run.plan.described.items()},
        "study": declared(run.study),
        "protocols": protocols,
        "scorer": {
            "id": scorer.id,
            "sha": scorer.sha,
            "aux": scorer.aux,
            "judge_prompt_ids": list(named(rows, "judge_prompt_id")),
        },
        "prompt": {"name": run.prompt.name, "sha256": run.prompt.sha256},
        "gates": [dataclasses.asdict(gate) for gate in run.gates],
        "waived": [gate.name for gate in run.gates if gate.waived],
        "calls": book.counts(),
        **money_and_models(book, run.study.spending.max_usd),
        "judge_probe": rates(probed) if probed else None,
        "questions": len({row["question_id"] for row in rows}),
        "seeds": {"names_order_sample": run.study.seed, "reader": run.study.reader.seed},
        "repeats": {"reader": run.study.reader.repeats, "judge": run.study.judge.repeats if run.study.judge else None},
    }


def money_and_models(book: Book, cap_usd: float | None) -> dict[str, Any]:
    """What was spent and who answered, over the calls a result rests on."""
    used = [reply for reply in book.used.values() if reply.answered]
    parts = {"reader": [r for r in used if r.role == READER], "judge": [r for r in used if r.role != READER]}
    prices = {role: [book.price(reply) for reply in replies] for role, replies in parts.items()}
    return {
        "spent": {
            "usd": book.spent(),
            "reader_usd": math.fsum(p for p in prices["reader"] if p is not None),
            "judge_usd": math.fsum(p for p in prices["judge"] if p is not None),
            "cap_usd": cap_usd,
            "unpriced_calls": sum(p is None for found in prices.values() for p in found),
        },
        "served": {role: dict(Counter(r.model_served for r in replies)) for role, replies in parts.items()},
    }


def declared(study: Study) -> dict[str, Any]:
    """A study's settings without the places of one machine and without secrets."""
    shown: dict[str, Any] = msgspec.to_builtins(study)
    shown["data"] = Path(study.data).name
    shown["reader"]["prompt"] = Path(study.reader.prompt).name
    shown["scorer"]["upstream"] = Path(study.scorer.upstream).name
    shown["gates"]["ceiling_result"] = Path(study.gates.ceiling_result).name
    redacted: dict[str, Any] = redact_value(shown)
    return redacted


def _problems(run: StudyRun, rows: Sequence[dict[str, Any]], statuses: Counter[str]) -> Problems:
    problems = Problems()
    name = run.store.path.name
    for kind, detail, action in run.retrieved.problems:
        problems.add(name, kind, detail, action)
    for gate in run.gates:
        if not gate.passed:
            action = "waived by name, recorded in the manifest" if gate.waived else "the study stopped here"
            problems.add(name, gate.name, gate.detail, action)
    for status in sorted(set(statuses) - {"ok"}):
        classes = Counter(str(r["error_class"]) for r in rows if r["status"] == status and r.get("error_class"))
        detail = f"{statuses[status]} rows" + "".join(f"; {kind} {n}" for kind, n in sorted(classes.items()))
        problems.add(run.out.name, status, detail, "kept in memory_trials with this status")
    if run.book.stopped_by is not None:
        problems.add(run.out.name, *run.book.stopped_by, "no further call was made; what was answered is kept")
    if run.book.recorded.torn:
        detail = f"{run.book.recorded.torn} bytes of a last line that was cut off"
        problems.add(run.book.journal.name, "torn-line", detail, "left out; the call it belongs to was made again")
    if run.book.recorded.uncertain:
        detail = f"{run.book.recorded.uncertain} requests were in flight when the process that made them ended"
        problems.add(
            run.book.journal.name, "uncertain-call", detail, "made again where needed, counted at their most in the cap"
        )
    unfilled: Counter[tuple[str, int]] = Counter()
    for row in rows:
        if row["budget_filled"] is False and row["repeat"] == 0 and not row["judge_repeat"]:
            unfilled[row["arm"], row["budget"]] += 1
    for (arm, budget), n in unfilled.items():
        detail = f"{arm}: {n} contexts hold less than {budget} tokens"
        problems.add(run.out.name, "budget-not-filled", detail, "kept and marked budget_filled = false")
    saturated = Counter(row["arm"] for row in rows if row["k_ge_corpus"] and row["repeat"] == 0)
    if saturated:
        detail = f"{max(saturated.values())} rows an arm: topk {run.study.topk} reaches every document"
        problems.add(name, "k-not-below-corpus", detail, "kept and marked k_ge_corpus; recall there says nothing")
    return problems
