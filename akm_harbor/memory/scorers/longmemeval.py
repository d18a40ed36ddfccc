"""LongMemEval's judge protocol and its two denominators.

Source: xiaowu0162/LongMemEval, src/evaluation/evaluate_qa.py and print_qa_metrics.py at
9e0b455f. The judge's prompts are upstream's and are not copied: `upstream` loads them from the
user's own pinned copy.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from akm_harbor.memory.datasets.longmemeval import ABSTENTION_MARK, TYPES

SCORER_ID = "longmemeval-judge/9e0b455f"
JUDGE_MODELS: Mapping[str, tuple[str, str]] = {
    "gpt-4o": ("gpt-4o-2024-08-06", "openai"),
    "gpt-4o-mini": ("gpt-4o-mini-2024-07-18", "openai"),
    "llama-3.1-70b-instruct": ("meta-llama/Meta-Llama-3.1-70B-Instruct", "local"),
}
JUDGE_REQUEST: Mapping[str, int] = {"n": 1, "temperature": 0, "max_tokens": 10}
DEFAULT, TEMPORAL, KNOWLEDGE_UPDATE, PREFERENCE, ABSTENTION = 1, 2, 3, 4, 5
_PROMPTS = {
    "single-session-user": DEFAULT,
    "single-session-assistant": DEFAULT,
    "multi-session": DEFAULT,
    "temporal-reasoning": TEMPORAL,
    "knowledge-update": KNOWLEDGE_UPDATE,
    "single-session-preference": PREFERENCE,
}
ANSWER_LABELS: Mapping[int, str] = {
    DEFAULT: "Correct Answer",
    TEMPORAL: "Correct Answer",
    KNOWLEDGE_UPDATE: "Correct Answer",
    PREFERENCE: "Rubric",
    ABSTENTION: "Explanation",
}
RUN_DENOMINATOR = (
    "run_retrieval: without abstention, without questions that have no user-side evidence (cleaned s: 419)"
)
PRINT_DENOMINATOR = "print_retrieval_metrics: without abstention only (cleaned s: 470)"


def prompt_index(question_type: str, *, abstention: bool) -> int:
    """Which of upstream's five prompts judges a question: abstention first, then the type.

    Raises:
        NotImplementedError: a type upstream has no prompt for, as upstream does.
    """
    if abstention:
        return ABSTENTION
    if question_type not in _PROMPTS:
        raise NotImplementedError(f"LongMemEval has no judge prompt for {question_type!r}")
    return _PROMPTS[question_type]


def is_abstention(question_id: str) -> bool:
    """Upstream's rule: the id says so, whatever the type."""
    return ABSTENTION_MARK in question_id


def label(reply: str) -> bool:
    """Upstream's verdict: "yes" anywhere in the lower-cased reply ("eyes" is a yes, "" is a no)."""
    return "yes" in reply.strip().lower()


@dataclass(frozen=True, slots=True)
class Accuracy:
    """LongMemEval accuracies, as print_qa_metrics has them.

    Attributes:
        by_type: mean and count a type; a type without rows has no mean.
        overall: mean over all rows judged.
        task_averaged: unweighted mean over the six types; None while one is empty.
        abstention: mean over the abstention questions, which are also inside their types.
        n: rows judged; upstream divides by these, not by the questions asked.
    """

    by_type: dict[str, tuple[float | None, int]]
    overall: float
    task_averaged: float | None
    abstention: float | None
    n: int


def accuracy(rows: Iterable[tuple[str, str, bool]]) -> Accuracy:
    """Accuracies of (question_id, question_type, verdict) rows.

    Raises:
        ValueError: no rows, or a type that is not one of the six.
    """
    by: dict[str, list[bool]] = {name: [] for name in TYPES}
    abstained: list[bool] = []
    for question_id, question_type, verdict in rows:
        if question_type not in by:
            raise ValueError(f"{question_id}: LongMemEval has no type {question_type!r}")
        by[question_type].append(verdict)
        if is_abstention(question_id):
            abstained.append(verdict)
    everything = [verdict for verdicts in by.values() for verdict in verdicts]
    if not everything:
        raise ValueError("no verdicts to average")
    means = {name: _mean(verdicts) for name, verdicts in by.items()}
    full = [mean for mean in means.values() if mean is not None]
    return Accuracy(
        by_type={name: (means[name], len(by[name])) for name in TYPES},
        overall=math.fsum(everything) / len(everything),
        task_averaged=math.fsum(full) / len(full) if len(full) == len(TYPES) else None,
        abstention=_mean(abstained),
        n=len(everything),
    )


def _mean(verdicts: Sequence[bool]) -> float | None:
    return sum(verdicts) / len(verdicts) if verdicts else None
