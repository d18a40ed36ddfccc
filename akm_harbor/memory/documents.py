"""Cut a history into documents, name them opaquely, and say which of them are evidence."""

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from akm_harbor.errors import UsageError
from akm_harbor.memory.datasets import locomo, longmemeval
from akm_harbor.memory.datasets.model import USER, Instance, Question, Session, Turn
from akm_harbor.memory.protocol import Document

TURN, SESSION = "turn", "session"
ALL, USER_ONLY = "all", "user"
_WINDOW = re.compile(r"window:([1-9]\d*)")


def check_granularity(text: str) -> str:
    """The text itself, if it is `turn`, `session` or `window:N`.

    Raises:
        UsageError: it is none of them.
    """
    if text in (TURN, SESSION) or _WINDOW.fullmatch(text):
        return text
    raise UsageError(f"no granularity {text!r}", hint="One of: turn, session, window:N (N turns, e.g. window:5).")


@dataclass(frozen=True, slots=True)
class Piece:
    """One document before it is named.

    Attributes:
        key: its place: `session`, `session:turn` or `session:turn-turn`, counted from 0.
        text: what is stored.
        date: the session's date, as published.
        order: its place as text that sorts.
        tie: what decides between equal scores: the dialogue id of a LoCoMo turn, as in the reference, else the order.
        turns: ids of the turns in it.
        session: id of its session.
    """

    key: str
    text: str
    date: str | None
    order: str
    tie: str
    turns: tuple[str, ...]
    session: str


@dataclass(frozen=True, slots=True)
class Gold:
    """The evidence of one question at one granularity.

    Attributes:
        units: turn ids, or session ids at session granularity.
        status: `ok`, or why there is no evidence to recall.
        repaired: units with mended evidence; `units` where nothing needed mending, empty where nothing could be.
        texts: texts of the evidence turns, to be looked for in a context.
    """

    units: frozenset[str]
    status: str
    repaired: frozenset[str]
    texts: tuple[str, ...]


class History:
    """One instance, cut for one granularity and corpus."""

    def __init__(self, instance: Instance, benchmark: str, granularity: str, corpus: str = ALL) -> None:
        """Cut an instance.

        Args:
            instance: the history.
            benchmark: how a turn is written depends on it.
            granularity: `turn`, `session` or `window:N`.
            corpus: `all`, or `user` for the user's turns only (LongMemEval's own corpus).
        """
        self.instance = instance
        self.benchmark = benchmark
        self.granularity = granularity
        self.corpus = corpus
        cut = [piece for i, session in enumerate(instance.sessions) for piece in self._cut(i, session)]
        self.pieces = tuple(piece for piece in cut if piece.text.strip())
        self.empty_pieces = len(cut) - len(self.pieces)

    def covers(self, piece: Piece) -> tuple[str, ...]:
        """The units that having this piece means having."""
        return (piece.session,) if self.granularity == SESSION else piece.turns

    @cached_property
    def _turns(self) -> dict[str, tuple[Turn, str]]:
        return {turn.turn_id: (turn, s.session_id) for s in self.instance.sessions for turn in s.turns}

    def gold(self, question: Question) -> Gold:
        """The evidence of a question, in this history's units."""
        evidence = question.evidence
        turns, sessions, status = evidence.turns, evidence.sessions, evidence.status
        if self.corpus == USER_ONLY:
            # As upstream: an evidence session whose user turns carry no mark is no evidence.
            turns = tuple(t for t in turns if self._turns[t][0].role == USER)
            sessions = tuple(dict.fromkeys(self._turns[t][1] for t in turns))
        units = frozenset(sessions if self.granularity == SESSION else turns)
        repaired = units if status == "ok" else frozenset[str]()
        if evidence.repaired_turns is not None:
            mended = evidence.repaired_turns
            by_session = (self._turns[t][1] for t in mended)
            repaired = frozenset(by_session if self.granularity == SESSION else mended)
        texts = tuple(self.turn_text(self._turns[t][0]) for t in turns if t in self._turns)
        return Gold(units, status if units or status != "ok" else "none", repaired, texts)

    def turn_text(self, turn: Turn) -> str:
        """How a turn is written into a document."""
        if self.benchmark == longmemeval.BENCHMARK and self.corpus == USER_ONLY:
            return turn.text
        caption = f" [{turn.caption}]" if turn.caption else ""
        return f"{turn.speaker}: {turn.text}{caption}"

    def _cut(self, place: int, session: Session) -> list[Piece]:
        turns = [(i, t) for i, t in enumerate(session.turns) if self.corpus == ALL or t.role == USER]
        if self.granularity == SESSION:
            return [self._piece(f"{place}", place, session, turns)]
        window = _WINDOW.fullmatch(self.granularity)
        if window is None:
            return [self._piece(f"{place}:{i}", place, session, [(i, t)]) for i, t in turns]
        size = int(window[1])
        parts = [turns[i : i + size] for i in range(0, len(turns), size)]
        return [self._piece(f"{place}:{part[0][0]}-{part[-1][0]}", place, session, part) for part in parts]

    def _piece(self, key: str, place: int, session: Session, turns: Sequence[tuple[int, Turn]]) -> Piece:
        # Upstream joins the user turns of a LongMemEval session by a space.
        glue = " " if self.benchmark == longmemeval.BENCHMARK and self.corpus == USER_ONLY else "\n"
        order = f"{place:06d}:{turns[0][0] if turns else 0:06d}"
        return Piece(
            key=key,
            text=glue.join(self.turn_text(turn) for _, turn in turns),
            date=session.date,
            order=order,
            tie=turns[0][1].turn_id if self.benchmark == locomo.BENCHMARK and self.granularity == TURN else order,
            turns=tuple(turn.turn_id for _, turn in turns),
            session=session.session_id,
        )


def name_documents(history: History, seed: int) -> dict[str, Document]:
    """The history's documents under opaque names, in an order that says nothing either.

    Args:
        history: the pieces.
        seed: names and order follow from it: another seed, other names, the same scores.

    Returns:
        Piece key -> document, shuffled.
    """
    salt = f"{seed}/{history.instance.instance_id}/{history.granularity}"
    named = [
        (piece.key, Document(opaque_name(salt, number), piece.text, piece.order, piece.date, piece.tie))
        for number, piece in enumerate(history.pieces)
    ]
    random.Random(salt).shuffle(named)  # noqa: S311
    return dict(named)


def opaque_name(salt: str, number: int) -> str:
    """`m` and 12 hex digits that depend on the salt and the number only."""
    return "m" + hashlib.sha256(f"{salt}/{number}".encode()).hexdigest()[:12]


def check_corpus(benchmark: str, corpus: str) -> str:
    """The corpus itself, if this benchmark has one of that kind.

    Raises:
        UsageError: a user-only corpus of two-person dialogues.
    """
    if corpus not in (ALL, USER_ONLY):
        raise UsageError(f"no corpus {corpus!r}", hint="One of: all, user.")
    if corpus == USER_ONLY and benchmark == locomo.BENCHMARK:
        raise UsageError("LoCoMo has two speakers and no user", hint="Use --corpus all.")
    return corpus
