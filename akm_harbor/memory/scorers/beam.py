"""BEAM's scorer twice: as shipped, bugs kept (`beam-upstream`), and as its paper means it (`beam-paper`).

Source: mohammadtavakoli78/BEAM, src/evaluation at b2a3ee8b. As shipped, nine abilities cut
each rubric score to a whole number (0.5 counts 0), the judge never sees the question, and the
report takes event ordering's tau alone. The paper's version keeps the halves, fills in the
question and reports tau x F1 beside tau. The two are never put into one column.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from scipy.stats import kendalltau

from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_json

UPSTREAM, PAPER = "beam-upstream/b2a3ee8b", "beam-paper/1"
EVENT_ORDERING = "event_ordering"
JUDGE_MODEL = "gpt-4.1-mini"
PLACEHOLDERS = {"question": "<question>", "rubric": "<rubric_item>", "response": "<llm_response>"}
_FENCED = re.compile(r"```(?:json)?\s*(\[.*\]|\{.*\})\s*```", re.DOTALL)
_FIRST = re.compile(r"(\{.*?\}|\[.*?\])", re.DOTALL)

type Judge = Callable[[str], str]
"""Sends a prompt to the judge and returns its reply."""

type Equivalence = Callable[[str, str], bool]
"""Whether two snippets describe the same event, as a judge sees it."""


class JudgeReplyError(ValueError):
    """A judge's reply that holds no score: counted by the caller, never guessed."""


def judge_prompt(template: str, rubric: str, response: str, question: str, scorer: str) -> str:
    """The judge's prompt for one rubric item.

    Upstream leaves the question's placeholder in the text, which its own judge then reads; the
    paper's version fills it in.
    """
    prompt = template.replace(PLACEHOLDERS["rubric"], rubric).replace(PLACEHOLDERS["response"], response)
    return prompt if scorer == UPSTREAM else prompt.replace(PLACEHOLDERS["question"], question)


def parse_reply(reply: str) -> Any:
    """A judge's reply as JSON, by upstream's chain: fence, whole text, first braces, repair."""
    text = reply.strip()
    if text.startswith("```") and (fenced := _FENCED.search(text)):
        text = fenced[1].strip()
    for candidate in (text, _first(text)):
        if candidate is None:
            continue
        try:
            return parse_json(candidate)
        except json.JSONDecodeError:
            continue
    return parse_json(_repair(reply.strip()))


def _first(text: str) -> str | None:
    found = _FIRST.search(text)
    return found[1] if found else None


def _repair(text: str) -> str:
    try:
        from json_repair import repair_json
    except ImportError as error:
        raise AkmHarborError(
            "BEAM's reading of broken judge replies needs json-repair", hint="pip install 'akm-harbor[memory]'"
        ) from error
    return str(repair_json(text)) or "null"


def reply_score(reply: str) -> Any:
    """The `score` entry of a judge's reply, as the judge wrote it.

    Raises:
        JudgeReplyError: the reply holds none.
    """
    try:
        parsed = parse_reply(reply)
    except json.JSONDecodeError as error:
        raise JudgeReplyError(f"the judge's reply cannot be read ({error}): {reply[:80]!r}") from None
    if not isinstance(parsed, dict) or "score" not in parsed:
        raise JudgeReplyError(f"no score in the judge's reply: {reply[:80]!r}")
    return parsed["score"]


def nugget_mean(scores: Sequence[Any], ability: str, scorer: str) -> float:
    """Mean rubric score of one answer, in [0, 1].

    Args:
        scores: the judge's scores, one a rubric item, as written (numbers or text).
        ability: upstream cuts to whole numbers everywhere but in event ordering.
        scorer: `UPSTREAM` or `PAPER`.

    Raises:
        JudgeReplyError: a score that is no number; upstream stops there with a ValueError.
    """
    if not scores:
        raise JudgeReplyError("no rubric item was judged")
    try:
        if scorer == UPSTREAM and ability != EVENT_ORDERING:
            return sum(int(value) for value in scores) / len(scores)
        mean = math.fsum(float(value) for value in scores) / len(scores)
    except (TypeError, ValueError, OverflowError) as error:
        raise JudgeReplyError(f"a judge's score is not a number ({error})") from error
    if not math.isfinite(mean):
        raise JudgeReplyError("a judge's score is not a finite number")
    return mean


@dataclass(frozen=True, slots=True)
class Ordering:
    """Event ordering of one answer.

    Attributes:
        precision: share of the answer's events that are reference events.
        recall: share of the reference events found.
        f1: of the two.
        tau_norm: Kendall's tau-b over all events, missing ones tied last, mapped to [0, 1];
            NaN where tau is undefined (a single event), as upstream has it.
        final_score: tau_norm x f1.
    """

    precision: float
    recall: float
    f1: float
    tau_norm: float
    final_score: float


def align(reference: Sequence[str], answer: Sequence[str], same: Equivalence) -> list[str]:
    """Replace each event of the answer by the first unused reference event it equals, greedily."""
    used: set[int] = set()
    aligned = []
    for event in answer:
        match = next((i for i, ref in enumerate(reference) if i not in used and same(ref, event)), None)
        if match is None:
            aligned.append(event)
        else:
            used.add(match)
            aligned.append(reference[match])
    return aligned


def ordering(reference: Sequence[str], answer: Sequence[str], same: Equivalence) -> Ordering:
    """Upstream's event ordering score of an answer's lines against the rubric's events."""
    aligned = align(reference, answer, same)
    found = len(set(reference) & set(aligned))
    extra = sum(event not in reference for event in aligned)
    missing = sum(event not in aligned for event in reference)
    precision = found / (found + extra) if found + extra else 0.0
    recall = found / (found + missing) if found + missing else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    union = list(dict.fromkeys([*reference, *aligned]))
    if len(union) < 2:  # scipy answers NaN here too, with a warning
        return Ordering(precision, recall, f1, math.nan, math.nan)
    tau = float(kendalltau(_ranks(reference, union), _ranks(aligned, union), variant="b", method="auto").statistic)
    tau_norm = (tau + 1) / 2
    return Ordering(precision, recall, f1, tau_norm, tau_norm * f1)


def _ranks(events: Sequence[str], union: Sequence[str]) -> list[int]:
    place = {event: i for i, event in enumerate(events, start=1)}  # a repeated event keeps its last place
    return [place.get(event, len(union) + 1) for event in union]


@dataclass(frozen=True, slots=True)
class Scored:
    """One answer's BEAM score.

    Attributes:
        value: what the scorer reports for it.
        nugget: mean rubric score.
        ordering: event ordering only.
        replies: the judge's raw replies, in rubric order.
    """

    value: float
    nugget: float
    ordering: Ordering | None = None
    replies: tuple[str, ...] = field(default=())


def score_answer(
    ability: str,
    rubric: Sequence[str],
    response: str,
    ask: Callable[[str, str], str],
    *,
    same: Equivalence,
    scorer: str = PAPER,
) -> Scored:
    """Score one answer with a judge.

    Args:
        ability: one of the ten.
        rubric: rubric items; in event ordering they are the reference events.
        response: the reader's answer.
        ask: judges (rubric item, response) and returns the raw reply.
        same: tells whether two events are the same (event ordering only).
        scorer: `UPSTREAM` or `PAPER`.

    Raises:
        JudgeReplyError: a reply without a usable score.
    """
    order = ordering(rubric, response.split("\n"), same) if ability == EVENT_ORDERING else None
    replies = tuple(ask(item, response) for item in rubric)
    nugget = nugget_mean([reply_score(reply) for reply in replies], ability, scorer)
    if order is None:
        return Scored(nugget, nugget, None, replies)
    return Scored(order.tau_norm if scorer == UPSTREAM else order.final_score, nugget, order, replies)


def report(conversations: Mapping[str, Mapping[str, Sequence[float]]]) -> dict[str, float]:
    """Ability means as upstream reports them: mean in a conversation, then over conversations."""
    sums: dict[str, list[float]] = {}
    for abilities in conversations.values():
        for ability, values in abilities.items():
            sums.setdefault(ability, []).append(math.fsum(values) / len(values))
    return {ability: math.fsum(values) / len(values) for ability, values in sorted(sums.items())}
