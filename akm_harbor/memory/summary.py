"""A probe's result in one table: arms down, metrics across, with how many questions each is about."""

from collections.abc import Sequence

import pandas as pd

from akm_harbor.memory.datasets import longmemeval as longmemeval_data
from akm_harbor.memory.documents import USER_ONLY
from akm_harbor.memory.results import Result
from akm_harbor.memory.scorers.longmemeval import PRINT_DENOMINATOR, RUN_DENOMINATOR

COLUMNS = (
    "recall_any",
    "recall_all",
    "recall_frac",
    "recall_frac_audited",
    "ndcg_std",
    "mrr",
    "evidence_in_ctx",
    "ctx_tokens",
    "zero_hit",
    "tied_topk",
    "search_ms",
)


def summarize(result: Result) -> pd.DataFrame:
    """One row a granularity and arm, in the order they were run.

    Means leave out questions without usable evidence, whose metrics are empty: `n` counts the
    questions with evidence, `asked` all of them. `index_bytes` and `ingest_ms` are means over
    histories.
    """
    trials = result.trials[result.trials["repeat"] == 0]
    rows = []
    for (granularity, arm), group in trials.groupby(["granularity", "arm"], sort=False):
        ok = group[group["status"] == "ok"]
        row: dict[str, object] = {"granularity": granularity, "arm": arm, "asked": len(group)}
        row["n"] = int((ok["gold_status"] == "ok").sum())
        row["failed"] = len(group) - len(ok)
        row |= {name: _mean(ok[name]) for name in COLUMNS}
        histories = ok.drop_duplicates("instance_id")
        row |= {name: _mean(histories[name]) for name in ("ingest_ms", "index_bytes")}
        rows.append(row)
    return pd.DataFrame(rows)


def upstream_means(result: Result, ks: Sequence[int] = (5, 10)) -> pd.DataFrame:
    """LongMemEval's retrieval means under both of upstream's denominators, named; empty for another corpus."""
    trials = result.trials
    wanted = (trials["benchmark"] == longmemeval_data.BENCHMARK) & (trials["corpus"] == USER_ONLY)
    trials = trials[wanted & (trials["repeat"] == 0)]
    if trials.empty or result.retrieval.empty:
        return pd.DataFrame()
    keys = ["arm", "granularity", "repeat", "question_id"]
    # Upstream's run_retrieval leaves a question out when no user turn is marked: in this corpus, an empty gold.
    marked = trials[[*keys, "is_abstention", "gold_status"]]
    joined = result.retrieval.merge(marked, on=keys)
    joined = joined[joined["k"].isin(ks) & ~joined["is_abstention"]]
    parts = []
    for name, rows in ((PRINT_DENOMINATOR, joined), (RUN_DENOMINATOR, joined[joined["gold_status"] == "ok"])):
        means = rows.groupby(["granularity", "arm", "k"], sort=False)[
            ["upstream_recall_any", "upstream_recall_all", "upstream_ndcg"]
        ].mean()
        counts = rows.groupby(["granularity", "arm", "k"], sort=False).size().rename("n")
        parts.append(means.join(counts).reset_index().assign(denominator=name))
    return pd.concat(parts, ignore_index=True)


def markdown(frame: pd.DataFrame, columns: Sequence[str]) -> str:
    """Some columns of a frame as a Markdown table; fractions with three places, counts whole."""
    lines = ["| " + " | ".join(columns) + " |", "|" + "|".join("---" for _ in columns) + "|"]
    lines += [
        "| " + " | ".join(_cell(column, value) for column, value in zip(columns, row, strict=True)) + " |"
        for row in frame[list(columns)].itertuples(index=False)
    ]
    return "\n".join(lines)


_WHOLE = frozenset({"ctx_tokens", "index_bytes", "n", "asked", "failed", "k"})
_TENTHS = frozenset({"ingest_ms", "search_ms"})


def _cell(column: str, value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124  (NaN)
        return "-"
    if isinstance(value, float | int) and not isinstance(value, bool):
        if column in _WHOLE:
            return f"{value:,.0f}"
        return f"{value:.1f}" if column in _TENTHS else f"{value:.3f}"
    return str(value)


def _mean(values: pd.Series) -> float | None:
    kept = values.dropna()
    return float(kept.astype(float).mean()) if len(kept) else None
