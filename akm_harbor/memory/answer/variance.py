"""Take the spread of scores apart: between questions, answers of the reader, and judgements of one answer."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from akm_harbor.stats.means import VarianceComponents, variance_components
from akm_harbor.stats.results import NotEstimable


@dataclass(frozen=True, slots=True)
class Components:
    """Variance components of one arm under one budget: judgements nested in answers, answers in questions.

    Attributes:
        arm: the arm.
        budget: its budget; None: as is.
        questions: questions with a score.
        reader_repeats: answers a question, mean.
        judge_repeats: judgements an answer, mean.
        question: variance of the questions' true means.
        reader: variance of the reader's answers to one question; None: one answer a question.
        judge: variance of judgements of one answer; None: one judgement an answer.
        noise_se: standard error that reader and judge alone give the arm's mean; None: neither is known.
        notes: why something is missing.
    """

    arm: str
    budget: int | None
    questions: int
    reader_repeats: float
    judge_repeats: float
    question: float | None
    reader: float | None
    judge: float | None
    noise_se: float | None
    notes: tuple[str, ...]


def components(trials: pd.DataFrame) -> list[Components]:
    """Components of every arm and budget, in the order they were run."""
    scored = trials[trials["score_official"].notna()]
    found = []
    for (arm, _), part in scored.groupby(["arm", scored["budget"].fillna(-1)], sort=False):
        budget = part["budget"].iloc[0]
        found.append(_split(str(arm), int(budget) if pd.notna(budget) else None, part))
    return found


def _split(arm: str, budget: int | None, part: pd.DataFrame) -> Components:
    scores = part["score_official"].astype(float)
    answers = scores.groupby([part["question_id"], part["repeat"]], sort=False)
    by_answer = [np.asarray(group, dtype=np.float64) for _, group in answers]
    means = answers.mean()
    by_question = [np.asarray(group, dtype=np.float64) for _, group in means.groupby(level=0, sort=False)]
    judgements, per_question = len(scores) / len(by_answer), len(by_answer) / len(by_question)
    notes: list[str] = []
    judge = _within(by_answer, "judge", notes) if judgements > 1 else None
    question = reader = None
    if per_question > 1:
        split = variance_components(by_question)
        if isinstance(split, VarianceComponents):
            question = split.between
            # The means of an answer's judgements still carry the judge's own spread.
            reader = max(0.0, split.within - (judge or 0.0) / judgements)
        else:
            notes.append(f"reader: {split.detail}")
    known = [v / n for v, n in ((reader, per_question), (judge, per_question * judgements)) if v is not None]
    noise = math.sqrt(sum(known) / len(by_question)) if known else None
    if judgements == 1:
        notes.append("judge: one judgement an answer" if part["verdict"].notna().any() else "judge: none")
    if per_question == 1:
        notes.append("reader: one answer a question")
    return Components(
        arm, budget, len(by_question), per_question, judgements, question, reader, judge, noise, tuple(notes)
    )


def _within(groups: list[NDArray[np.float64]], what: str, notes: list[str]) -> float | None:
    split = variance_components(groups)
    if isinstance(split, NotEstimable):
        notes.append(f"{what}: {split.detail}")
        return 0.0 if split.reason == "all-tied" else None
    return split.within
