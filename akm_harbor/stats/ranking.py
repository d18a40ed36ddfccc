"""Retrieval metrics for a query with one relevant entry, from the rank at which it was found."""

import math


def _found(rank: int | None, k: int) -> bool:
    if rank is not None and rank < 1:
        raise ValueError(f"ranks start at 1, not {rank}; not found is None")
    return rank is not None and rank <= k


def recall(rank: int | None, k: int) -> float:
    """1 if the entry is among the first k, else 0."""
    return float(_found(rank, k))


def reciprocal_rank(rank: int | None, k: int) -> float:
    """1/rank within the first k, else 0."""
    return 1 / rank if rank is not None and _found(rank, k) else 0.0


def ndcg(rank: int | None, k: int) -> float:
    """Discounted gain of a single relevant entry, 1/log2(rank + 1) within the first k, else 0."""
    return 1 / math.log2(rank + 1) if rank is not None and _found(rank, k) else 0.0
