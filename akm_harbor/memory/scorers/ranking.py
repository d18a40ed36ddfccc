"""Retrieval metrics on relevance vectors: LongMemEval's formulas and the textbook's, both named.

Source of the former: xiaowu0162/LongMemEval, src/retrieval/eval_utils.py at 9e0b455f. Its nDCG
does not discount rank 2, and its recall_all of an empty gold is 1.
"""

import math
from collections.abc import Collection, Sequence

LME_SCORER_ID = "longmemeval-retrieval/9e0b455f"


def dcg_lme(relevances: Sequence[float]) -> float:
    """LongMemEval's gain: rel_1 + sum of rel_i / log2(i) for i >= 2."""
    if not relevances:
        return 0.0
    return relevances[0] + math.fsum(rel / math.log2(i) for i, rel in enumerate(relevances[1:], start=2))


def dcg_std(relevances: Sequence[float]) -> float:
    """The usual gain: sum of rel_i / log2(i + 1)."""
    return math.fsum(rel / math.log2(i + 1) for i, rel in enumerate(relevances, start=1))


def ndcg_lme(ranked: Sequence[float], n_relevant: int, k: int) -> float:
    """LongMemEval's nDCG at k.

    Args:
        ranked: 0/1 relevance of the documents in rank order.
        n_relevant: relevant documents in the whole corpus: the ideal ranking has them first.
        k: cut-off.
    """
    ideal = dcg_lme([1.0] * min(n_relevant, k))
    return dcg_lme(ranked[:k]) / ideal if ideal else 0.0


def ndcg_std(ranked: Sequence[float], n_relevant: int, k: int) -> float:
    """The usual nDCG at k; arguments as `ndcg_lme`."""
    ideal = dcg_std([1.0] * min(n_relevant, k))
    return dcg_std(ranked[:k]) / ideal if ideal else 0.0


def reciprocal_rank(ranked: Sequence[float]) -> float:
    """1 / rank of the first relevant document, 0 where there is none."""
    return next((1 / i for i, rel in enumerate(ranked, start=1) if rel), 0.0)


def evaluate_lme(
    rankings: Sequence[int], correct: Collection[str], corpus_ids: Sequence[str], k: int
) -> tuple[float, float, float]:
    """LongMemEval's recall_any, recall_all and ndcg_any at k.

    Args:
        rankings: positions in the corpus, best first.
        correct: ids of the relevant documents.
        corpus_ids: id of each document; ids may repeat.
        k: cut-off.
    """
    recalled = {corpus_ids[i] for i in rankings[:k]}
    relevant = [1.0 if doc_id in correct else 0.0 for doc_id in corpus_ids]
    ranked = [relevant[i] for i in rankings]
    return (
        float(any(doc in recalled for doc in correct)),
        float(all(doc in recalled for doc in correct)),
        ndcg_lme(ranked, int(sum(relevant)), k),
    )


def evaluate_lme_turn2session(
    rankings: Sequence[int], correct: Collection[str], corpus_ids: Sequence[str], k: int
) -> tuple[float, float, float]:
    """LongMemEval's session-level metrics of a turn-level ranking.

    A turn id is `<session>_<n>`; k grows until k distinct sessions are in, or the corpus ends.
    """
    sessions = [doc_id.rpartition("_")[0] for doc_id in corpus_ids]
    wanted = {doc_id.rpartition("_")[0] for doc_id in correct}
    effective = k
    while effective <= len(sessions) and len({sessions[i] for i in rankings[:effective]}) < k:
        effective += 1
    return evaluate_lme(rankings, wanted, sessions, effective)
