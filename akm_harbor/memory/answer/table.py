"""The published table: arms down, groups of questions, how many rows each mean is about. Pure: rows in, rows out."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from akm_harbor.memory.answer.protocol_label import protocol_differences
from akm_harbor.memory.columns import SCORES
from akm_harbor.memory.datasets import locomo as locomo_data
from akm_harbor.memory.datasets import longmemeval as longmemeval_data
from akm_harbor.memory.scorers import locomo
from akm_harbor.stats.means import standard_errors
from akm_harbor.stats.results import NotEstimable

__all__ = ["ALL", "UNDECIDED_STATUS", "protocol_differences", "score_rows", "score_table"]

ALL, WITHOUT_ADVERSARIAL, AUDITED, ABSTENTION, TASK_AVERAGED = (
    "all",
    "without-adversarial",
    "audited",
    "abstention",
    "task-averaged",
)
UNDECIDED_STATUS = "undecided"


def score_table(trials: pd.DataFrame) -> pa.Table:
    """The table of a study's rows, as Arrow."""
    return SCORES.from_rows(score_rows(trials))


def score_rows(trials: pd.DataFrame) -> list[dict[str, Any]]:
    """One row an arm, budget and group, in the order the arms were run."""
    rows = []
    budgets = trials["budget"].fillna(-1)
    for (arm, _), part in trials.groupby(["arm", budgets], sort=False):
        budget = part["budget"].iloc[0]
        named = {"arm": arm, "budget": int(budget) if pd.notna(budget) else None}
        for group, members in _groups(part):
            rows.append({**named, "group": group, **_row(members, average_types=group == TASK_AVERAGED)})
    return rows


def _groups(part: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    yield ALL, part
    benchmark = part["benchmark"].iloc[0]
    if benchmark == locomo_data.BENCHMARK:
        yield WITHOUT_ADVERSARIAL, part[part["qtype_raw"] != str(locomo.ADVERSARIAL)]
    if part["audit_flag"].notna().any():
        yield AUDITED, part[part["audit_flag"].isna()]
    if benchmark == longmemeval_data.BENCHMARK:
        yield TASK_AVERAGED, part
    abstention = part[part["is_abstention"].fillna(value=False).astype(bool)]
    if len(abstention):
        yield ABSTENTION, abstention
    for qtype in sorted(part["qtype"].dropna().unique()):
        yield f"type:{qtype}", part[part["qtype"] == qtype]


def _row(rows: pd.DataFrame, *, average_types: bool) -> dict[str, Any]:
    scored = rows[rows["score_official"].notna()]
    values = scored["score_official"].astype(float)
    undecided = int((rows["status"] == UNDECIDED_STATUS).sum())
    mean, mean_aux = _mean(values), _mean(rows["score_aux"].dropna().astype(float))
    if average_types:
        mean, mean_aux = _over_types(rows, "score_official"), _over_types(rows, "score_aux")
    once = rows[rows["judge_repeat"].isna() | (rows["judge_repeat"] == 0)]
    answered = once[once["answer"].notna()]
    return {
        "n": len(values),
        "asked": len(rows),
        "questions": int(rows["question_id"].nunique()),
        "histories": int(rows["instance_id"].nunique()),
        "failed": len(rows) - len(values) - undecided,
        "undecided": undecided,
        "mean": mean,
        "mean_aux": mean_aux,
        "low": None if average_types or not len(rows) else math.fsum(values) / len(rows),
        "high": None if average_types or not len(rows) else (math.fsum(values) + len(rows) - len(values)) / len(rows),
        "se": None if average_types else _se(values, scored["instance_id"]),
        "ctx_tokens": _mean(once["ctx_tokens"].dropna().astype(float)),
        "in_tok": _mean(answered["in_tok"].dropna().astype(float)),
        "out_tok": _mean(answered["out_tok"].dropna().astype(float)),
        "usd_per_question": _mean(answered["usd"].astype(float)) if answered["usd"].notna().all() else None,
        "protocol_id": rows["protocol_id"].iloc[0] if len(rows) else None,
    }


def _over_types(rows: pd.DataFrame, column: str) -> float | None:
    """LongMemEval's unweighted mean over its six types; None while one of them has no score."""
    means = [_mean(rows[rows["qtype"] == name][column].dropna().astype(float)) for name in longmemeval_data.TYPES]
    full = [mean for mean in means if mean is not None]
    return math.fsum(full) / len(full) if len(full) == len(longmemeval_data.TYPES) else None


def _mean(values: Sequence[float] | pd.Series) -> float | None:
    return math.fsum(values) / len(values) if len(values) else None


def _se(values: pd.Series, histories: pd.Series) -> float | None:
    groups = [group.to_numpy(dtype=float) for _, group in values.groupby(histories, sort=False)]
    errors = standard_errors(groups)
    return None if isinstance(errors, NotEstimable) else errors.clustered_corrected
