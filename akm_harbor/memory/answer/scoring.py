"""What an answer is worth: a scorer is a function of the question, the answer and what a judge replies.

A scorer asks for judgements through a function and does not care where they come from: a model, a
journal, or the rows of a published result. That is what makes a score derivable again without a model.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.errors import UsageError
from akm_harbor.memory.answer import judge_prompt
from akm_harbor.memory.datasets import beam as beam_data
from akm_harbor.memory.datasets import locomo as locomo_data
from akm_harbor.memory.datasets import longmemeval as longmemeval_data
from akm_harbor.memory.label import digest
from akm_harbor.memory.scorers import beam, locomo, longmemeval, upstream

YES, NO, UNDECIDED = "yes", "no", "undecided"
_WORD = re.compile(r"[a-z']+")


@dataclass(frozen=True, slots=True)
class Asked:
    """One question put to a judge.

    Attributes:
        messages: the conversation.
        prompt_id: digest of the prompt before it was filled in.
        settings: what the scorer's protocol fixes of the request.
    """

    messages: tuple[tuple[str, str], ...]
    prompt_id: str
    settings: tuple[tuple[str, Any], ...]


type Ask = Callable[[Asked], str]
"""Gives a judge's reply, or raises."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a scorer knows of a question.

    Attributes:
        question_id: its id.
        qtype_raw: category as published.
        qtype: category by upstream's meaning.
        question: the question.
        gold: the published answer.
        rubric: rubric items.
        is_abstention: the right answer is that there is none.
    """

    question_id: str
    qtype_raw: str
    qtype: str
    question: str
    gold: str | None
    rubric: tuple[str, ...]
    is_abstention: bool


@dataclass(frozen=True, slots=True)
class Score:
    """What an answer is worth.

    Attributes:
        official: the score, in [0, 1]; None: undecided.
        aux: a second score, named by the scorer.
        verdict: yes, no or undecided; None: the scorer asks for no such verdict.
        prompt_id: digest of the judge's prompt; of several, of the first.
        note: why there is no score.
    """

    official: float | None
    aux: float | None = None
    verdict: str | None = None
    prompt_id: str | None = None
    note: str | None = None


def verdict(reply: str) -> str:
    """yes, no, or undecided: only a reply that begins with one of them and does not take it back decides."""
    words = _WORD.findall(reply.lower())
    if not words or words[0] not in (YES, NO):
        return UNDECIDED
    other = NO if words[0] == YES else YES
    return UNDECIDED if other in words else words[0]


@dataclass(frozen=True, slots=True)
class LocomoF1:
    """LoCoMo's own F1; no judge."""

    id: str = locomo.SCORER_ID
    aux: str | None = None
    judged: bool = False
    benchmarks: tuple[str, ...] = (locomo_data.BENCHMARK,)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sha(self) -> str:
        """Digest of everything that decides a score."""
        return digest({"id": self.id, "upstream": upstream.LOCOMO_EVALUATION.sha256, "port": 1})

    def score(self, task: Task, answer: str, ask: Ask) -> Score:  # noqa: ARG002
        """Score one answer."""
        return Score(locomo.score(int(task.qtype_raw), answer, task.gold))


@dataclass(frozen=True, slots=True)
class LongMemEvalJudge:
    """LongMemEval's judge with upstream's prompts; the second score is upstream's label, which decides always."""

    prompts: upstream.LongMemEvalPrompts
    id: str = longmemeval.SCORER_ID
    aux: str | None = "upstream_label"
    judged: bool = True
    benchmarks: tuple[str, ...] = (longmemeval_data.BENCHMARK,)
    fixed: Mapping[str, Any] = field(
        default_factory=lambda: {name: longmemeval.JUDGE_REQUEST[name] for name in ("temperature", "max_tokens", "n")}
    )

    @property
    def sha(self) -> str:
        """Digest of everything that decides a score."""
        return digest({"id": self.id, "upstream": upstream.LONGMEMEVAL_JUDGE.sha256, "port": 1})

    def score(self, task: Task, answer: str, ask: Ask) -> Score:
        """Score one answer."""
        abstention = longmemeval.is_abstention(task.question_id)
        text = self.prompts.prompt(task.qtype, task.question, task.gold or "", answer, abstention=abstention)
        prompt_id = self.prompts.digest(task.qtype, abstention=abstention)
        reply = ask(Asked((("user", text),), prompt_id, tuple(sorted(self.fixed.items()))))
        return _by_verdict(reply, prompt_id, float(longmemeval.label(reply)))


@dataclass(frozen=True, slots=True)
class OwnJudge:
    """A judge with prompts of ours, under a name of its own."""

    id: str = judge_prompt.SCORER_ID
    aux: str | None = None
    judged: bool = True
    benchmarks: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0, "max_tokens": 16})

    @property
    def sha(self) -> str:
        """Digest of everything that decides a score."""
        return digest({"id": self.id, "prompts": judge_prompt.DIGESTS})

    def score(self, task: Task, answer: str, ask: Ask) -> Score:
        """Score one answer."""
        kind = judge_prompt.kind_of(task.gold, task.rubric, is_abstention=task.is_abstention)
        text = judge_prompt.fill(kind, task.question, task.gold, task.rubric, answer)
        prompt_id = judge_prompt.DIGESTS[kind]
        return _by_verdict(ask(Asked((("user", text),), prompt_id, tuple(sorted(self.fixed.items())))), prompt_id, None)


def _by_verdict(reply: str, prompt_id: str, aux: float | None) -> Score:
    found = verdict(reply)
    official = None if found == UNDECIDED else float(found == YES)
    return Score(official, aux, found, prompt_id, None if official is not None else "the judge said neither yes nor no")


class _UndecidedError(Exception):
    """The judge's reply decides nothing."""


@dataclass(frozen=True, slots=True)
class BeamJudge:
    """BEAM's judge with upstream's prompts, as shipped or as its paper means it; second comes the rubric mean."""

    prompts: upstream.BeamPrompts
    id: str
    aux: str | None = "nugget_mean"
    judged: bool = True
    benchmarks: tuple[str, ...] = (beam_data.BENCHMARK,)
    fixed: Mapping[str, Any] = field(default_factory=lambda: {"temperature": 0, "max_tokens": 512})

    @property
    def sha(self) -> str:
        """Digest of everything that decides a score."""
        pinned = [upstream.BEAM_PROMPTS.sha256, upstream.BEAM_METRICS.sha256]
        return digest({"id": self.id, "upstream": pinned, "port": 1})

    def score(self, task: Task, answer: str, ask: Ask) -> Score:
        """Score one answer; event ordering asks which events are the same before it asks for the rubric."""
        prompt_id = digest({"prompt": self.prompts.judge, "scorer": self.id})
        settings = tuple(sorted(self.fixed.items()))

        def judge(item: str, response: str) -> str:
            text = beam.judge_prompt(self.prompts.judge, item, response, task.question, self.id)
            return ask(Asked((("user", text),), prompt_id, settings))

        def same(first: str, second: str) -> bool:
            messages = tuple((m["role"], m["content"]) for m in self.prompts.equivalence(first, second))
            found = verdict(ask(Asked(messages, prompt_id, settings)))
            if found == UNDECIDED:
                raise _UndecidedError("whether two events are the same was answered neither yes nor no")
            return found == YES

        try:
            scored = beam.score_answer(task.qtype, task.rubric, answer, judge, same=same, scorer=self.id)
        except (_UndecidedError, beam.JudgeReplyError) as error:
            return Score(None, None, None, prompt_id, str(error))
        if math.isnan(scored.value):
            return Score(None, scored.nugget, None, prompt_id, "tau is undefined for a single event")
        return Score(scored.value, scored.nugget, None, prompt_id)


type Scorer = LocomoF1 | LongMemEvalJudge | OwnJudge | BeamJudge
"""Each has an `id`, a `sha` (digest of all that decides a score), `aux` (what its second score is called), `judged`,
`benchmarks` (what it scores; empty: anything with an answer or a rubric) and `fixed` (what it fixes of a request)."""


def calls_of(scorer: Scorer, task: Task) -> int:
    """How many judge calls one answer takes, about: event ordering asks by what it hears."""
    if not isinstance(scorer, BeamJudge):
        return int(scorer.judged)
    items = len(task.rubric)
    return items + (items * (items + 1) // 2 if task.qtype == beam.EVENT_ORDERING else 0)


def make_scorer(name: str, checkout: str) -> Scorer:
    """Build a scorer.

    Args:
        name: as a study file spells it.
        checkout: upstream at the pinned commit, where its prompts are needed.

    Raises:
        UsageError: no such scorer.
        UpstreamError: the checkout is not the pinned one.
    """
    if name == "locomo-f1":
        return LocomoF1()
    if name == "akm-harbor-judge":
        return OwnJudge()
    if name == "longmemeval-judge":
        return LongMemEvalJudge(upstream.longmemeval_prompts(Path(checkout)))
    if name in ("beam-upstream", "beam-paper"):
        return BeamJudge(
            upstream.beam_prompts(Path(checkout)), beam.UPSTREAM if name == "beam-upstream" else beam.PAPER
        )
    raise UsageError(f"no scorer {name!r}")


def replay(scorer_id: str) -> Scorer:
    """A scorer that reads replies instead of asking for them, and so needs no prompt.

    Raises:
        UsageError: no such scorer.
    """
    blank = "Correct Answer: {} {} {}"
    if scorer_id == locomo.SCORER_ID:
        return LocomoF1()
    if scorer_id == judge_prompt.SCORER_ID:
        return OwnJudge()
    if scorer_id == longmemeval.SCORER_ID:
        return LongMemEvalJudge(upstream.LongMemEvalPrompts(dict.fromkeys(longmemeval.ANSWER_LABELS, blank)))
    if scorer_id in (beam.UPSTREAM, beam.PAPER):
        return BeamJudge(upstream.BeamPrompts("", "", ""), scorer_id)
    raise UsageError(f"no scorer {scorer_id!r}")


def in_order(replies: Sequence[str]) -> Ask:
    """An `ask` that hands out stored replies in the order they were asked for.

    Raises (when called):
        LookupError: the scorer asks for more than there are.
    """
    left = iter(replies)

    def ask(_asked: Asked) -> str:
        try:
            return next(left)
        except StopIteration:
            raise LookupError("a judge's reply is missing") from None

    return ask
