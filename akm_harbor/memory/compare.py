"""The release gate: two probes, question by question.

The difference is paired by question and its interval clustered by history, because the questions
of one LoCoMo or BEAM conversation rise and fall together. Two more things are checked that a mean
hides: questions for which nothing is found any more, and rankings that depend on how the
documents happen to be named.
"""

from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from akm_harbor.errors import NotComparableError, UsageError
from akm_harbor.memory.clusters import clustered_mean
from akm_harbor.memory.label import differences
from akm_harbor.memory.results import AT_K, METRICS, Result
from akm_harbor.stats.attempts import TIED
from akm_harbor.stats.results import NotEstimable
from akm_harbor.stats.results import Result as Estimation

DIFFERENCE = "mean difference over questions of histories like these"
BETTER, WORSE, LEVEL, EQUAL = "better", "worse", "no difference shown", "identical"


@dataclass(frozen=True, slots=True)
class Gate:
    """What is let through.

    Attributes:
        metric: the metric compared.
        k: its cut-off; None: the context's topk.
        max_loss: how much lower B's mean may be on exactly these questions.
        max_zero_hit_rise: how much higher B's share of questions without a hit may be.
        max_name_dependent: share of B's questions whose metric may change with the names.
        level: coverage of the interval.
    """

    metric: str = "recall_all"
    k: int | None = None
    max_loss: float = 0.01
    max_zero_hit_rise: float = 0.0
    max_name_dependent: float = 0.0
    level: float = 0.95


@dataclass(frozen=True, slots=True)
class Comparison:
    """One arm of A against one arm of B.

    Attributes:
        granularity: where.
        arm_a: the arm in A.
        arm_b: the arm in B.
        metric: metric with its cut-off.
        n: questions compared.
        histories: histories they belong to.
        mean_a: A's mean.
        mean_b: B's mean.
        difference: B minus A, with its interval.
        changed: questions whose metric differs.
        only_in_one: questions that one side lacks.
        zero_hit_a: A's share of questions without a hit.
        zero_hit_b: B's.
        name_dependent_a: share of A's questions whose metric changes with the names; None: one repeat.
        name_dependent_b: B's.
        verdict: `better`, `worse`, `no difference shown` or `identical`.
        failures: why the gate does not let B through; empty: it does.
    """

    granularity: str
    arm_a: str
    arm_b: str
    metric: str
    n: int
    histories: int
    mean_a: float
    mean_b: float
    difference: Estimation
    changed: int
    only_in_one: int
    zero_hit_a: float
    zero_hit_b: float
    name_dependent_a: float | None
    name_dependent_b: float | None
    verdict: str
    failures: tuple[str, ...] = field(default=())


def compare(a: Result, b: Result, gate: Gate) -> list[Comparison]:
    """Compare every arm that both results have; two results of one arm each are compared as they are.

    Raises:
        UsageError: a metric or cut-off that the results do not hold.
        NotComparableError: no common ground: other data, other protocol, failed rows, no shared arm.
    """
    if gate.metric not in METRICS:
        raise UsageError(f"no metric {gate.metric!r}", hint=f"One of: {', '.join(METRICS)}.")
    for result in (a, b):
        failed = result.trials[result.trials["status"] != "ok"]
        if len(failed):
            kinds = ", ".join(sorted(set(failed["error_class"].dropna().astype(str))))
            raise NotComparableError(
                f"{len(failed)} of {len(result.trials)} rows failed ({kinds})",
                path=result.path,
                hint="A failed query is no measurement: mend the cause and probe again.",
            )
    pairs = [(g, pair) for g in dict.fromkeys(a.trials["granularity"]) for pair in _pairs(a, b, g)]
    # An arm without a ranking (the whole history) has no recall in either result: nothing to hold side by side.
    ranked = [(g, (x, y)) for g, (x, y) in pairs if _has(a, g, x, gate.metric) or _has(b, g, y, gate.metric)]
    found = [_compare(a, b, granularity, pair, gate) for granularity, pair in ranked or pairs]
    if not found:
        raise NotComparableError(
            "the two results share no arm and granularity", hint="Probe the same arms, or one arm in each result."
        )
    return found


def _pairs(a: Result, b: Result, granularity: str) -> list[tuple[str, str]]:
    arms = [list(dict.fromkeys(r.trials[r.trials["granularity"] == granularity]["arm"])) for r in (a, b)]
    common = [arm for arm in arms[0] if arm in arms[1]]
    if common:
        return [(arm, arm) for arm in common]
    return [(arms[0][0], arms[1][0])] if len(arms[0]) == len(arms[1]) == 1 else []


def _has(result: Result, granularity: str, arm: str, metric: str) -> bool:
    rows = result.trials[(result.trials["granularity"] == granularity) & (result.trials["arm"] == arm)]
    return bool(rows[metric].notna().any())


def _compare(a: Result, b: Result, granularity: str, pair: tuple[str, str], gate: Gate) -> Comparison:
    _check_protocol(a, b, granularity)
    left, right = (_values(r, granularity, arm, gate) for r, arm in zip((a, b), pair, strict=True))
    both = left.merge(right, left_index=True, right_index=True, suffixes=("_a", "_b"))
    usable = both.dropna(subset=["value_a", "value_b"])
    if usable.empty:
        raise NotComparableError(f"{pair[0]} and {pair[1]} share no question with {gate.metric} at {granularity}")
    delta = (usable["value_b"] - usable["value_a"]).to_numpy(dtype=float)
    clusters = usable["instance_id_a"].astype(str).tolist()
    difference = clustered_mean(delta, clusters, gate.level, estimand=DIFFERENCE)
    comparison = Comparison(
        granularity=granularity,
        arm_a=pair[0],
        arm_b=pair[1],
        metric=f"{gate.metric}@{gate.k}" if gate.k else gate.metric,
        n=len(usable),
        histories=len(set(clusters)),
        mean_a=float(usable["value_a"].mean()),
        mean_b=float(usable["value_b"].mean()),
        difference=difference,
        changed=int((np.abs(delta) > TIED).sum()),
        only_in_one=len(left) + len(right) - 2 * len(both),
        zero_hit_a=float(both["zero_hit_a"].mean()),
        zero_hit_b=float(both["zero_hit_b"].mean()),
        name_dependent_a=_name_dependent(a, granularity, pair[0], gate),
        name_dependent_b=_name_dependent(b, granularity, pair[1], gate),
        verdict=_verdict(difference, delta),
    )
    failures = _failures(comparison, float(delta.mean()), gate)
    return Comparison(
        **{name: getattr(comparison, name) for name in Comparison.__slots__ if name != "failures"}, failures=failures
    )


def _check_protocol(a: Result, b: Result, granularity: str) -> None:
    left, right = a.protocol(granularity), b.protocol(granularity)
    if left.get("id") == right.get("id"):
        return
    ignored = {"id"}
    names = [d for d in differences(left, right) if d.partition(":")[0] not in ignored] or [
        "the protocol digests differ"
    ]
    raise NotComparableError(
        f"the results were measured differently at {granularity}: {'; '.join(names)}",
        path=b.path,
        hint="Probe again with the same data and settings; only the arm may differ.",
    )


def _values(result: Result, granularity: str, arm: str, gate: Gate, repeat: int | None = None) -> pd.DataFrame:
    """One row a question: value (mean over repeats), zero_hit, instance_id."""
    trials = result.trials
    rows = trials[(trials["granularity"] == granularity) & (trials["arm"] == arm)]
    if repeat is not None:
        rows = rows[rows["repeat"] == repeat]
    rows = rows[["question_id", "instance_id", "repeat", "zero_hit", gate.metric]].rename(
        columns={gate.metric: "value"}
    )
    if gate.k is not None:
        if gate.metric not in AT_K:
            raise UsageError(f"{gate.metric} has no cut-off", hint=f"These have: {', '.join(AT_K)}.")
        at = result.retrieval
        at = at[(at["granularity"] == granularity) & (at["arm"] == arm) & (at["k"] == gate.k)]
        if at.empty:
            raise UsageError(f"{result.path} holds no metrics at k={gate.k} for {arm}")
        rows = rows.drop(columns="value").merge(
            at[["question_id", "repeat", gate.metric]].rename(columns={gate.metric: "value"}),
            on=["question_id", "repeat"],
        )
    rows = rows.assign(value=rows["value"].astype(float), zero_hit=rows["zero_hit"].astype(float))
    return rows.groupby("question_id").agg({"value": "mean", "zero_hit": "mean", "instance_id": "first"})


def _name_dependent(result: Result, granularity: str, arm: str, gate: Gate) -> float | None:
    """Share of questions whose metric is not the same under other names and another document order."""
    repeats = sorted(set(result.trials[result.trials["arm"] == arm]["repeat"]))
    if len(repeats) < 2:
        return None
    values = pd.concat(
        [_values(result, granularity, arm, gate, repeat)["value"] for repeat in repeats], axis=1
    ).dropna()
    return float((np.ptp(values.to_numpy(dtype=float), axis=1) > TIED).mean()) if len(values) else None


def _verdict(difference: Estimation, delta: np.ndarray) -> str:
    if np.abs(delta).max() <= TIED:
        return EQUAL
    if isinstance(difference, NotEstimable) or difference.interval is None:
        return LEVEL
    if difference.interval.high < 0:
        return WORSE
    return BETTER if difference.interval.low > 0 else LEVEL


def _failures(found: Comparison, mean: float, gate: Gate) -> tuple[str, ...]:
    failures = []
    if found.verdict == WORSE:
        failures.append(f"{found.metric} is lower by {-mean:.4f}, and the whole interval is below 0")
    elif -mean > gate.max_loss + TIED:
        failures.append(f"{found.metric} is lower by {-mean:.4f}; {gate.max_loss:.4f} is allowed")
    rise = found.zero_hit_b - found.zero_hit_a
    if rise > gate.max_zero_hit_rise + TIED:
        failures.append(f"questions without a hit rise by {rise:.4f}; {gate.max_zero_hit_rise:.4f} is allowed")
    depends = found.name_dependent_b
    if depends is not None and depends > gate.max_name_dependent + TIED:
        failures.append(
            f"{depends:.1%} of the questions score otherwise under other names; {gate.max_name_dependent:.1%} allowed"
        )
    return tuple(failures)
