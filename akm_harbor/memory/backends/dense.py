"""Dense retrieval: cosine of sentence embeddings, from a model that lies on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

import akm_harbor
from akm_harbor.memory.backends import minilm
from akm_harbor.memory.protocol import Description, Document, Hit, Ingested, Query

_DECIMALS = 6  # float32 noise below this must not decide a rank


class Dense:
    """Embeds every document once, ranks by cosine."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def __init__(self, model: Path | None = None) -> None:
        """Load the model.

        Raises:
            BackendError: there is no model, or what reads it is not installed.
        """
        self._folder = minilm.model_folder(model)
        self._model = minilm.load(self._folder)
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self._names: list[str] = []
        self._vectors: minilm.Array = np.empty((0, 0), np.float32)

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Embed documents."""
        ordered = sorted(documents, key=lambda document: document.tie_break)
        self._names = [document.name for document in ordered]
        self._vectors = self._model.embed([document.text for document in ordered])
        return Ingested(len(documents), self._vectors.nbytes)

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k documents; ties go by the documents' places."""
        if not self._names:
            return []
        cosines = np.round(self._vectors @ self._model.embed([query.text])[0], _DECIMALS)
        order = np.argsort(-cosines, kind="stable")[:k]
        return [Hit(self._names[i], float(cosines[i])) for i in order]

    def describe(self) -> Description:
        """Name, version and settings."""
        settings = {
            "model": "all-MiniLM-L6-v2" if self._folder.parent.name == minilm.PACKAGE else self._folder.name,
            "runtime": f"numpy {np.__version__}",
            "max_tokens": self._model.max_tokens,
            "similarity": "cosine",
        }
        return Description("dense", akm_harbor.__version__, self._model.digest, settings)
