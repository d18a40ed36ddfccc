"""What every memory backend does: four verbs, and the values that go in and out.

A backend sees opaque names and text. It never sees a benchmark's ids, which leak the answer
(LongMemEval's evidence sessions are called `answer_...`), nor which documents are evidence;
only the oracle is told, and says so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from akm_harbor.errors import AkmHarborError


class BackendError(AkmHarborError):
    """A backend that did not do what it was asked; `kind` is a short stable name."""

    kind = "backend-failed"


class ContaminationError(BackendError):
    """A hit that was never stored in this history: something foreign is in the store."""

    kind = "contamination"


@dataclass(frozen=True, slots=True)
class Document:
    """One thing to remember.

    Attributes:
        name: opaque, made from a salt; says nothing about the content.
        text: what is stored and searched.
        order: its place in the history, the same whatever its name.
        date: when it was said, as published.
        tie: what decides between equal scores; empty: the order.
    """

    name: str
    text: str
    order: str
    date: str | None = None
    tie: str = ""

    @property
    def tie_break(self) -> str:
        """What decides between equal scores: never the name, which is random."""
        return self.tie or self.order


@dataclass(frozen=True, slots=True)
class Query:
    """One question.

    Attributes:
        text: the question after the declared transform.
        gold: names of the evidence documents; filled in only for a backend that says `uses_gold`.
    """

    text: str
    gold: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Hit:
    """One document found.

    Attributes:
        name: the document's name.
        score: the backend's own score, larger is better.
        text: what the backend returns for it; None: the stored text.
    """

    name: str
    score: float
    text: str | None = None


@dataclass(frozen=True, slots=True)
class Ingested:
    """What storing took.

    Attributes:
        docs: documents stored, as counted by the backend itself.
        index_bytes: size of the store, None where nothing is on disk or countable.
        llm_tokens: model tokens spent, None where no model is involved.
    """

    docs: int
    index_bytes: int | None = None
    llm_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Description:
    """What a backend says of itself; all of it is written beside every number.

    Attributes:
        name: the backend.
        version: its version.
        build_sha: digest of the program or model, None for code of this package.
        settings: every setting that could change a ranking.
    """

    name: str
    version: str
    build_sha: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


class Backend(Protocol):
    """A memory that can be emptied, filled, asked, and described.

    Attributes:
        uses_gold: it is told the evidence (the oracle).
        ranks: its hits are in an order that means something; else rank metrics are empty.
    """

    uses_gold: ClassVar[bool]
    ranks: ClassVar[bool]

    def reset(self) -> None:
        """Forget everything."""

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Store documents; called once after each reset.

        Raises:
            BackendError: not all of them were stored.
        """

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k documents, best first.

        Raises:
            BackendError: the backend failed; an empty list is an answer, not a failure.
        """

    def describe(self) -> Description:
        """Name, version and settings."""
