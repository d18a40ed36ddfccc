"""What of a benchmark goes into tasks: histories as documents, questions with their offline scorer.

A verifier has no model at hand. LoCoMo's official score needs none and is used as it is. What
LongMemEval and BEAM leave to a judge is scored by a declared stand-in under a name of its own
(`longmemeval-offline`, `beam-offline`); such a number never stands beside a judged one.
"""

import hashlib
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from akm_harbor.errors import UsageError
from akm_harbor.memory.backends import akm_documents
from akm_harbor.memory.columns import QUESTIONS
from akm_harbor.memory.datasets import beam, locomo, longmemeval
from akm_harbor.memory.datasets.model import Instance, Question
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.documents import SESSION, History, check_granularity, name_documents
from akm_harbor.memory.scorers import locomo as locomo_score
from akm_harbor.tables import Problems, read_table
from akm_harbor.verify.answer_score import F1, PARTS, PHRASES, score_answer

ABSTAINED = "No information available."
OFFLINE_VERSION = 1
_LOCOMO_PHRASES = ("no information available", "not mentioned")
_OFFLINE_PHRASES = (
    *_LOCOMO_PHRASES, "did not mention", "didn't mention", "never mentioned", "says nothing", "do not know",
    "don't know", "no record", "cannot be determined", "can't be determined",
)  # fmt: skip
# Whose published answer describes a good answer instead of being one: token overlap says little there.
_RUBRICS = {
    "single-session-preference", "instruction_following", "preference_following", "contradiction_resolution",
    "summarization", "event_ordering",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grading:
    """How an answer is scored without a model.

    Attributes:
        scorer: name and version; `locomo-f1/...` is official, `...-offline/1` a stand-in.
        measure: `f1`, `parts-f1` or `phrases`.
        answer: an answer that earns 1.
        phrases: what an abstention has to say.
        fit: `official`, `stand-in`, or `poor` where the gold describes a good answer.
    """

    scorer: str
    measure: str
    answer: str
    phrases: tuple[str, ...] = ()
    fit: str = "official"

    def spec(self) -> dict[str, Any]:
        """What the verifier needs."""
        return {"measure": self.measure, "gold": self.answer, "phrases": list(self.phrases), "scorer": self.scorer}


@dataclass(frozen=True, slots=True)
class TaskQuestion:
    """One question, ready to become a task.

    Attributes:
        name: opaque.
        question: as read.
        grading: how it is scored.
        evidence: names of the documents that hold the evidence.
        told: texts of the evidence turns, oldest first.
    """

    name: str
    question: Question
    grading: Grading
    evidence: tuple[str, ...]
    told: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskHistory:
    """One history, ready to be put into tasks.

    Attributes:
        name: opaque.
        instance_id: the source's id; never enters a container.
        documents: what akm is given: file name without suffix to text, under opaque names.
        files: the same conversations as plain files, one a session, in the source's order.
        questions: those that were drawn.
    """

    name: str
    instance_id: str
    documents: Mapping[str, str]
    files: tuple[tuple[str, str], ...]
    questions: tuple[TaskQuestion, ...]


@dataclass(frozen=True, slots=True)
class ExportSettings:
    """How a benchmark becomes tasks.

    Attributes:
        limit: questions drawn, stratified by type; None: all.
        seed: of the draw and of the opaque names.
        granularity: what a document of the bundle is.
        synthesis: what its description is made of, see `akm_documents`.
    """

    limit: int | None = None
    seed: int = 0
    granularity: str = SESSION
    synthesis: str = akm_documents.LEAD

    def check(self) -> None:
        """Raise UsageError for a value that does not exist."""
        check_granularity(self.granularity)
        if self.synthesis not in akm_documents.SYNTHESES:
            known = ", ".join(akm_documents.SYNTHESES)
            raise UsageError(f"no synthesis {self.synthesis!r}", hint=f"One of: {known}.")
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"a limit of {self.limit} leaves no question")


def export(store: Store, settings: ExportSettings, problems: Problems) -> Iterator[TaskHistory]:
    """Yield the histories that hold drawn questions, in source order.

    A question whose own gold would not earn 1 is left out, with a problem.

    Raises:
        UsageError: a setting, or a benchmark without an offline scorer.
    """
    settings.check()
    if store.benchmark not in _GRADERS:
        raise UsageError(f"{store.benchmark} has no scorer that works offline", hint=f"One of: {', '.join(_GRADERS)}.")
    drawn = draw(store, settings)
    for instance in store.read(sorted({number for number, _ in drawn.values()})):
        kept = tuple(q for q in instance.questions if q.question_id in drawn)
        history = _history(store.benchmark, replace(instance, questions=kept), settings, problems)
        if history.questions:
            yield history


def draw(store: Store, settings: ExportSettings) -> dict[str, tuple[int, str]]:
    """The questions to convert: id to (history, type). Each type keeps its share (largest remainder)."""
    rows = read_table(store.path, QUESTIONS, ["instance", "question_id", "qtype"]).to_pylist()
    everything = {row["question_id"]: (row["instance"], row["qtype"] or "") for row in rows}
    if settings.limit is None or settings.limit >= len(everything):
        return everything
    types: dict[str, list[str]] = defaultdict(list)
    for question_id, (_, kind) in everything.items():
        types[kind].append(question_id)
    exact = {kind: settings.limit * len(ids) / len(everything) for kind, ids in types.items()}
    share = {kind: int(value) for kind, value in exact.items()}
    by_remainder = sorted(exact, key=lambda kind: (share[kind] - exact[kind], kind))
    for kind in by_remainder[: settings.limit - sum(share.values())]:
        share[kind] += 1
    dice = random.Random(settings.seed)  # noqa: S311
    chosen = {one for kind in sorted(types) for one in dice.sample(sorted(types[kind]), share[kind])}
    return {one: place for one, place in everything.items() if one in chosen}


def _history(benchmark: str, instance: Instance, settings: ExportSettings, problems: Problems) -> TaskHistory:
    history = History(instance, benchmark, settings.granularity)
    documents = name_documents(history, settings.seed)
    dated = [replace(d, text=f"[{d.date}]\n{d.text}" if d.date else d.text) for d in documents.values()]
    sessions = History(instance, benchmark, SESSION)
    files = tuple(
        (f"{number:04d}.md", f"[{piece.date}]\n{piece.text}\n" if piece.date else f"{piece.text}\n")
        for number, piece in enumerate(sessions.pieces, start=1)
    )
    questions = []
    for question in instance.questions:
        grading = grade(benchmark, question)
        wrong = _unscorable(grading)
        if grading is None or wrong:
            problems.add(question.question_id, "gold-not-scorable", wrong or "it has no answer", "left out")
            continue
        gold = history.gold(question)
        evidence = [documents[p.key].name for p in history.pieces if set(history.covers(p)) & gold.units]
        name = f"q{_opaque(settings.seed, question.question_id)}"
        questions.append(TaskQuestion(name, question, grading, tuple(evidence), gold.texts))
    name = f"h{_opaque(settings.seed, instance.instance_id)}"
    written = akm_documents.files(dated, settings.synthesis)
    return TaskHistory(name, instance.instance_id, written, files, tuple(questions))


def _opaque(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed}/task/{text}".encode()).hexdigest()[:12]


def _unscorable(grading: Grading | None) -> str | None:
    """Why a question cannot be scored, None if its gold earns 1."""
    if grading is None:
        return "it has no answer"
    score = score_answer(grading.spec(), grading.answer)
    return None if score == 1.0 else f"its own gold earns {score:.3f} ({grading.answer[:60]!r})"


def grade(benchmark: str, question: Question) -> Grading | None:
    """How a question is scored offline; None where the source has no answer to score by."""
    return _GRADERS[benchmark](benchmark, question)


def _locomo(_benchmark: str, question: Question) -> Grading | None:
    category, scorer = int(question.type_raw), locomo_score.SCORER_ID
    if category == locomo_score.ADVERSARIAL:
        return Grading(scorer, PHRASES, ABSTAINED, _LOCOMO_PHRASES)
    if question.answer is None:
        return None
    if category == locomo_score.MULTI_HOP:
        return Grading(scorer, PARTS, question.answer)
    gold = question.answer
    if category == locomo_score.OPEN_DOMAIN:
        gold = gold.split(";", maxsplit=1)[0].strip()
    return Grading(scorer, F1, gold)


def _stand_in(benchmark: str, question: Question) -> Grading | None:
    scorer = f"{benchmark}-offline/{OFFLINE_VERSION}"
    if question.is_abstention:
        return Grading(scorer, PHRASES, ABSTAINED, _OFFLINE_PHRASES, "stand-in")
    if question.answer is None:
        return None
    return Grading(scorer, F1, question.answer, fit="poor" if question.type in _RUBRICS else "stand-in")


_GRADERS = {locomo.BENCHMARK: _locomo, longmemeval.BENCHMARK: _stand_in, beam.BENCHMARK: _stand_in}
