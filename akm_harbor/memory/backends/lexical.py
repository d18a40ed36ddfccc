"""Word-matching baselines: Okapi BM25, and the bag-of-words cosine that others call raw vectors.

BM25 is our own sixty lines because the libraries do not fit. bm25s has no variant with the
floor that rank_bm25's BM25Okapi puts under negative IDF, and 47 to 51 of the 60 reference
recalls come out different with its three nearest. rank_bm25 agrees with all sixty, but has had
no release since 2022, walks every document in Python for every word, and sums its mean IDF in
the order the documents came in, so that shuffling them changes scores in the last digits. Ours
equals it to 1e-12, which the tests check against it.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

import akm_harbor
from akm_harbor.memory import text
from akm_harbor.memory.protocol import Description, Document, Hit, Ingested, Query

_TOKENIZER = "[a-z0-9]+ of the lower-cased text"


class _Index:
    """An inverted index over documents by tie-break: arrays do not depend on who came first."""

    def __init__(self, documents: Sequence[Document]) -> None:
        ordered = sorted(documents, key=lambda document: document.tie_break)
        self.names = [document.name for document in ordered]
        counts = [Counter(text.tokens(document.text)) for document in ordered]
        self.lengths = np.array([count.total() for count in counts], dtype=np.float64)
        postings: dict[str, tuple[list[int], list[int]]] = {}
        for place, count in enumerate(counts):
            for word, times in count.items():
                places, frequencies = postings.setdefault(word, ([], []))
                places.append(place)
                frequencies.append(times)
        self.postings: dict[str, tuple[NDArray[np.intp], NDArray[np.float64]]] = {
            word: (np.array(places, dtype=np.intp), np.array(frequencies, dtype=np.float64))
            for word, (places, frequencies) in postings.items()
        }

    def best(self, scores: NDArray[np.float64], k: int) -> list[Hit]:
        order = np.argsort(-scores, kind="stable")[:k]
        return [Hit(self.names[i], float(scores[i])) for i in order]

    def size(self) -> int:
        return sum(
            len(word) + places.nbytes + frequencies.nbytes for word, (places, frequencies) in self.postings.items()
        )


class Bm25:
    """Okapi BM25 with rank_bm25's parameters: k1 1.5, b 0.75, negative IDF lifted to 0.25 of the mean."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def __init__(self, k1: float = 1.5, b: float = 0.75, epsilon: float = 0.25) -> None:
        self._k1, self._b, self._epsilon = k1, b, epsilon
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._index = _Index(())
        self._idf: dict[str, float] = {}
        self._norm = np.empty(0)

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Index documents."""
        self._index = index = _Index(documents)
        n = len(documents)
        raw = {word: math.log(n - len(p) + 0.5) - math.log(len(p) + 0.5) for word, (p, _) in index.postings.items()}
        floor = self._epsilon * math.fsum(raw.values()) / len(raw) if raw else 0.0
        self._idf = {word: floor if idf < 0 else idf for word, idf in raw.items()}
        mean_length = index.lengths.sum() / n if n else 1.0
        self._norm = self._k1 * (1 - self._b + self._b * index.lengths / (mean_length or 1.0))
        return Ingested(n, index.size())

    def scores(self, question: str) -> NDArray[np.float64]:
        """BM25 score of every document in its own order, shape (documents,); repeated words count again."""
        scores = np.zeros(len(self._index.names))
        for word in text.tokens(question):
            if word in self._index.postings:
                places, frequencies = self._index.postings[word]
                scores[places] += self._idf[word] * frequencies * (self._k1 + 1) / (frequencies + self._norm[places])
        return scores

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k documents; ties go by the documents' places."""
        return self._index.best(self.scores(query.text), k)

    def describe(self) -> Description:
        """Name, version and settings."""
        settings = {"k1": self._k1, "b": self._b, "epsilon": self._epsilon, "tokenizer": _TOKENIZER}
        return Description("bm25", akm_harbor.__version__, settings=settings)


class BagOfWords:
    """Cosine of raw term counts: no IDF, no embeddings. A weak control, kept because it was published."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._index = _Index(())
        self._norms = np.empty(0)

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Index documents."""
        self._index = index = _Index(documents)
        squares = np.zeros(len(documents))
        for places, frequencies in index.postings.values():
            squares[places] += frequencies**2
        self._norms = np.sqrt(squares)
        return Ingested(len(documents), index.size())

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k documents; ties go by the documents' places."""
        wanted = Counter(text.tokens(query.text))
        dots = np.zeros(len(self._index.names))
        for word, times in wanted.items():
            if word in self._index.postings:
                places, frequencies = self._index.postings[word]
                dots[places] += times * frequencies
        norms = self._norms * math.sqrt(sum(times**2 for times in wanted.values()))
        scores = np.divide(dots, norms, out=np.zeros_like(dots), where=norms > 0)
        return self._index.best(scores, k)

    def describe(self) -> Description:
        """Name, version and settings."""
        return Description("bow", akm_harbor.__version__, settings={"tokenizer": _TOKENIZER})
