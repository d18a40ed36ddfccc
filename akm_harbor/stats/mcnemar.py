"""McNemar's test: one binary outcome a task in each arm. For k = 1 only; it wastes what more attempts say."""

from collections.abc import Sequence
from typing import Literal

from statsmodels.stats.contingency_tables import mcnemar as _mcnemar

from akm_harbor.stats.results import Estimate, NotEstimable, Result, clamp_p

Variant = Literal["exact", "corrected", "uncorrected"]
ESTIMAND = "difference of success rates, one attempt a task"


def mcnemar(table: Sequence[Sequence[int]], variant: Variant = "exact") -> Result:
    """Test on the discordant tasks of a 2 x 2 table.

    Args:
        table: tasks by (baseline solved, baseline failed) x (treatment solved, treatment failed).
        variant: exact binomial, or chi-square with or without continuity correction.

    Returns:
        The difference of success rates, treatment minus baseline, with the test's p.
    """
    (both, lost), (gained, neither) = table
    n = both + lost + gained + neither
    method = f"McNemar, {variant}"
    if lost + gained == 0:
        detail = "The arms agree on every task."
        return NotEstimable("all-tied", detail, method, ESTIMAND, n, 0.0 if n else None)
    found = _mcnemar([[both, lost], [gained, neither]], exact=variant == "exact", correction=variant == "corrected")
    notes = ("With five discordant tasks or fewer no outcome reaches 0.05.",) if lost + gained <= 5 else ()
    value = (gained - lost) / n
    return Estimate(value, method, ESTIMAND, n, statistic=float(found.statistic), p=clamp_p(found.pvalue), notes=notes)
