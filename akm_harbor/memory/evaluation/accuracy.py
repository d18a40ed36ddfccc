"""Accuracy of every arm and budget, by type, and the paired differences from one of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from akm_harbor.errors import UsageError
from akm_harbor.memory.clusters import clustered_mean
from akm_harbor.stats.multiplicity import adjusted
from akm_harbor.stats.results import Estimate, Result

FLOOR, CEILING, FULL = "none", "oracle", "full"
ALL = "all"
_DIFFERENCE = "mean paired difference over questions of histories like these"


@dataclass(frozen=True, slots=True)
class Score:
    """One arm at one budget on one group of questions.

    Attributes:
        arm: the arm.
        budget: tokens of context; None: as is.
        group: `all`, or a question type.
        value: mean score, with its interval over histories.
        n: questions with a score.
        asked: questions asked.
        undecided: rows without a verdict; `low` and `high` count them as wrong and as right.
        failed: rows without an answer or a score for another reason; also in the bounds.
        low: mean with every row that has no score counted as 0.
        high: the same, counted as 1.
        ctx_tokens: mean tokens of context.
        in_tok: mean prompt tokens as the reader's provider counted them.
        usd: mean price of a question, reader only; None where a price is unknown.
        recall: mean share of the evidence in the context.
        audited: mean without questions an audit takes out; None where no audit is known.
    """

    arm: str
    budget: int | None
    group: str
    value: Result
    n: int
    asked: int
    undecided: int
    failed: int
    low: float | None
    high: float | None
    ctx_tokens: float | None
    in_tok: float | None
    usd: float | None
    recall: float | None
    audited: float | None


@dataclass(frozen=True, slots=True)
class Difference:
    """An arm minus the baseline on the questions both have a score for, at the same budget.

    Attributes:
        arm: the arm.
        baseline: what it is compared with.
        budget: of both.
        group: `all`, or a question type.
        value: mean paired difference, clustered by history.
        n: questions paired.
        better: questions on which the arm scores higher.
        worse: lower.
        p_holm: p value of `group` all, adjusted for all arms and budgets of the panel (Holm); None for floor
            and ceiling, which are nobody's candidates.
    """

    arm: str
    baseline: str
    budget: int | None
    group: str
    value: Result
    n: int
    better: int
    worse: int
    p_holm: float | None = None


def per_question(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a question: mean score over reader and judge repeats, and the question's history."""
    scored = rows[rows["score_official"].notna()]
    values = scored.assign(score=scored["score_official"].astype(float))
    return values.groupby("question_id", sort=True).agg({"score": "mean", "instance_id": "first", "qtype": "first"})


def cells(rows: pd.DataFrame) -> Iterator[tuple[str, int | None, pd.DataFrame]]:
    """(arm, budget, rows) in the order they were run."""
    for (arm, _), part in rows.groupby(["arm", rows["budget"].fillna(-1)], sort=False):
        budget = part["budget"].iloc[0]
        yield str(arm), None if pd.isna(budget) else int(budget), part


def scores(rows: pd.DataFrame, level: float) -> list[Score]:
    """Every arm and budget, over all questions and by type."""
    return [
        _score(arm, budget, group, members, level)
        for arm, budget, part in cells(rows)
        for group, members in _groups(part)
    ]


def _groups(part: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield ALL, part
    for qtype in sorted(part["qtype"].dropna().unique()):
        yield str(qtype), part[part["qtype"] == qtype]


def _score(arm: str, budget: int | None, group: str, rows: pd.DataFrame, level: float) -> Score:
    questions = per_question(rows)
    values = rows["score_official"].dropna().astype(float)
    undecided = int((rows["status"] == "undecided").sum())
    missing = len(rows) - len(values)
    once = rows[rows["judge_repeat"].isna() | (rows["judge_repeat"] == 0)]
    answered = once[once["answer"].notna()]
    priced = answered["reader_usd"].notna().all() and len(answered) > 0
    audited = None
    if rows["audit_flag"].notna().any():
        kept = per_question(rows[rows["audit_flag"].isna()])
        audited = float(kept["score"].mean()) if len(kept) else None
    return Score(
        arm=arm,
        budget=budget,
        group=group,
        value=clustered_mean(questions["score"].to_numpy(), questions["instance_id"].tolist(), level),
        n=len(questions),
        asked=int(rows["question_id"].nunique()),
        undecided=undecided,
        failed=missing - undecided,
        low=float(values.sum()) / len(rows) if len(rows) else None,
        high=(float(values.sum()) + missing) / len(rows) if len(rows) else None,
        ctx_tokens=_mean(once["ctx_tokens"]),
        in_tok=_mean(answered["in_tok"]),
        usd=_mean(answered["reader_usd"]) if priced else None,
        recall=_mean(once["evidence_in_ctx"]),
        audited=audited,
    )


def _mean(column: pd.Series) -> float | None:
    known = column.dropna().astype(float)
    return float(known.mean()) if len(known) else None


def choose_baseline(arms: Sequence[str], wanted: str) -> str:
    """The arm the others are compared with: the wanted one, else the first that is neither floor nor ceiling.

    Raises:
        UsageError: the wanted arm is not there.
    """
    if wanted:
        if wanted not in arms:
            raise UsageError(f"no arm {wanted!r}", hint=f"There are {', '.join(arms)}.")
        return wanted
    for name in ("bm25", FULL):
        if name in arms:
            return name
    return next((arm for arm in arms if arm not in (FLOOR, CEILING)), arms[0])


def differences(rows: pd.DataFrame, baseline: str, level: float) -> list[Difference]:
    """Every other arm minus the baseline, question by question; Holm over the overall contrasts of candidates."""
    tables = {(arm, budget): per_question(part) for arm, budget, part in cells(rows)}
    found: list[Difference] = []
    for (arm, budget), table in tables.items():
        other = tables.get((baseline, budget))
        if arm == baseline or other is None:
            continue
        both = table.join(other[["score"]].rename(columns={"score": "score_baseline"}), how="inner")
        delta = both["score"] - both["score_baseline"]
        for group in (ALL, *sorted(both["qtype"].dropna().unique())):
            mine = both["score"].notna() if group == ALL else both["qtype"] == group
            part, histories = delta[mine], both.loc[mine, "instance_id"].tolist()
            value = clustered_mean(part.to_numpy(), histories, level, estimand=_DIFFERENCE)
            better, worse = int((part > 0).sum()), int((part < 0).sum())
            found.append(Difference(arm, baseline, budget, str(group), value, len(part), better, worse))
    return _with_holm(found)


def _with_holm(found: list[Difference]) -> list[Difference]:
    tested = [
        (i, d.value.p)
        for i, d in enumerate(found)
        if d.group == ALL and d.arm not in (FLOOR, CEILING) and isinstance(d.value, Estimate) and d.value.p is not None
    ]
    corrected = adjusted([p for _, p in tested])
    for (i, _), p in zip(tested, corrected, strict=True):
        found[i] = replace(found[i], p_holm=p)
    return found
