"""Several tests at once."""

from collections.abc import Sequence
from typing import Literal

from statsmodels.stats.multitest import multipletests

Correction = Literal["holm", "fdr_bh", "bonferroni", "fdr_by", "simes-hochberg"]


def adjusted(p_values: Sequence[float], method: Correction = "holm") -> tuple[float, ...]:
    """Adjusted p values, in the given order.

    Holm for a few planned contrasts (family-wise error); Benjamini-Hochberg for screens over
    tasks or metrics (false discovery rate).

    Raises:
        ValueError: a number that is not a p value.
    """
    if any(not 0 <= p <= 1 for p in p_values):
        raise ValueError("p values must lie between 0 and 1")
    if not p_values:
        return ()
    return tuple(float(p) for p in multipletests(list(p_values), method=method)[1])
