"""The ends of the scale: no memory, everything, and exactly the evidence."""

from collections.abc import Sequence
from typing import ClassVar

import akm_harbor
from akm_harbor.memory.protocol import Description, Document, Hit, Ingested, Query


class NoMemory:
    """Remembers nothing: what a reader knows by itself."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def reset(self) -> None:
        """Forget everything."""

    def ingest(self, documents: Sequence[Document]) -> Ingested:  # noqa: ARG002
        """Store nothing."""
        return Ingested(0, 0)

    def search(self, query: Query, k: int) -> list[Hit]:  # noqa: ARG002
        """Find nothing."""
        return []

    def describe(self) -> Description:
        """Name, version and settings."""
        return Description("none", akm_harbor.__version__)


class FullContext:
    """Returns the whole history in its own order, whatever is asked; its order is no ranking."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = False

    def __init__(self) -> None:
        self._documents: list[Document] = []

    def reset(self) -> None:
        """Forget everything."""
        self._documents = []

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Store documents."""
        self._documents = sorted(documents, key=lambda document: document.order)
        return Ingested(len(documents), sum(len(document.text.encode()) for document in documents))

    def search(self, query: Query, k: int) -> list[Hit]:  # noqa: ARG002
        """Every document, in the order it was said."""
        return [Hit(document.name, 0.0) for document in self._documents]

    def describe(self) -> Description:
        """Name, version and settings."""
        return Description("full", akm_harbor.__version__, settings={"k": "all"})


class Oracle:
    """Returns the evidence and nothing else: the ceiling of any retrieval."""

    uses_gold: ClassVar[bool] = True
    ranks: ClassVar[bool] = True

    def __init__(self) -> None:
        self._order: dict[str, str] = {}

    def reset(self) -> None:
        """Forget everything."""
        self._order = {}

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Store where each document belongs."""
        self._order = {document.name: document.order for document in documents}
        return Ingested(len(documents))

    def search(self, query: Query, k: int) -> list[Hit]:
        """The evidence, in the order it was said."""
        found = sorted(query.gold, key=self._order.__getitem__)[:k]
        return [Hit(name, 1 / rank) for rank, name in enumerate(found, start=1)]

    def describe(self) -> Description:
        """Name, version and settings."""
        return Description("oracle", akm_harbor.__version__, settings={"told": "the evidence"})
