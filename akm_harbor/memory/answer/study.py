"""A whole study: retrieve, pass the gates, read, judge, and write it all down."""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.answer import endpoint, failures, gates
from akm_harbor.memory.answer.book import Book, Progress, check_keys
from akm_harbor.memory.answer.calls import PROBE, READER, Reply, Request, as_pairs
from akm_harbor.memory.answer.grading import Graded, Grader, ToGrade
from akm_harbor.memory.answer.judge_probe import Fabricated, fabricate
from akm_harbor.memory.answer.keeper import Terms
from akm_harbor.memory.answer.price import Line, endpoint_of
from akm_harbor.memory.answer.retrieved import Retrieved, UnitRows
from akm_harbor.memory.answer.scoring import Task, calls_of, make_scorer
from akm_harbor.memory.answer.spec import CEILING_GATE, GATES, Model, Study, answer_prompt, budget_name
from akm_harbor.memory.checkpoint import Checkpoint
from akm_harbor.memory.context import count
from akm_harbor.memory.datasets.model import Question
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.plan import Plan
from akm_harbor.memory.scorers import locomo

_READER_TOKENS = 256
_SHORT = 3000  # tokens that fit into any reader
_TEMPLATE_TOKENS = 200  # of a judge's prompt, for the estimate


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One answer: unit, question, budget and repeat.

    Attributes:
        unit: number of the unit.
        question_id: the question.
        budget: -1 is as is, so that places sort.
        repeat: which answer of the reader.
    """

    unit: int
    question_id: str
    budget: int
    repeat: int


@dataclass(frozen=True, slots=True)
class Options:
    """How to run, which is no part of the protocol.

    Attributes:
        waive: gates to pass although they are shut.
        jobs: worker processes of the retrieval.
        scheduler: a Dask scheduler for it instead.
        akm: the akm executable of the akm arms.
        progress: makes a progress callback for a titled piece of work.
        say: tells a person something that must not be missed.
    """

    waive: tuple[str, ...] = ()
    jobs: int = 1
    scheduler: str | None = None
    akm: Path | None = None
    progress: Callable[[str], Progress] | None = None
    say: Callable[[str], None] = field(default=lambda _text: None)


class StudyRun:
    """One run of a study, step by step.

    Attributes:
        study: what is measured.
        plan: its retrieval.
        retrieved: what the arms found.
        book: the calls.
        grader: the scorer with its judge.
        gates: what the gates found, as far as they were reached.
        answers: place -> key of the reader's call; None: the prompt is too long to send.
        graded: (place, judge repeat) -> grading.
        probed: made-up answers, with their gradings.
    """

    def __init__(self, study: Study, store: Store, out: Path, options: Options) -> None:
        """Check everything that can be checked for nothing, then retrieve.

        Raises:
            UsageError: the study does not fit the data.
            AkmHarborError: an arm does not work, a key is missing, a price is not known, the disk is full.
        """
        self.study, self.out, self.options = study, out, options
        self.store = store
        unknown = sorted(set(options.waive) - set(GATES))
        if unknown:
            raise UsageError(f"no gate {unknown[0]!r}", hint=f"One of: {', '.join(GATES)}.")
        self.prompt = answer_prompt(study)
        scorer = make_scorer(study.scorer.name, study.scorer.upstream)
        if scorer.benchmarks and store.benchmark not in scorer.benchmarks:
            raise UsageError(
                f"{study.scorer.name} does not score {store.benchmark}",
                hint="akm-harbor-judge scores every benchmark, under its own name.",
            )
        cap = study.spending
        self.terms = Terms(
            endpoint_of(study.reader, need_price=True),
            endpoint_of(study.judge, need_price=True) if study.judge else None,
            cap.max_usd,
            cap.max_calls,
            study.concurrency,
        )
        keep = _without_category_5 if study.category_5 == "exclude" else _any
        settings = study.settings(options.jobs, options.scheduler, options.akm)
        self.reading = study.reading
        self.plan = Plan(store, settings, reading=self.reading, keep=keep)
        self.checkpoint = Checkpoint(out)
        try:
            self.retrieved = Retrieved(self.plan, self.checkpoint, self._progress("Retrieving"))
        except OSError as error:
            raise AkmHarborError(
                f"cannot go on ({error.strerror or error})",
                path=self.checkpoint.folder,
                hint="Units that were finished are kept there: make room and run the same command again.",
            ) from error
        if not self.retrieved.units:
            raise UsageError("there is no question to ask", hint="Look at sample, histories and category_5.")
        self.window = study.reader.context_window or self._listed_window()
        self.book = Book(out.with_name(f"{out.name}.calls.jsonl"), self.terms)
        self.grader = Grader(scorer, study.judge, self.book)
        self.gates: list[gates.Gate] = []
        self.answers: dict[Place, str | None] = {}
        self.graded: dict[tuple[Place, int], Graded] = {}
        self.probed: list[tuple[Fabricated, Graded | None]] = []
        self.shut: gates.GateError | None = None

    def _listed_window(self) -> int | None:
        """The reader's context window, looked up only where a context is long enough to care."""
        sizes = (m["ctx_tokens"] for unit in self.retrieved.units for m in unit.measures.values())
        return endpoint.listed_window(self.study.reader.model) if max(sizes, default=0) > _SHORT else None

    def _progress(self, title: str) -> Progress | None:
        return self.options.progress(title) if self.options.progress else None

    # -- what would be asked --------------------------------------------------------------------

    def requests(self, units: Iterable[tuple[int, UnitRows]]) -> Iterator[tuple[Place, Request | None]]:
        """The readers' requests of some units, one unit's contexts in memory at a time; None: too long to send."""
        reader = self.study.reader
        for number, unit in units:
            contexts = self.retrieved.contexts(unit)
            for row in unit.trials:
                for budget in self.reading.budgets:
                    context = contexts.get((row["question_id"], budget))
                    if context is None:
                        continue
                    messages = self.prompt.messages(context.text, row["question"], row["question_date"])
                    size = context.measures["ctx_tokens"] + self._overhead(row["question"])
                    for repeat in range(reader.repeats):
                        place = Place(number, row["question_id"], -1 if budget is None else budget, repeat)
                        settings = reader_settings(reader, repeat)
                        if self.window is not None and size + settings["max_tokens"] > self.window:
                            yield place, None
                            continue
                        yield (
                            place,
                            Request(
                                READER,
                                reader.api_base,
                                reader.model,
                                as_pairs(messages),
                                tuple(sorted(settings.items())),
                                repeat,
                                size,
                            ),
                        )

    def _overhead(self, question: str) -> int:
        return sum(count(m["content"]) for m in self.prompt.messages(" ", " ", " ")) + count(question) + 24

    def estimate(self) -> list[Line]:
        """Calls and price, arm by arm, of everything that is not answered yet; nothing is called."""
        lines: dict[str, Line] = {}
        judge = self.book.endpoint("judge")
        scorer = self.grader.scorer
        grades: list[tuple[str, Task, str | None]] = []
        for place, request in self.requests(enumerate(self.retrieved.units)):
            unit = self.retrieved.units[place.unit]
            arm = f"{unit.trials[0]['arm']}, {budget_name(None if place.budget < 0 else place.budget)}"
            line = lines.setdefault(f"reader: {arm}", Line(f"reader: {arm}"))
            if request is None:
                continue
            task = self._task(unit, place.question_id)
            reply = self.book.find(request.key)
            if reply is not None:
                line.known += 1
            else:
                line.add(self.terms.reader, request.in_tokens, request.max_tokens)
            grades.append((arm, task, reply.text if reply else None))
        if scorer.judged and self.study.judge is not None:
            most = int(self.grader.settings.get("max_tokens", 0))
            for arm, task, answer in grades:
                line = lines.setdefault(f"judge: {arm}", Line(f"judge: {arm}"))
                size = count(task.question) + count(task.gold or "") + _TEMPLATE_TOKENS
                size += count(answer) if answer is not None else _reader_max(self.study.reader)
                calls = calls_of(scorer, task)
                for repeat in range(self.study.judge.repeats):
                    if answer is not None and isinstance(
                        self.grader.grade(ToGrade(None, task, answer, repeat)), Graded
                    ):
                        line.known += calls
                        continue
                    for _ in range(calls):
                        line.add(judge, size, most)
            probe = lines.setdefault("judge probe", Line("judge probe"))
            for made in self._fabricated():
                size = count(made.task.question) + 2 * count(made.task.gold or "") + _TEMPLATE_TOKENS
                probe.add(judge, size, most)
        self.book.used.clear()
        return list(lines.values())

    def _task(self, unit: UnitRows, question_id: str) -> Task:
        return task_of(next(row for row in unit.trials if row["question_id"] == question_id))

    # -- what is done ---------------------------------------------------------------------------

    def execute(self) -> None:
        """Pass the gates in order, read and judge; what was stopped midway is in the rows.

        Raises:
            GateError: the retrieval gate is shut: nothing was spent.
        """
        rows = list(self.retrieved.rows(self.reading.budgets[:1]))
        self._gate(gates.retrieval_gate(rows, self.study.gates.retrieval))
        check_keys(self.terms, dict(os.environ))
        numbered = list(enumerate(self.retrieved.units))
        ceiling = [(n, unit) for n, unit in numbered if unit.backend == "oracle"]
        others = [(n, unit) for n, unit in numbered if unit.backend != "oracle"]
        self._answer(ceiling, "Reading (oracle)")
        cut_short = self._cut_short(ceiling)
        try:
            if others and cut_short is None:
                self._gate(self._ceiling(ceiling))
            elif others:
                self.gates.append(gates.Gate(CEILING_GATE, passed=False, detail=f"not reached: {cut_short}"))
        except gates.GateError as error:
            self.shut = error
            self.book.stopped_by = self.book.stopped_by or ("gate-shut", error.message)
        self._answer(others, "Reading")
        self._probe()

    def _gate(self, gate: gates.Gate) -> None:
        try:
            found = gates.decide(gate, self.options.waive)
        except gates.GateError:
            self.gates.append(gate)
            raise
        self.gates.append(found)
        if found.waived:
            self.options.say(f"WAIVED: the {found.name} is shut ({found.detail}); going on because you said so")

    def _cut_short(self, units: list[tuple[int, UnitRows]]) -> str | None:
        """Why not all of the oracle's questions were asked and judged; None: they were."""
        if self.book.stopped_by is not None:
            return f"the run was stopped ({self.book.stopped_by[0]})"
        numbers = {number for number, _ in units}
        replies = [self.reply(place) for place in self.answers if place.unit in numbers]
        replies += [graded.failure for (place, _), graded in self.graded.items() if place.unit in numbers]
        unsent = [r.error_class for r in replies if r is not None and r.error_class in failures.NOT_SENT]
        return f"{len(unsent)} calls were not made ({unsent[0]})" if unsent else None

    def _ceiling(self, units: list[tuple[int, UnitRows]]) -> gates.Gate:
        least = self.study.gates.ceiling
        if units:
            first = -1 if self.reading.budgets[0] is None else self.reading.budgets[0]
            numbers = {number for number, _ in units}
            places = [p for p in self.answers if p.unit in numbers and p.budget == first]
            graded = [g for (p, _), g in self.graded.items() if p.unit in numbers and p.budget == first]
            scores = [g.score.official for g in graded if g.score is not None and g.score.official is not None]
            return gates.ceiling_gate(scores, len(places), least, where="oracle")
        if self.study.gates.ceiling_result:
            wanted = {
                "benchmark": self.store.benchmark,
                "reader_model": self.study.reader.model,
                "reader_prompt_sha256": self.prompt.sha256,
                "reader_settings": reader_settings(self.study.reader),
                "scorer_sha": self.grader.scorer.sha,
                "judge_model": self.study.judge.model if self.study.judge else None,
            }
            return gates.ceiling_from(Path(self.study.gates.ceiling_result), least, wanted)
        return gates.unknown_ceiling()

    def _answer(self, units: list[tuple[int, UnitRows]], title: str) -> None:
        """Read and judge some units."""
        per_unit = len(self.reading.budgets) * self.study.reader.repeats
        whole = sum(len(unit.trials) for _, unit in units) * per_unit

        def asked() -> Iterator[Request]:
            for place, request in self.requests(units):
                self.answers[place] = request.key if request is not None else None
                if request is not None:
                    yield request

        self.book.make(asked(), whole, self._progress(title))
        repeats = self.study.judge.repeats if self.grader.scorer.judged and self.study.judge else 1
        todo = [
            ToGrade((place, repeat), self._task(unit, place.question_id), reply.text or "", repeat)
            for place, reply, unit in self._readable(dict(units))
            for repeat in range(repeats)
        ]
        for key, graded in self.grader.grade_all(todo, self._progress(title.replace("Reading", "Judging"))).items():
            assert isinstance(key, tuple)
            self.graded[key] = graded

    def _readable(self, units: dict[int, UnitRows]) -> Iterator[tuple[Place, Reply, UnitRows]]:
        for place in self.answers:
            reply = self.reply(place)
            if place.unit in units and reply is not None and reply.answered and self.book.served_as_asked(reply):
                yield place, reply, units[place.unit]

    def reply(self, place: Place) -> Reply | None:
        """What became of a reader's call; None: it was not made."""
        key = self.answers.get(place)
        return self.book.find(key) if key is not None else None

    def _fabricated(self) -> list[Fabricated]:
        if self.study.judge is None or not self.study.judge.probe or self.grader.scorer.aux == "nugget_mean":
            return []
        tasks = {row["question_id"]: task_of(row) for unit in self.retrieved.units for row in unit.trials}
        ordered = [tasks[question_id] for question_id in sorted(tasks)]
        return fabricate(ordered, self.study.judge.probe, self.study.seed)

    def _probe(self) -> None:
        """Put made-up answers before the judge."""
        made = self._fabricated()
        todo = [ToGrade(i, one.task, one.answer, 0, PROBE) for i, one in enumerate(made)]
        graded = self.grader.grade_all(todo, self._progress("Probing the judge"))
        self.probed = [(one, graded.get(i)) for i, one in enumerate(made)]

    def close(self) -> None:
        """Let calls in flight end."""
        self.book.close()


def reader_settings(reader: Model, repeat: int = 0) -> dict[str, Any]:
    """Settings of a reader's request."""
    settings: dict[str, Any] = {"max_tokens": _reader_max(reader), **reader.extra}
    if reader.temperature is not None:
        settings["temperature"] = reader.temperature
    if reader.seed is not None:
        settings["seed"] = reader.seed + repeat
    return settings


def _reader_max(reader: Model) -> int:
    return reader.max_tokens or _READER_TOKENS


def _any(_question: Question) -> bool:
    return True


def _without_category_5(question: Question) -> bool:
    return question.type_raw != str(locomo.ADVERSARIAL)


def task_of(row: dict[str, Any]) -> Task:
    """What a scorer knows of a row's question."""
    return Task(
        row["question_id"],
        row["qtype_raw"],
        row["qtype"],
        row["question"],
        row["gold_answer"],
        tuple(row["rubric"]) if row["rubric"] is not None else (),
        bool(row["is_abstention"]),
    )
