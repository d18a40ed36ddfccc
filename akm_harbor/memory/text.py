"""Words: the tokens of the lexical backends, and what is left of a question without its stop-words."""

import re

_TOKEN = re.compile(r"[a-z0-9]+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_SPACES = re.compile(r"\s+")
RAW, KEYWORDS = "raw", "keywords"
TRANSFORMS = (RAW, KEYWORDS)

# Function words and the words that questions are made of; recorded by name with every number.
STOPWORDS_ID = "akm-harbor-stopwords/1"
_STOPWORDS = """
a about after again all also am an and any are as at be because been before being between both but by can could did do
does doing done down during each ever few for from get got had has have having he her here hers him his how i if in into
is it its just let like many may me might more most much must my no nor not now of off on once one only or other our out
over own s same she should so some such t than that the their them then there these they this those through to too under
until up us very was we were what when where which while who whom whose why will with would you your yours
"""
STOPWORDS = frozenset(_STOPWORDS.split())


def tokens(text: str) -> list[str]:
    """Runs of ASCII letters and digits, lower case."""
    return _TOKEN.findall(text.lower())


def keywords(text: str) -> list[str]:
    """The distinct tokens that are no stop-words, in order."""
    return [word for word in dict.fromkeys(tokens(text)) if word not in STOPWORDS]


def transform(question: str, how: str) -> str:
    """Turn a question into a query: `raw` leaves it alone, `keywords` keeps its content words.

    A question of stop-words only stays as it is.
    """
    return (" ".join(keywords(question)) or question) if how == KEYWORDS else question


def lead(text: str, limit: int = 250) -> str:
    """The leading sentences of a text, as many as fit; one that is too long is cut with an ellipsis."""
    flat = _SPACES.sub(" ", text).strip()
    kept = ""
    for sentence in _SENTENCE_END.split(flat):
        longer = f"{kept} {sentence}".strip()
        if len(longer) > limit:
            break
        kept = longer
    return kept or (flat[: limit - 1].rstrip() + "\u2026" if len(flat) > limit else flat)
