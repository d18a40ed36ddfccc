"""Retrieval at k from probes: no model involved, so it stands beside the answers, not among them."""

from collections.abc import Sequence
from dataclasses import dataclass

from akm_harbor.memory.results import Result

MEASURES = ("recall_all", "recall_any", "recall_frac")


@dataclass(frozen=True, slots=True)
class Curve:
    """One arm's recall over k.

    Attributes:
        source: the probe.
        benchmark: whose questions.
        granularity: of the documents.
        arm: the arm.
        n: questions with usable evidence.
        points: (k, recall_all, recall_any, recall_frac), by k.
    """

    source: str
    benchmark: str
    granularity: str
    arm: str
    n: int
    points: tuple[tuple[int, float, float, float], ...]


def curves(probes: Sequence[Result]) -> list[Curve]:
    """The mean recalls of every probe, arm and granularity, over the first repeat."""
    found = []
    for probe in probes:
        rows = probe.retrieval[probe.retrieval["repeat"] == 0]
        benchmark = str(probe.trials["benchmark"].iloc[0])
        for (granularity, arm), part in rows.groupby(["granularity", "arm"], sort=False):
            usable = part.dropna(subset=list(MEASURES))
            means = usable.groupby("k")[list(MEASURES)].mean().sort_index()
            ks = means.index.to_numpy(dtype=int).tolist()
            points = tuple(zip(ks, *(means[m].to_numpy(dtype=float).tolist() for m in MEASURES), strict=True))
            n = int(usable["question_id"].nunique())
            found.append(Curve(probe.path.name, benchmark, str(granularity), str(arm), n, points))
    return found
