"""Mint a canary set: fixed questions, made once from what the store holds, then frozen.

Two ways. `mint` follows the design: important assets first (salience, then utility, then the
key), a third of each learning type, a query of name, tags and first heading or description.
`mint_as_akm` repeats what akm 0.9.0 does, including that its salience look-up misses.
"""

import math
import re
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from akm_harbor.canary.entries import Document
from akm_harbor.canary.jstext import SPACE_RUN, code_unit_key, utf16_length
from akm_harbor.canary.layout import Entry, Layout
from akm_harbor.canary.query import any_word_expression, lexical_plan, strict_expression
from akm_harbor.canary.refs import LEARNING_TYPES, reduced

DEFAULT_COUNT = 40

_NAME_BREAK = re.compile(r"[-_/.]+")
_WORD = re.compile(r"[^\W_]+")
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")
_OPERATORS = frozenset({"AND", "OR", "NOT", "NEAR"})
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Canary:
    """One fixed question and the asset that should answer it.

    Attributes:
        id: number, unique in a history.
        anchor_ref: short id of the asset it was made from.
        query: the question, as it will always be asked.
    """

    id: int
    anchor_ref: str
    query: str


@dataclass(frozen=True, slots=True)
class CanarySet:
    """A frozen set.

    Attributes:
        id: `canary-<base 36 milliseconds>-<4 hex>`, akm's form; the time can be read back.
        minted_at: when, UTC.
        source: `auto` as in akm's own rows.
        canaries: in pick order.
    """

    id: str
    minted_at: datetime
    source: str
    canaries: tuple[Canary, ...]


def new_set_id(at: datetime) -> str:
    """A set id in akm's form."""
    value, text = int(at.timestamp() * 1000), ""
    while value:
        value, digit = divmod(value, 36)
        text = _DIGITS[digit] + text
    return f"canary-{text or '0'}-{secrets.token_hex(2)}"


def mint(
    entries: Iterable[Entry],
    layout: Layout,
    *,
    at: datetime,
    count: int = DEFAULT_COUNT,
    salience: Mapping[str, float] | None = None,
    utility: Mapping[int, float] | None = None,
    first_id: int = 1,
) -> CanarySet | None:
    """Mint as designed; None when the store has nothing to ask about.

    Args:
        entries: every indexed asset.
        layout: the store's, so that only words its search can match are asked.
        at: mint time, UTC.
        count: how many canaries (30 to 50 keeps a stable mean at K = 10).
        salience: rank score by reference, in any spelling.
        utility: utility by row id.
        first_id: number of the first canary.
    """
    scores: dict[str, float] = {}
    for ref, score in (salience or {}).items():
        scores[reduced(ref)] = max(score, scores.get(reduced(ref), -math.inf))
    used = utility or {}

    def importance(entry: Entry) -> tuple[float, float, bytes]:
        return (-scores.get(entry.ref, 0.0), -used.get(entry.row_id, 0.0), code_unit_key(entry.ref))

    askable = [entry for entry in entries if _can_ask(layout, _designed_query(entry.document, layout))]
    picked = _stratified(askable, importance, count)
    return _canary_set(picked, lambda entry: _designed_query(entry.document, layout), at, first_id)


def mint_as_akm(
    entries: Iterable[Entry],
    *,
    at: datetime,
    count: int = DEFAULT_COUNT,
    salience: Mapping[str, float] | None = None,
    first_id: int = 1,
) -> CanarySet | None:
    """Mint as akm 0.9.0 does, byte for byte; None when the store has nothing to ask about.

    akm writes salience under `bundle//id` and looks it up under `id`, so in practice the order
    is alphabetical. A canary whose query comes out empty is dropped after the count is taken.
    """
    scores = salience or {}

    def importance(entry: Entry) -> tuple[float, bytes]:
        return (-scores.get(entry.ref, 0.0), code_unit_key(entry.ref))

    return _canary_set(_stratified(entries, importance, count), lambda e: _akm_query(e.document), at, first_id)


def _stratified(
    entries: Iterable[Entry], importance: Callable[[Entry], tuple[float | bytes, ...]], count: int
) -> list[Entry]:
    """A third of each learning type in turn, then the best of what is left."""
    ranked = sorted((entry for entry in entries if entry.document.type in LEARNING_TYPES), key=importance)
    per_type = math.ceil(count / len(LEARNING_TYPES))
    picked: dict[str, Entry] = {}
    for type_ in LEARNING_TYPES:
        taken = 0
        for entry in ranked:
            if taken >= per_type or len(picked) >= count:
                break
            if entry.document.type == type_ and entry.ref not in picked:
                picked[entry.ref] = entry
                taken += 1
    for entry in ranked:
        if len(picked) >= count:
            break
        picked.setdefault(entry.ref, entry)
    return list(picked.values())


def _canary_set(
    picked: Sequence[Entry], query: Callable[[Entry], str], at: datetime, first_id: int
) -> CanarySet | None:
    asked = [(entry.ref, query(entry)) for entry in picked]
    kept = [(ref, text) for ref, text in asked if text]
    canaries = tuple(Canary(first_id + position, ref, text) for position, (ref, text) in enumerate(kept))
    return CanarySet(new_set_id(at), at, "auto", canaries) if canaries else None


def _akm_query(document: Document) -> str:
    name = [part for part in _NAME_BREAK.split(document.name) if utf16_length(part) > 1]
    head = SPACE_RUN.split(document.description or "")[:6]
    parts = [*name, *(document.tags or ())[:3], *head]
    return " ".join(dict.fromkeys(part for part in parts if part))


def _designed_query(document: Document, layout: Layout) -> str:
    """Name words, up to three tags, then the first heading or the first six words of the description.

    Only whole words the store's search can match: where a query is cut to ASCII a word like
    "café" would match nothing for ever, and a capital OR would act as an operator.
    """
    heading = next((h.text for h in document.toc or () if h.text.strip()), "")
    tail = heading or " ".join((document.description or "").split()[:6])
    pattern = _ASCII_WORD if layout is Layout.ENTRY_JSON else _WORD
    found: dict[str, str] = {}
    for text in (document.name, *(document.tags or ())[:3], tail):
        for word in _WORD.findall(text):
            if len(word) > 1 and pattern.fullmatch(word) and word not in _OPERATORS:
                found.setdefault(word.casefold(), word)
    return " ".join(found.values())


def _can_ask(layout: Layout, query: str) -> bool:
    match layout:
        case Layout.ENTRY_JSON:
            return bool(strict_expression(query))
        case Layout.CONTENTLESS:
            return any_word_expression(query) is not None
        case _:
            return bool(lexical_plan(query))
