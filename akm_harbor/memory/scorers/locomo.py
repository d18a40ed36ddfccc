"""LoCoMo's official question-answering score, to the last digit.

Source: snap-research/LoCoMo, task_eval/evaluation.py at 3eb6f2c5. Its peculiarities are kept:
"and" counts as an article, hyphens glue words together, category 3 keeps only what stands
before the first semicolon, category 5 looks for two phrases and ignores the gold answer.
"""

import math
import re
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from akm_harbor.errors import AkmHarborError

SCORER_ID = "locomo-f1/3eb6f2c5"
MULTI_HOP, TEMPORAL, OPEN_DOMAIN, SINGLE_HOP, ADVERSARIAL = 1, 2, 3, 4, 5
REPORT_ORDER = (4, 1, 2, 3, 5)
_ABSTAINS = ("no information available", "not mentioned")
_ARTICLES = re.compile(r"\b(a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


class _Stemmer(Protocol):
    def stem(self, word: str) -> str: ...


@cache
def _stemmer() -> _Stemmer:
    """NLTK's Porter stemmer in its own extended mode: other Porter stemmers give other scores."""
    try:
        from nltk.stem.porter import PorterStemmer
    except ImportError as error:
        raise AkmHarborError(
            "the LoCoMo score needs NLTK's Porter stemmer", hint="pip install 'akm-harbor[memory]'"
        ) from error
    stemmer: _Stemmer = PorterStemmer()
    return stemmer


def normalize(text: str) -> str:
    """Upstream's normalisation: commas, case, ASCII punctuation, articles (and "and"), white space."""
    bare = text.replace(",", "").lower().translate(_NO_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def f1(prediction: str, answer: str) -> float:
    """Multiset overlap F1 of stemmed tokens, in [0, 1]; 0 without overlap."""
    stem = _stemmer().stem
    predicted = [stem(word) for word in normalize(prediction).split()]
    gold = [stem(word) for word in normalize(answer).split()]
    same = sum((Counter(predicted) & Counter(gold)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)


def multi_answer_f1(prediction: str, answer: str) -> float:
    """For each comma-separated part of the gold, the best F1 of any part of the prediction; their mean."""
    parts = [part.strip() for part in prediction.split(",")]
    gold = [part.strip() for part in answer.split(",")]
    return math.fsum(max(f1(part, wanted) for part in parts) for wanted in gold) / len(gold)


def score(category: int, prediction: str, answer: object) -> float:
    """Upstream's score of one answer, in [0, 1].

    Args:
        category: 1 to 5.
        prediction: what the reader answered.
        answer: the gold answer, any JSON scalar; ignored in category 5, whose published
            questions mostly lack it (upstream as shipped stops there with a KeyError).

    Raises:
        ValueError: another category.
    """
    gold = str(answer)
    if category == MULTI_HOP:
        return multi_answer_f1(prediction, gold)
    if category == OPEN_DOMAIN:
        return f1(prediction, gold.split(";", maxsplit=1)[0].strip())
    if category in (TEMPORAL, SINGLE_HOP):
        return f1(prediction, gold)
    if category == ADVERSARIAL:
        return float(any(phrase in prediction.lower() for phrase in _ABSTAINS))
    raise ValueError(f"LoCoMo has no category {category}")


def recall(evidence: Sequence[str], context_ids: Sequence[str] | None) -> float:
    """Upstream's retrieval recall: the share of the evidence ids among the context's ids.

    Ids beginning with `S` are taken for sessions. Without evidence, or without a context, the
    answer is 1, which inflates upstream's mean; our own recall is empty there.

    Raises:
        ValueError: an empty context, where upstream stops with an IndexError.
    """
    if context_ids is None or not evidence:
        return 1.0
    if not context_ids:
        raise ValueError("upstream's recall is undefined for an empty context")
    if context_ids[0].startswith("S"):
        sessions = {entry[1:] for entry in context_ids}
        hits = [entry.split(":")[0][1:] in sessions for entry in evidence]
    else:
        hits = [entry in context_ids for entry in evidence]
    return sum(hits) / len(evidence)


@dataclass(frozen=True, slots=True)
class Aggregate:
    """LoCoMo means, upstream's way and exactly.

    Attributes:
        n: questions.
        counts: questions a category.
        by_category: exact mean a category.
        by_category_upstream: as upstream prints it: each score rounded to 3 places, then the mean.
        overall: exact mean over all questions.
        overall_upstream: as upstream prints it.
        overall_without_adversarial: exact mean over categories 1-4; a constant refusal earns
            0.228 in `overall` and next to nothing here.
    """

    n: int
    counts: dict[int, int]
    by_category: dict[int, float]
    by_category_upstream: dict[int, float]
    overall: float
    overall_upstream: float
    overall_without_adversarial: float | None


def aggregate(scores: Iterable[tuple[int, float]]) -> Aggregate:
    """Means over (category, score) pairs.

    Raises:
        ValueError: no scores.
    """
    by: dict[int, list[float]] = {}
    for category, value in scores:
        by.setdefault(category, []).append(value)
    if not by:
        raise ValueError("no scores to aggregate")
    everything = [value for values in by.values() for value in values]
    answerable = [value for category, values in by.items() if category != ADVERSARIAL for value in values]
    ordered = sorted(by)
    rounded = {c: math.fsum(round(v, 3) for v in by[c]) for c in ordered}
    return Aggregate(
        n=len(everything),
        counts={c: len(by[c]) for c in ordered},
        by_category={c: math.fsum(by[c]) / len(by[c]) for c in ordered},
        by_category_upstream={c: round(rounded[c] / len(by[c]), 3) for c in ordered},
        overall=math.fsum(everything) / len(everything),
        overall_upstream=round(math.fsum(rounded.values()) / len(everything), 3),
        overall_without_adversarial=math.fsum(answerable) / len(answerable) if answerable else None,
    )
