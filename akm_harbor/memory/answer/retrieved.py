"""What the arms found, kept on disk: the rows in memory, the contexts one unit at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akm_harbor.memory.answer.book import Progress
from akm_harbor.memory.checkpoint import Checkpoint
from akm_harbor.memory.plan import Plan
from akm_harbor.memory.unit import UnitResult


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader is given for one question under one budget.

    Attributes:
        text: the context.
        measures: its columns in memory_trials.
    """

    text: str
    measures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class UnitRows:
    """What is kept of a finished unit.

    Attributes:
        key: its name in the checkpoint.
        backend: the arm's backend.
        trials: its rows of memory_trials.
        retrieval: its rows of memory_retrieval.
        measures: (question, budget) -> columns of the context.
    """

    key: str
    backend: str
    trials: list[dict[str, Any]]
    retrieval: pa.Table
    measures: dict[tuple[str, int | None], dict[str, Any]]


class Retrieved:
    """The retrieval half of a study, finished.

    Attributes:
        units: in the plan's order.
        problems: (kind, detail, action) of what did not fit.
        resumed: units taken over from a run that had been stopped.
    """

    def __init__(self, plan: Plan, checkpoint: Checkpoint, progress: Progress | None = None) -> None:
        """Run what is not finished.

        Raises:
            OSError: the checkpoint cannot be written.
        """
        self._checkpoint = checkpoint
        self._unsaved: dict[str, pa.Table] = {}
        self.problems: list[tuple[str, str, str]] = []
        self.resumed = 0
        found: dict[int, UnitRows] = {}
        for done in plan.results(checkpoint):
            found[done.number] = self._keep(done.key, done.result)
            self.resumed += not done.fresh
            if progress is not None:
                progress(len(found), plan.total)
        self.units = [found[number] for number in sorted(found)]

    def _keep(self, key: str, result: UnitResult) -> UnitRows:
        trials = result.trials.to_pylist()
        if any(row["status"] != "ok" for row in trials):  # such a unit is not in the checkpoint
            self._unsaved[key] = result.contexts
        self.problems += result.problems
        shown = result.contexts.drop_columns(["context"]).to_pylist()
        measures = {(row.pop("question_id"), row.pop("budget")): row for row in shown}
        return UnitRows(key, trials[0]["backend"], trials, result.retrieval, measures)

    def contexts(self, unit: UnitRows) -> dict[tuple[str, int | None], Context]:
        """(question, budget) -> context, of one unit."""
        table = self._unsaved.get(unit.key)
        if table is None:
            stored = self._checkpoint.load(unit.key)
            if stored is None:
                raise LookupError(f"unit {unit.key} is gone from {self._checkpoint.folder}")
            table = stored.contexts
        texts = table["context"].combine_chunks()
        words = texts.dictionary.to_pylist() if len(texts) else []
        places = texts.indices.to_pylist() if len(texts) else []
        names = zip(table["question_id"].to_pylist(), table["budget"].to_pylist(), places, strict=True)
        return {(q, b): Context(words[place], unit.measures[q, b]) for q, b, place in names}

    def rows(self, budgets: tuple[int | None, ...]) -> Iterator[dict[str, Any]]:
        """One row a question and budget, its context's columns filled in, without an answer yet."""
        for unit in self.units:
            for row in unit.trials:
                for budget in budgets:
                    measures = unit.measures.get((row["question_id"], budget), {})
                    yield {**row, "budget": budget, **measures}
