"""Judge stored answers again, with another judge or scorer: the reader is not asked."""

import os
import secrets
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from akm_harbor.errors import UsageError
from akm_harbor.memory.answer.book import Book, Progress, check_keys
from akm_harbor.memory.answer.calls import PROBE
from akm_harbor.memory.answer.grading import Graded, Grader, ToGrade
from akm_harbor.memory.answer.judge_probe import Fabricated, fabricate, rates
from akm_harbor.memory.answer.keeper import Terms
from akm_harbor.memory.answer.price import Line, endpoint_of
from akm_harbor.memory.answer.protocol_label import labelled
from akm_harbor.memory.answer.publish import StudyReport, money_and_models, named
from akm_harbor.memory.answer.result import StudyResult
from akm_harbor.memory.answer.rows import (
    EMPTY,
    FINISHED,
    JUDGE_FAILED,
    REFUSED,
    call_rows,
    judged_columns,
    probe_rows,
)
from akm_harbor.memory.answer.scoring import calls_of, make_scorer
from akm_harbor.memory.answer.spec import Study, budget_name
from akm_harbor.memory.answer.study import task_of
from akm_harbor.memory.answer.table import score_table
from akm_harbor.memory.columns import CALLS, JUDGE_PROBE, RETRIEVAL, SCORES, TRIALS
from akm_harbor.memory.context import count
from akm_harbor.memory.unit import OK
from akm_harbor.tables import PROBLEMS, Problems, read_table, replace_dataset

_JUDGED = (
    "judge_usd",
    "judge_calls",
    "judge_prompt_id",
    "judge_model_served",
    "judge_raw",
    "judge_tokens",
    "verdict",
    "score_official",
    "score_aux",
)


class Rejudging:
    """One re-judging of a result, step by step."""

    def __init__(self, result: StudyResult, study: Study, out: Path) -> None:
        """Check everything that can be checked for nothing.

        Args:
            result: whose answers.
            study: its scorer, judge, spending and concurrency count; the rest is the result's own.
            out: the dataset to write.

        Raises:
            UsageError: a scorer that does not fit.
            AkmHarborError: the price is not known.
        """
        self.result, self.study, self.out = result, study, out
        scorer = make_scorer(study.scorer.name, study.scorer.upstream)
        benchmark = result.manifest["dataset"]["benchmark"]
        if scorer.benchmarks and benchmark not in scorer.benchmarks:
            raise UsageError(f"{study.scorer.name} does not score {benchmark}")
        if out.resolve() == result.path.resolve():
            raise UsageError("a result is not judged over itself", hint="Choose another --output.")
        endpoint = endpoint_of(study.judge or study.reader, need_price=scorer.judged)
        self.terms = Terms(endpoint, endpoint, study.spending.max_usd, study.spending.max_calls, study.concurrency)
        self.book = Book(out.with_name(f"{out.name}.calls.jsonl"), self.terms)
        self.grader = Grader(scorer, study.judge, self.book)
        table = read_table(result.path, TRIALS)
        self.rows = [row for row in table.to_pylist() if not row["judge_repeat"]]
        self.repeats = range(study.judge.repeats if scorer.judged and study.judge else 1)

    def _todo(self) -> Iterator[ToGrade]:
        for number, row in enumerate(self.rows):
            if _answered(row):
                for repeat in self.repeats:
                    yield ToGrade((number, repeat), task_of(row), row["answer"], repeat)

    def _made_up(self) -> list[Fabricated]:
        judge, scorer = self.study.judge, self.grader.scorer
        if judge is None or not scorer.judged or scorer.aux == "nugget_mean":
            return []
        tasks = {row["question_id"]: task_of(row) for row in self.rows}
        seed = int(self.result.manifest["seeds"]["names_order_sample"])
        return fabricate([tasks[name] for name in sorted(tasks)], judge.probe, seed)

    def estimate(self) -> Line:
        """Judge calls that are not answered yet, and their price; nothing is called."""
        line = Line("judge")
        most = int(self.grader.settings.get("max_tokens", 0))
        for one in [*self._todo(), *_to_grade(self._made_up())]:
            calls = calls_of(self.grader.scorer, one.task)
            if isinstance(self.grader.grade(one), Graded):
                line.known += calls
                continue
            size = count(one.task.question) + count(one.task.gold or "") + count(one.answer) + 200
            for _ in range(calls):
                line.add(self.terms.reader, size, most)
        self.book.used.clear()
        return line

    def execute(self, progress: Progress | None = None) -> StudyReport:
        """Judge, and write the new result.

        Raises:
            AkmHarborError: the key is missing, or the result cannot be written.
        """
        if self.grader.scorer.judged:
            check_keys(self.terms, dict(os.environ))
        todo = list(self._todo())
        graded = self.grader.grade_all(todo, progress)
        made = self._made_up()
        probed = self.grader.grade_all(_to_grade(made))
        self.book.close()
        rows = list(self._rows(graded))
        return self._publish(rows, list(probe_rows((one, probed.get(i)) for i, one in enumerate(made))))

    def _rows(self, graded: dict[Any, Graded]) -> Iterator[dict[str, Any]]:
        scorer, judge = self.grader.scorer, self.study.judge
        for number, row in enumerate(self.rows):
            bare = {
                **row,
                **dict.fromkeys(_JUDGED),
                "usd": row["reader_usd"],
                "scorer_id": scorer.id,
                "scorer_sha": scorer.sha,
                "judge_model_req": judge.model if scorer.judged and judge else None,
            }
            if _answered(row):
                bare |= {"status": _read_status(row), "error": None, "error_class": None}
            for repeat in self.repeats:
                one = {**bare, "judge_repeat": repeat if scorer.judged else None}
                found = graded.get((number, repeat))
                yield one if found is None else {**one, **judged_columns(self.book, found, one)}

    def _publish(self, rows: list[dict[str, Any]], probed: list[dict[str, Any]]) -> StudyReport:
        old, scorer = self.result.manifest, self.grader.scorer
        run_id = secrets.token_hex(6)
        changed = {
            "scorer": scorer.id,
            "scorer_sha": scorer.sha,
            "judge_model": self.study.judge.model if scorer.judged and self.study.judge else None,
            "judge_served": list(named(rows, "judge_model_served")),
            "judge_prompt_ids": list(named(rows, "judge_prompt_id")),
            "judge_settings": self.grader.settings,
        }
        protocols = {name: labelled({**protocol, **changed}) for name, protocol in old["protocols"].items()}
        for row in rows:
            row |= {"run_id": run_id, "protocol_id": protocols[budget_name(row["budget"])]["id"]}
        trials = TRIALS.from_rows(rows)
        scores = score_table(trials.to_pandas())
        statuses = Counter(row["status"] for row in rows)
        calls = [*self._old_calls(), *call_rows(self.book)]
        money = money_and_models(self.book, self.study.spending.max_usd)
        money["spent"]["reader_usd"] = old["spent"]["reader_usd"]
        money["served"]["reader"] = old["served"]["reader"]
        problems = Problems()
        for status in sorted(set(statuses) - {OK}):
            problems.add(self.out.name, status, f"{statuses[status]} rows", "kept in memory_trials with this status")
        complete = set(statuses) <= FINISHED
        manifest = {
            **old,
            **money,
            "run_id": run_id,
            "rejudged_from": old["run_id"],
            "stopped": list(self.book.stopped_by) if self.book.stopped_by else None,
            "protocols": protocols,
            "scorer": {
                "id": scorer.id,
                "sha": scorer.sha,
                "aux": scorer.aux,
                "judge_prompt_ids": changed["judge_prompt_ids"],
            },
            "calls": self.book.counts(),
            "judge_probe": rates(probed) if probed else None,
            "repeats": {**old["repeats"], "judge": len(self.repeats) if scorer.judged else None},
            "complete": complete,
            "statuses": dict(sorted(statuses.items())),
            "problems": len(problems),
        }
        with replace_dataset(self.out) as writer:
            writer.write(TRIALS, trials)
            writer.write(RETRIEVAL, read_table(self.result.path, RETRIEVAL))
            writer.write(CALLS, CALLS.from_rows(calls))
            writer.write(SCORES, scores)
            writer.write(JUDGE_PROBE, JUDGE_PROBE.from_rows(probed))
            writer.write(PROBLEMS, problems.table())
            writer.write_manifest(manifest)
        return StudyReport(self.out, complete, len(rows), dict(statuses), problems, manifest, scores)

    def _old_calls(self) -> list[dict[str, Any]]:
        """The reader's calls, which the answers still rest on."""
        found: list[dict[str, Any]] = read_table(self.result.path, CALLS).to_pylist()
        return [call for call in found if call["role"] == "reader"]


def _to_grade(made: list[Fabricated]) -> list[ToGrade]:
    return [ToGrade(i, one.task, one.answer, 0, PROBE) for i, one in enumerate(made)]


def _answered(row: dict[str, Any]) -> bool:
    """The reader asked for has answered, whatever became of the answer then."""
    return row["answer"] is not None and row["status"] in {*FINISHED, JUDGE_FAILED}


def _read_status(row: dict[str, Any]) -> str:
    if row["finish_reason"] == "content_filter":
        return REFUSED
    return OK if row["answer"].strip() else EMPTY
