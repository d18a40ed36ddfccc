"""Do two judges agree on the same answers? Cohen's kappa a pair, Fleiss' kappa of all, by statsmodels."""

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa, fleiss_kappa

from akm_harbor.errors import NotComparableError
from akm_harbor.memory.answer.result import StudyResult
from akm_harbor.memory.answer.scoring import NO, UNDECIDED, YES

CATEGORIES = (YES, NO, UNDECIDED)
_KEY = ["arm", "budget", "question_id", "repeat"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two judges.

    Attributes:
        a: the one.
        b: the other.
        n: answers both gave a verdict on, undecided included.
        agreed: share of the same verdict.
        kappa: Cohen's; None where chance alone would agree always.
        low: lower end of its 95% interval.
        high: upper end.
        counts: (a's verdict, b's verdict) -> answers.
    """

    a: str
    b: str
    n: int
    agreed: float
    kappa: float | None
    low: float | None
    high: float | None
    counts: dict[tuple[str, str], int]


@dataclass(frozen=True, slots=True)
class Agreement:
    """All judges.

    Attributes:
        raters: judge -> verdicts by category; undecided ones are a category, never dropped.
        pairs: every two of them.
        fleiss: Fleiss' kappa where there are more than two; None otherwise, or where it is undefined.
        n: answers that all of them gave a verdict on.
        left_out: answers that only some judged, or that differ between the results.
    """

    raters: dict[str, dict[str, int]]
    pairs: tuple[Pair, ...]
    fleiss: float | None
    n: int
    left_out: int


def agreement(results: Sequence[StudyResult]) -> Agreement:
    """How far the judges of some results agree; repeated judgements within one are judges of their own.

    Args:
        results: of the same answers: a study and its re-judgements, or one study with judge repeats.

    Raises:
        NotComparableError: no verdicts, fewer than two judges, or no answer in common.
    """
    columns: dict[str, pd.Series] = {}
    for number, result in enumerate(results):
        trials = result.trials[result.trials["verdict"].notna()]
        if trials.empty:
            raise NotComparableError(
                "has no verdicts of yes or no", path=result.path, hint="Re-judge it with `akm-harbor memory judge`."
            )
        for repeat, part in trials.groupby(trials["judge_repeat"].fillna(0)):
            served = ", ".join(sorted(set(part["judge_model_served"].dropna())))
            name = f"{chr(65 + number)}{int(float(str(repeat)))} {served}, prompt {_short(part)}"
            keyed = part.assign(budget=part["budget"].fillna(-1))
            columns[name] = keyed.set_index([*_KEY, "answer"])["verdict"]
    if len(columns) < 2:
        raise NotComparableError("one judge alone agrees with nobody", hint="Name two results, or judge with repeats.")
    whole = pd.DataFrame(columns)
    both = whole.dropna()
    if both.empty:
        raise NotComparableError("the results have no answer in common")
    pairs = tuple(_pair(both, a, b) for a, b in itertools.combinations(columns, 2))
    raters = {name: {c: int((both[name] == c).sum()) for c in CATEGORIES} for name in columns}
    fleiss = _fleiss(both) if len(columns) > 2 else None
    return Agreement(raters, pairs, fleiss, len(both), len(whole) - len(both))


def _short(part: pd.DataFrame) -> str:
    return "+".join(sorted({str(p)[:8] for p in part["judge_prompt_id"].dropna()}))


def _pair(both: pd.DataFrame, a: str, b: str) -> Pair:
    counts = Counter(zip(both[a], both[b], strict=True))
    table = np.array([[counts[x, y] for y in CATEGORIES] for x in CATEGORIES], dtype=float)
    n = int(table.sum())
    agreed = float(np.trace(table)) / n
    if float((table.sum(0) * table.sum(1)).sum()) == n * n:  # both always said the same one thing
        return Pair(a, b, n, agreed, None, None, None, dict(counts))
    used = table.sum(0) + table.sum(1) > 0
    found = cohens_kappa(table[np.ix_(used, used)])
    return Pair(a, b, n, agreed, float(found.kappa), float(found.kappa_low), float(found.kappa_upp), dict(counts))


def _fleiss(both: pd.DataFrame) -> float | None:
    coded = both.apply(lambda column: column.map(CATEGORIES.index)).to_numpy(dtype=int)
    if len(np.unique(coded)) < 2:
        return None
    return float(fleiss_kappa(aggregate_raters(coded, n_cat=len(CATEGORIES))[0]))
