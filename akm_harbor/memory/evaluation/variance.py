"""Where a mean's uncertainty comes from: the questions, the reader's next answer, the judge's next verdict.

Score = question + reader's repeat inside it + judge's repeat inside that (nested analysis of
variance). Needs repeats: what was measured once has no variance, and none is made up.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from akm_harbor.memory.evaluation.accuracy import cells


@dataclass(frozen=True, slots=True)
class Components:
    """One arm's variance at one budget.

    Attributes:
        arm: the arm.
        budget: tokens of context; None: as is.
        questions: questions with a score.
        repeats: reader repeats.
        judge_repeats: judge repeats of each answer.
        question: variance of the questions' true means, None where it cannot be told from the reader's.
        reader: variance of the reader's answers to one question; None with one repeat.
        judge: variance of the judge's verdicts on one answer; None without repeats.
        changed_answers: share of questions whose score changes between reader repeats.
        changed_verdicts: share of answers whose score changes between judge repeats.
    """

    arm: str
    budget: int | None
    questions: int
    repeats: int
    judge_repeats: int
    question: float | None
    reader: float | None
    judge: float | None
    changed_answers: float | None
    changed_verdicts: float | None

    @property
    def rerun(self) -> float | None:
        """Standard deviation of the overall mean if everything were run once more on the same questions."""
        known = [part for part in (self.reader, self.judge) if part is not None]
        return float(np.sqrt(sum(known) / self.questions)) if known and self.questions else None


def components(rows: pd.DataFrame) -> Iterator[Components]:
    """The components of every arm and budget."""
    for arm, budget, part in cells(rows):
        scored = part[part["score_official"].notna()]
        table = pd.DataFrame(
            {
                "question": scored["question_id"],
                "repeat": scored["repeat"],
                "score": scored["score_official"].astype(float),
            }
        )
        answers = table.groupby(["question", "repeat"])["score"].agg(["mean", "var", "count", "min", "max"])
        yield _components(arm, budget, answers)


def _components(arm: str, budget: int | None, answers: pd.DataFrame) -> Components:
    judge_repeats = int(answers["count"].max()) if len(answers) else 0
    judged_again = answers[answers["count"] > 1]
    judge = float(judged_again["var"].mean()) if len(judged_again) else None
    changed_verdicts = float((judged_again["max"] > judged_again["min"]).mean()) if len(judged_again) else None
    per = answers["mean"].groupby(level="question").agg(["mean", "var", "count", "min", "max"])
    repeats = int(per["count"].max()) if len(per) else 0
    read_again = per[per["count"] > 1]
    reader = question = changed_answers = None
    if len(read_again):
        noise = (judge or 0.0) / judge_repeats
        reader = max(float(read_again["var"].mean()) - noise, 0.0)
        changed_answers = float((read_again["max"] > read_again["min"]).mean())
        if len(read_again) > 1:
            question = max(
                float(read_again["mean"].var()) - float((read_again["var"] / read_again["count"]).mean()), 0.0
            )
    return Components(
        arm, budget, len(per), repeats, judge_repeats, question, reader, judge, changed_answers, changed_verdicts
    )
