"""mem0's open-source library with a local store: an optional arm.

Memories are stored as they are (`infer=False`): mem0's extraction of facts needs a language
model, and this study's retrieval part has none. Embeddings come from the model of the dense arm,
so that the two differ by mem0 alone. Its telemetry is off, and nothing is fetched.
"""

import importlib.metadata
import importlib.util
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from akm_harbor.memory.backends import minilm
from akm_harbor.memory.protocol import BackendError, ContaminationError, Description, Document, Hit, Ingested, Query

_USER = "benchmark"
_WIDTH = 384


class _Embedder:
    """mem0's embedder interface over the local model."""

    def __init__(self, model: minilm.MiniLM) -> None:
        self._model = model

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
        return [float(value) for value in self._model.embed([text])[0]]

    def embed_batch(self, texts: Sequence[str], memory_action: str = "add") -> list[list[float]]:  # noqa: ARG002
        return [[float(value) for value in vector] for vector in self._model.embed(texts)]


class Mem0:
    """mem0 over an embedded Qdrant."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def __init__(self, work: Path, model: Path | None = None) -> None:
        """Import mem0 with its telemetry off.

        Raises:
            BackendError: mem0 or the embedding model is not installed.
        """
        os.environ["MEM0_TELEMETRY"] = "False"  # read when mem0 is imported
        os.environ.setdefault("MEM0_DIR", str(work / "home"))
        try:
            from mem0 import Memory
        except ImportError as error:
            raise BackendError("mem0 is not installed", hint="pip install 'akm-harbor[mem0]'") from error
        self._memory_class: Any = Memory
        self._model = minilm.load(minilm.model_folder(model))
        self._work = work
        self._memory: Any = None
        self._names: frozenset[str] = frozenset()

    def reset(self) -> None:
        """Make an empty store."""
        if self._memory is not None:
            self._memory.vector_store.client.close()
        shutil.rmtree(self._work / "store", ignore_errors=True)
        (self._work / "store").mkdir(parents=True)
        config = {
            "vector_store": {
                "provider": "qdrant",
                "config": {
                    "path": str(self._work / "store" / "qdrant"),
                    "embedding_model_dims": _WIDTH,
                    "collection_name": "memories",
                },
            },
            # Never called: the client objects are only built, and the embedder is replaced below.
            "llm": {"provider": "openai", "config": {"api_key": "unused"}},
            "embedder": {"provider": "openai", "config": {"api_key": "unused", "embedding_dims": _WIDTH}},
            "history_db_path": str(self._work / "store" / "history.db"),
        }
        self._memory = self._memory_class.from_config(config)
        self._memory.embedding_model = _Embedder(self._model)
        self._names = frozenset()

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Add one memory a document.

        Raises:
            BackendError: mem0 stored fewer.
        """
        self._names = frozenset(document.name for document in documents)
        stored = 0
        for document in sorted(documents, key=lambda document: document.order):
            added = self._memory.add(
                document.text, user_id=_USER, metadata={"name": document.name, "tie": document.tie_break}, infer=False
            )
            stored += len(added["results"])
        if stored != len(documents):
            raise BackendError(f"mem0 stored {stored} of {len(documents)} documents")
        size = sum(file.stat().st_size for file in (self._work / "store").rglob("*") if file.is_file())
        return Ingested(stored, size, 0)

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k memories; equal scores go by the documents' places.

        Raises:
            ContaminationError: a memory that was never stored here.
        """
        if not query.text.strip() or not self._names:
            return []
        found = self._memory.search(query.text, top_k=k, filters={"user_id": _USER}, threshold=0.0)["results"]
        hits = []
        for memory in found:
            name = (memory.get("metadata") or {}).get("name")
            if name not in self._names:
                raise ContaminationError(f"mem0 returned {name!r}, which was never stored in this history")
            hits.append((-float(memory["score"]), memory["metadata"]["tie"], name))
        return [Hit(name, -score) for score, _, name in sorted(hits)]

    def describe(self) -> Description:
        """Name, version and settings."""
        settings = {
            "infer": False,
            "store": "qdrant, embedded",
            "embeddings": "all-MiniLM-L6-v2",
            "threshold": 0.0,
            # mem0 silently leaves these parts out where their libraries are missing.
            "keyword_search": importlib.util.find_spec("fastembed") is not None,
            "entities": importlib.util.find_spec("spacy") is not None,
        }
        return Description("mem0", importlib.metadata.version("mem0ai"), self._model.digest, settings)
