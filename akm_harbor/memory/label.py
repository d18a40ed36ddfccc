"""The protocol of a number: everything that must be equal before two numbers may stand side by side."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

METRICS_VERSION = 1  # raised when a metric of ours changes its meaning


@dataclass(frozen=True, slots=True)
class RetrievalProtocol:
    """What a retrieval number depends on beside its arm.

    Attributes:
        benchmark: which benchmark.
        dataset_sha256: which file of it.
        granularity: `turn`, `session` or `window:N`.
        corpus: whose turns are stored.
        topk: hits that make the context.
        ks: cut-offs of the metrics.
        budget: token limit of the context, None without one.
        tokenizer: what counts tokens.
        sample: `all`, or the number of questions and the seed they were drawn with.
        metrics: version of our metrics.
    """

    benchmark: str
    dataset_sha256: str
    granularity: str
    corpus: str
    topk: int
    ks: tuple[int, ...]
    budget: int | None
    tokenizer: str
    sample: str
    metrics: int = field(default=METRICS_VERSION)

    @property
    def id(self) -> str:
        """Twelve hex digits that stand for the whole protocol."""
        return digest(asdict(self))[:12]


def digest(value: Mapping[str, Any]) -> str:
    """SHA-256 of a mapping as canonical JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[str]:
    """What differs between two protocols, one sentence each."""
    return [
        f"{key}: {a.get(key)!r} and {b.get(key)!r}" for key in sorted(a.keys() | b.keys()) if a.get(key) != b.get(key)
    ]
