"""What a reader is given: documents under their dates, whole as they are or filled up to a token budget."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa

from akm_harbor.errors import UsageError
from akm_harbor.memory import tokens
from akm_harbor.memory.documents import Piece
from akm_harbor.memory.protocol import Hit
from akm_harbor.tables.columns import BOOL, FLOAT, INT, STRING

RANK, TIME = "rank", "time"
ORDERS = (RANK, TIME)
TOLERANCE = 0.02
_GAP = "\n\n"

CONTEXTS = pa.schema(
    [
        ("question_id", STRING),
        ("budget", INT),
        ("context", pa.dictionary(pa.int32(), STRING)),  # a full context is the same for every question of a history
        ("ctx_tokens", INT),
        ("ctx_sha256", STRING),
        ("evidence_in_ctx", FLOAT),
        ("budget_filled", BOOL),
    ]
)


@dataclass(frozen=True, slots=True)
class Reading:
    """Which contexts a unit hands on.

    Attributes:
        budgets: None is as is, the first topk documents whole; a number fills the context up to so many tokens.
        order: how the documents stand in it: by `rank`, or by `time`, as they were said.
        depth: how many documents a filled context may draw on.
    """

    budgets: tuple[int | None, ...] = (None,)
    order: str = TIME
    depth: int = 100

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            UsageError: with what to say instead.
        """
        if self.order not in ORDERS:
            raise UsageError(f"no order {self.order!r}", hint=f"One of: {', '.join(ORDERS)}.")
        if not self.budgets or any(budget is not None and budget < 50 for budget in self.budgets):
            raise UsageError("a token budget must be at least 50", hint="For example budgets: [as-is, 1000].")
        if len(set(self.budgets)) < len(self.budgets):
            raise UsageError("the same budget is named twice")
        if self.depth < 1:
            raise UsageError("depth must be at least 1")


@dataclass(frozen=True, slots=True)
class Passage:
    """One document as a reader sees it.

    Attributes:
        text: its date in brackets, where it has one, and its text.
        order: its place in the history, as text that sorts.
    """

    text: str
    order: str


@dataclass(frozen=True, slots=True)
class Context:
    """What a reader sees.

    Attributes:
        text: the passages.
        tokens: their number of tokens.
        filled: within 2% of the budget; None without one.
    """

    text: str
    tokens: int
    filled: bool | None = None

    @property
    def sha256(self) -> str:
        """Digest of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def passages(ranked: Sequence[Piece], hits: Sequence[Hit]) -> list[Passage]:
    """The documents found, in rank order; a backend's own text takes the place of the stored one."""
    found = []
    for piece, hit in zip(ranked, hits, strict=False):
        body = piece.text if hit.text is None else hit.text
        found.append(Passage(f"[{piece.date}]\n{body}" if piece.date else body, piece.order))
    return found


def whole(found: Sequence[Passage], budget: int | None = None, order: str = RANK) -> Context:
    """The documents whole; with a budget, the first that fit."""
    kept: list[Passage] = []
    left = budget
    for passage in found:
        if left is not None:
            left -= count(passage.text + _GAP)
            if left < 0:
                break
        kept.append(passage)
    text = _joined(kept, order)
    return Context(text, count(text))


def filled(found: Sequence[Passage], budget: int, order: str = TIME, *, ranked: bool = True) -> Context:
    """The documents by rank until the budget is reached, the last one cut to fit.

    Args:
        found: in rank order, or as they were said.
        budget: tokens.
        order: how they stand in the context.
        ranked: the order of `found` means something; else the latest are kept, and the earliest of them is cut.
    """
    kept: list[Passage] = []
    room = budget
    for passage in found if ranked else reversed(found):
        cost = count(passage.text + _GAP)
        kept.append(passage)
        room -= cost
        if room < 0:
            break
    text = _joined(kept, order)
    while (over := count(text) - budget) > 0 and kept:
        last = kept.pop()  # tokens of a whole are not quite the sum of its parts': cut again until it fits
        fits = count(last.text) - over
        if fits > 0:
            kept.append(Passage(tokens.cut(last.text, fits, keep_end=not ranked), last.order))
        text = _joined(kept, order)
    size = count(text)
    return Context(text, size, size >= budget * (1 - TOLERANCE))


def _joined(kept: Sequence[Passage], order: str) -> str:
    shown = sorted(kept, key=lambda passage: passage.order) if order == TIME else kept
    return _GAP.join(passage.text for passage in shown)


@lru_cache(maxsize=16384)
def count(text: str) -> int:
    """Tokens of a text, by the counter that results name."""
    return tokens.counter()[1](text)
