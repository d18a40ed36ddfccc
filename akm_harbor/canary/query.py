"""Search an index the way its own akm does: full text and BM25 only, no model.

Each layout has its query plan: which MATCH expressions are tried in which order, on which
table, with which weights. A canary's score is only meaningful if it is asked the way the
store would answer.
"""

import math
import re
import sqlite3
import unicodedata
from collections.abc import Iterable

from akm_harbor.canary.jstext import NOT_WORD, words
from akm_harbor.canary.layout import Index, Layout

_UNICODE_WORD = re.compile(r"[^\W_]+")

# Fixed mapping that makes scores of two full-text tables comparable (fragments and units layouts).
_FLOOR, _CARD_CEILING, _FRAGMENT_CEILING = 0.3, 0.8, 0.82
_REFERENCE, _SHAPE = 1e-6, 3.0

# English words the contentless layout leaves out of a query, unless nothing else is left.
_STOP_TEXT = """
a about above after again against all am an and any are as at be because been before being below between both
but by can cannot could did do does doing down during each few for from further had has have having he her here
hers herself him himself his how i if in into is it its itself just me more most my myself no nor not now of off
on once only or other our ours out over own same she should so some such than that the their theirs them then
there these they this those through to too under until up very was we were what when where which while who whom
why will with would you your yours yourself
"""
_STOP = frozenset(_STOP_TEXT.split())


def strict_expression(query: str) -> str:
    """The MATCH expression of layouts up to 20: bare words, all required; empty when none is left.

    Only ASCII letters, digits and `_` survive. `AND`, `OR` and `NOT` in capitals stay and act
    as operators; that is the store's behaviour, not ours.
    """
    return " ".join(words(re.sub(r"\bNEAR\b", " ", NOT_WORD.sub(" ", query), flags=re.ASCII)))


def prefix_expression(expression: str) -> str | None:
    """The fallback of layouts up to 20: a star on every word of three letters or more, if there is one."""
    found = words(expression)
    if not any(len(word) >= 3 for word in found):
        return None
    return " ".join(f"{word}*" if len(word) >= 3 else word for word in found)


def lexical_plan(query: str) -> tuple[str, ...]:
    """The MATCH expressions of layouts 21 to 26 in the order they are tried; empty without a word."""
    first: dict[str, str] = {}
    for word in _UNICODE_WORD.findall(unicodedata.normalize("NFKC", query)):
        first.setdefault(word.lower(), word)
    tokens = list(first.values())
    if not tokens:
        return ()
    starred = [f'"{word}"*' if len(word) >= 3 else f'"{word}"' for word in tokens]
    plan = [" ".join(f'"{word}"' for word in tokens)]
    if any(word.endswith("*") for word in starred):
        plan.append(" ".join(starred))
    is_reference = "/" in query and not re.search(r"\s", query.strip())
    if len(tokens) > 1 and not is_reference:
        plan.append(" OR ".join(starred))
    return tuple(plan)


def any_word_expression(query: str) -> str | None:
    """The MATCH expression of the contentless layout: any content word."""
    tokens = list(dict.fromkeys(_UNICODE_WORD.findall(unicodedata.normalize("NFKC", query).lower())))
    content = [word for word in tokens if word not in _STOP] or tokens
    return " OR ".join(f'"{word}"' for word in content) or None


def search(db: sqlite3.Connection, index: Index, query: str, limit: int) -> list[int]:
    """Row ids of the best `limit` assets, best first.

    Raises:
        sqlite3.Error: the index cannot be read. A MATCH expression that FTS5 rejects is no
            error on layouts up to 20, where akm counts it as no result.
    """
    match index.layout:
        case Layout.ENTRY_JSON:
            return _search_strict(db, query, limit)
        case Layout.DOCUMENT | Layout.FRAGMENTS:
            return _search_merged(db, query, limit, fragments=index.layout is Layout.FRAGMENTS)
        case Layout.UNITS:
            return _search_units(db, query, limit)
        case Layout.CONTENTLESS:
            return _search_any_word(db, query, limit)


_STRICT = """
SELECT e.id FROM entries_fts f JOIN entries e ON e.id = f.entry_id WHERE entries_fts MATCH ?
ORDER BY bm25(entries_fts, 0, 10.0, 5.0, 3.0, 2.0, 1.0), e.id LIMIT ?
"""


def _search_strict(db: sqlite3.Connection, query: str, limit: int) -> list[int]:
    exact = strict_expression(query)
    for expression in (exact, prefix_expression(exact)):
        if not expression:
            return []
        try:
            found = [int(row[0]) for row in db.execute(_STRICT, (expression, limit))]
        except sqlite3.OperationalError as error:
            if "fts5" not in str(error):  # only a rejected expression; damage and locks are not silence
                raise
            found = []
        if found:
            return found
    return []


_CARDS = """
SELECT e.id, bm25(entries_fts, 0, 10.0, 5.0, 3.0, 2.0, 1.0) AS score
FROM entries_fts f JOIN entries e ON e.id = f.entry_id WHERE entries_fts MATCH ?
"""
_FRAGMENTS = """
SELECT e.id, f.score FROM (
  SELECT entry_id, bm25(entry_fragments_fts) AS score FROM entry_fragments_fts WHERE entry_fragments_fts MATCH ?
) f JOIN entries e ON e.id = f.entry_id
"""


def comparable(score: float, *, fragment: bool = False) -> float:
    """Map a BM25 score (negative, lower is better) to [0.3, 0.8], or [0.3, 0.82] for a fragment."""
    ceiling = _FRAGMENT_CEILING if fragment else _CARD_CEILING
    if not math.isfinite(score) or score >= 0:
        return ceiling if score == -math.inf else _FLOOR
    scaled = math.log1p(-score / _REFERENCE)
    return _FLOOR + (ceiling - _FLOOR) * (scaled / (scaled + _SHAPE))


def _search_merged(db: sqlite3.Connection, query: str, limit: int, *, fragments: bool) -> list[int]:
    for expression in lexical_plan(query):
        best = _best(
            (int(row_id), comparable(score)) for row_id, score in _within(db.execute(_CARDS, (expression,)), limit)
        )
        if fragments:
            rows = _within(_best_rows(db.execute(_FRAGMENTS, (expression,))), limit)
            for row_id, score in rows:
                best[row_id] = max(best.get(row_id, 0.0), comparable(score, fragment=True))
        if best:
            return sorted(best, key=lambda row_id: (-best[row_id], row_id))[:limit]
    return []


def _best(rows: Iterable[tuple[int, float]]) -> dict[int, float]:
    best: dict[int, float] = {}
    for row_id, score in rows:
        best[row_id] = max(best.get(row_id, -math.inf), score)
    return best


def _best_rows(rows: Iterable[tuple[int, float]]) -> list[tuple[int, float]]:
    """The best (lowest) score of each asset."""
    best: dict[int, float] = {}
    for row_id, score in rows:
        best[row_id] = min(best.get(row_id, math.inf), score)
    return list(best.items())


def _within(rows: Iterable[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    """The best `limit` rows, and all that tie with the last of them."""
    ordered = sorted(rows, key=lambda row: (row[1], row[0]))
    if len(ordered) <= limit:
        return ordered
    return [row for row in ordered if row[1] <= ordered[limit - 1][1]]


_UNITS = "SELECT unit_hash, bm25(units_fts) AS score FROM units_fts WHERE units_fts MATCH ? ORDER BY score LIMIT ?"
_MEAN_UNITS = "SELECT AVG(n) FROM (SELECT COUNT(*) AS n FROM entry_units GROUP BY entry_id)"


def _search_units(db: sqlite3.Connection, query: str, limit: int) -> list[int]:
    """Top up tier by tier to the number of units that `limit` assets have on average, then group by asset."""
    (mean,) = db.execute(_MEAN_UNITS).fetchone()
    wanted = max(1, math.floor(limit * (mean or 1) + 0.5))
    units: dict[str, float] = {}
    for expression in lexical_plan(query):
        if len(units) >= wanted:
            break
        last: float | None = None
        for unit, score in db.execute(_UNITS, (expression, wanted)):
            if unit in units:
                continue
            if len(units) >= wanted and score != last:  # a tie at the edge is kept whole
                break
            units[unit] = last = score
    best: dict[int, float] = {}
    for unit, score in units.items():
        for (row_id,) in db.execute("SELECT entry_id FROM entry_units WHERE unit_hash = ?", (unit,)):
            best[int(row_id)] = min(best.get(int(row_id), math.inf), score)
    return sorted(best, key=lambda row_id: -comparable(best[row_id]))[:limit]


_ANY_WORD = """
SELECT e.id FROM entries_fts f JOIN entries e ON e.id = COALESCE(f.entry_id, f.rowid) WHERE entries_fts MATCH ?
ORDER BY bm25(entries_fts, 0, 1.0, 1.0, 1.0, 1.0, 1.0), e.item_ref LIMIT ?
"""


def _search_any_word(db: sqlite3.Connection, query: str, limit: int) -> list[int]:
    expression = any_word_expression(query)
    if expression is None:
        return []
    return [int(row[0]) for row in db.execute(_ANY_WORD, (expression, limit))]
