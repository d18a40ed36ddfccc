"""Cost, tokens and time of two arms, with how much of each is known."""

import numpy as np
import pandas as pd

from akm_harbor.ab.result import UsageRow
from akm_harbor.stats.ratios import geometric_ratio, ratio_of_means

USAGE = (
    ("cost_usd", "Cost", "US$"),
    ("n_input_tokens", "Input tokens (cache included)", "tokens"),
    ("n_cache_tokens", "of which read from a cache", "tokens"),
    ("n_output_tokens", "Output tokens", "tokens"),
    ("agent_seconds", "Agent time", "s"),
    ("n_steps", "Agent steps", "steps"),
    ("n_tool_calls", "Tool calls", "calls"),
)
PHASES = (
    ("environment_seconds", "Environment set-up", "s"),
    ("setup_seconds", "Agent set-up", "s"),
    ("agent_seconds", "Agent", "s"),
    ("verifier_seconds", "Verifier", "s"),
)


def usage_rows(
    columns: tuple[tuple[str, str, str], ...], a: pd.DataFrame, b: pd.DataFrame, level: float
) -> tuple[UsageRow, ...]:
    """One row a quantity that at least one attempt reports.

    Means are over tasks that report it in both arms, each task with the same weight; nothing
    missing is taken for zero.
    """
    return tuple(_row(c, a, b, level) for c in columns if a[c[0]].notna().any() or b[c[0]].notna().any())


def _row(column: tuple[str, str, str], a: pd.DataFrame, b: pd.DataFrame, level: float) -> UsageRow:
    name, title, unit = column
    means = [arm[["task", name]].dropna().groupby("task")[name].mean() for arm in (a, b)]
    shared = means[0].index.intersection(means[1].index)
    left, right = (np.asarray(m.reindex(shared), dtype=np.float64) for m in means)
    known = [int(arm[name].notna().sum()) for arm in (a, b)]
    gaps = [f"{total - n} of {total}" for n, total in zip(known, (len(a), len(b)), strict=True)]
    note = "" if known == [len(a), len(b)] else f"Unknown for {gaps[0]} and {gaps[1]} attempts."
    return UsageRow(
        name,
        title,
        unit,
        float(left.mean()) if left.size else None,
        float(right.mean()) if right.size else None,
        known[0],
        known[1],
        len(a),
        len(b),
        ratio_of_means(left, right, level),
        geometric_ratio(left, right, level),
        int(left.size),
        note,
    )
