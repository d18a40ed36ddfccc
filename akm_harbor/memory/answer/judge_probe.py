"""How often does the judge accept what is wrong? Made-up answers, known to be right or wrong, put before it.

A judge that lets vague answers pass lifts every arm, and weak arms most. No model makes these answers:
they follow from the questions, their gold answers and a seed.
"""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from akm_harbor.memory.answer.scoring import NO, UNDECIDED, YES, Task
from akm_harbor.memory.text import keywords
from akm_harbor.stats.binomial import proportion
from akm_harbor.stats.results import Estimate

GOLD, IN_SENTENCE, VAGUE, TOPIC, OTHER, REFUSAL = (
    "gold",
    "gold-in-sentence",
    "vague",
    "topic-only",
    "other-gold",
    "refusal",
)
_VAGUE = (
    "It was mentioned in one of the conversations, and it mattered to them.",
    "Something they talked about a while ago.",
    "It depends, but they did say something along those lines.",
    "Around that time, as they had planned.",
    "Several things, among others what was discussed before.",
)
_REFUSAL = "There is no information about that."


@dataclass(frozen=True, slots=True)
class Fabricated:
    """One made-up answer.

    Attributes:
        task: the question.
        kind: how it was made.
        answer: the answer.
        expected: what the judge must say.
    """

    task: Task
    kind: str
    answer: str
    expected: str


def fabricate(tasks: Sequence[Task], number: int, seed: int) -> list[Fabricated]:
    """Made-up answers for so many of the questions, drawn by a seed."""
    rng = random.Random(seed)  # noqa: S311
    usable = [task for task in tasks if task.is_abstention or task.gold]
    drawn = rng.sample(usable, min(number, len(usable)))
    made: list[Fabricated] = []
    for task in drawn:
        made += _for(task, usable, rng)
    return made


def _for(task: Task, tasks: Sequence[Task], rng: random.Random) -> list[Fabricated]:
    made = [Fabricated(task, VAGUE, rng.choice(_VAGUE), NO)]
    made.append(Fabricated(task, REFUSAL, _REFUSAL, YES if task.is_abstention else NO))
    topic = " ".join(keywords(task.question)[:4])
    if topic and not _holds(topic, task.gold):
        made.append(Fabricated(task, TOPIC, f"It is about {topic}.", NO))
    others = [t for t in tasks if not t.is_abstention and t.gold and _differs(t.gold, task.gold)]
    same_type = [t for t in others if t.qtype == task.qtype] or others
    if same_type:
        made.append(Fabricated(task, OTHER, str(rng.choice(same_type).gold), NO))
    if task.gold and not task.is_abstention:
        made.append(Fabricated(task, GOLD, task.gold, YES))
        made.append(Fabricated(task, IN_SENTENCE, f"As far as I can tell from the conversations: {task.gold}.", YES))
    return made


def _words(text: str | None) -> set[str]:
    return set(re.findall(r"\w+", (text or "").lower()))


def _differs(gold: str, other: str | None) -> bool:
    """No word in common, so that the one cannot be an answer to the other's question by accident."""
    return not _words(gold) & _words(other)


def _holds(topic: str, gold: str | None) -> bool:
    return bool(gold) and _words(gold) <= _words(topic)


def rates(rows: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """False positives and false negatives with Wilson intervals; undecided verdicts are counted, not guessed."""
    listed = list(rows)
    return {
        "false_positive": _rate([r for r in listed if r["expected"] == NO], YES),
        "false_negative": _rate([r for r in listed if r["expected"] == YES], NO),
        "by_kind": {
            kind: _rate([r for r in listed if r["kind"] == kind and r["expected"] == wanted], wrong)
            for kind in dict.fromkeys(r["kind"] for r in listed)
            for wanted, wrong in ((NO, YES), (YES, NO))
            if any(r["kind"] == kind and r["expected"] == wanted for r in listed)
        },
    }


def _rate(rows: Sequence[Mapping[str, Any]], wrong: str) -> dict[str, Any]:
    decided = [row["verdict"] for row in rows if row["verdict"] in (YES, NO)]
    k, n = decided.count(wrong), len(decided)
    found = proportion(k, n)
    interval = found.interval if isinstance(found, Estimate) else None
    return {
        "k": k,
        "n": n,
        "rate": k / n if n else None,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "undecided": sum(row["verdict"] == UNDECIDED for row in rows),
        "failed": sum(row["verdict"] is None for row in rows),
    }
