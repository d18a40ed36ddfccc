"""Store shape: is the content still distinct, how big is the store, how deep are its merges.

Looks at the learning types only, and at what is indexed (description, tags, headings), the
surface on which a collapsing store converges. Bodies are not in the index.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from akm_harbor.canary.entries import Document
from akm_harbor.canary.jstext import code_unit_key, collapsed, words
from akm_harbor.canary.layout import Entry
from akm_harbor.canary.refs import LEARNING_TYPES

_OFFSET, _PRIME = 0xCBF29CE484222325, 0x100000001B3
_SAMPLE = 2000


@dataclass(frozen=True, slots=True)
class Shape:
    """The store in numbers.

    Attributes:
        total: assets of the learning types.
        by_type: assets of every type, in akm's key order.
        distinct: distinct contents among `total`.
        ratio: `distinct / total`; 1 for an empty store.
        diversity: mean bigram diversity of a fixed sample. Shorter, blander text raises it, so
            it is no sign of collapse by itself.
        over_generation: assets more than `max_generation` merges deep.
    """

    total: int
    by_type: dict[str, int]
    distinct: int
    ratio: float
    diversity: float
    over_generation: int


def content_text(document: Document) -> str:
    """What is compared: description, tags and headings; the name is left out, being always distinct."""
    parts = (
        document.description or "",
        " ".join(document.tags or ()),
        " ".join(heading.text for heading in document.toc or ()),
    )
    return " ".join(part for part in parts if part)


def content_hashes(texts: Sequence[str]) -> list[str]:
    """64-bit FNV-1a of each text, lower case and white space collapsed, as lower-case hex.

    Hashes whole UTF-16 code units, as akm does. All texts advance one unit at a time, so the
    loop is as long as the longest text and not as the sum of them.
    """
    units = [np.frombuffer(collapsed(text).encode("utf-16-le", "surrogatepass"), dtype="<u2") for text in texts]
    lengths = np.array([len(unit) for unit in units], dtype=np.int64)
    order = np.argsort(-lengths, kind="stable")
    flat = np.concatenate([units[i] for i in order]) if units else np.zeros(0, dtype="<u2")
    starts = np.concatenate(([0], np.cumsum(lengths[order])))[:-1].astype(np.int64)
    ordered = lengths[order]
    hashes = np.full(len(units), _OFFSET, dtype=np.uint64)
    prime = np.uint64(_PRIME)
    for position in range(int(ordered[0]) if len(ordered) else 0):
        alive = int(np.searchsorted(-ordered, -position, side="left"))
        hashes[:alive] = (hashes[:alive] ^ flat[starts[:alive] + position].astype(np.uint64)) * prime
    restored = np.empty_like(hashes)
    restored[order] = hashes
    return [f"{value:x}" for value in restored.tolist()]


def bigram_diversity(text: str) -> float:
    """Distinct neighbouring word pairs over all of them; 1 for fewer than two words."""
    found = words(text.lower())
    if len(found) < 2:
        return 1.0
    pairs = len(found) - 1
    return len(set(pairwise(found))) / pairs


def store_shape(entries: Iterable[Entry], max_generation: int) -> Shape:
    """Measure the shape of a store."""
    by_type: Counter[str] = Counter()
    texts: list[tuple[bytes, str]] = []
    over = 0
    for entry in entries:
        document = entry.document
        by_type[document.type] += 1
        if document.type in LEARNING_TYPES:
            texts.append((code_unit_key(entry.key), content_text(document)))
            over += (document.generation or 0) > max_generation
    texts.sort(key=lambda pair: pair[0])
    distinct = len(set(content_hashes([text for _, text in texts])))
    step = max(1, math.ceil(len(texts) / _SAMPLE))
    total, count = 0.0, 0
    for _, text in texts[::step]:  # not sum(): it compensates rounding, akm's plain addition does not
        total += bigram_diversity(text)
        count += 1
    return Shape(
        total=len(texts),
        by_type=dict(sorted(by_type.items(), key=lambda item: code_unit_key(f"{item[0]},{item[1]}"))),
        distinct=distinct,
        ratio=distinct / len(texts) if texts else 1.0,
        diversity=total / count if count else 1.0,
        over_generation=over,
    )
