"""What a ranking is worth against one question's evidence."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from akm_harbor.memory.datasets import locomo as locomo_data
from akm_harbor.memory.datasets import longmemeval as longmemeval_data
from akm_harbor.memory.datasets.model import Question
from akm_harbor.memory.documents import SESSION, Gold, History, Piece
from akm_harbor.memory.scorers import locomo, ranking


@dataclass(frozen=True, slots=True)
class AtK:
    """Metrics of one ranking at one cut-off; None where a metric does not apply.

    Attributes:
        k: the cut-off.
        recall_any: any evidence within it.
        recall_all: all evidence within it.
        recall_frac: share of the evidence within it.
        recall_frac_audited: the same with mended evidence.
        ndcg_lme: LongMemEval's nDCG.
        ndcg_std: the usual nDCG.
        upstream_recall_any: LongMemEval's, its rule for empty gold kept.
        upstream_recall_all: likewise.
        upstream_ndcg: likewise.
        upstream_recall_frac: LoCoMo's, its rule for no evidence kept.
    """

    k: int
    recall_any: float | None = None
    recall_all: float | None = None
    recall_frac: float | None = None
    recall_frac_audited: float | None = None
    ndcg_lme: float | None = None
    ndcg_std: float | None = None
    upstream_recall_any: float | None = None
    upstream_recall_all: float | None = None
    upstream_ndcg: float | None = None
    upstream_recall_frac: float | None = None


class Judged:
    """A ranking of one history's pieces, with the evidence it is measured against."""

    def __init__(self, history: History, question: Question, gold: Gold, ranked: Sequence[Piece]) -> None:
        self._history = history
        self._question = question
        self._gold = gold
        self._covered = [set(history.covers(piece)) & gold.units for piece in ranked]
        self._covered_repaired = [set(history.covers(piece)) & gold.repaired for piece in ranked]
        self._relevance = [1.0 if units else 0.0 for units in self._covered]
        self._relevant = sum(bool(set(history.covers(piece)) & gold.units) for piece in history.pieces)
        self._ranked = ranked

    @property
    def reciprocal_rank(self) -> float | None:
        """1 / rank of the first relevant hit; None without usable evidence."""
        return ranking.reciprocal_rank(self._relevance) if self._gold.status == "ok" else None

    def at(self, k: int) -> AtK:
        """Metrics at a cut-off."""
        values: dict[str, float] = {**self._own(k), **self._upstream(k)}
        return AtK(k, **values)

    def _own(self, k: int) -> Mapping[str, float]:
        values: dict[str, float] = {}
        if self._gold.repaired and not self._question.audit_flag:
            values["recall_frac_audited"] = _share(self._covered_repaired[:k], len(self._gold.repaired))
        if self._gold.status != "ok":
            return values
        share = _share(self._covered[:k], len(self._gold.units))
        return {
            **values,
            "recall_any": float(share > 0),
            "recall_all": float(share == 1),
            "recall_frac": share,
            "ndcg_lme": ranking.ndcg_lme(self._relevance, self._relevant, k),
            "ndcg_std": ranking.ndcg_std(self._relevance, self._relevant, k),
        }

    def _upstream(self, k: int) -> Mapping[str, float]:
        benchmark = self._history.benchmark
        if benchmark == longmemeval_data.BENCHMARK:
            share = _share(self._covered[:k], len(self._gold.units)) if self._gold.units else None
            return {
                "upstream_recall_any": float(share is not None and share > 0),
                "upstream_recall_all": float(share is None or share == 1),
                "upstream_ndcg": ranking.ndcg_lme(self._relevance, self._relevant, k),
            }
        if benchmark == locomo_data.BENCHMARK and self._ranked[:k]:
            session = self._history.granularity == SESSION
            found = [unit for piece in self._ranked[:k] for unit in ([piece.session] if session else piece.turns)]
            return {"upstream_recall_frac": locomo.recall(self._question.evidence.raw, found)}
        return {}


def _share(covered: Sequence[set[str]], total: int) -> float:
    return len(set().union(*covered)) / total


def evidence_in_context(texts: Sequence[str], context: str) -> float | None:
    """Share of the evidence turns whose text stands in the context, white space aside; None without any."""
    if not texts:
        return None
    flat = " ".join(context.split())
    return math.fsum(" ".join(text.split()) in flat for text in texts) / len(texts)
