"""Score a free-text answer to a question about a history, inside the task's container.

`question.json` beside this file says how: the measure, the gold and the scorer's name. The
reward is the score itself, between 0 and 1; score.json holds the answer too, so that it can be
judged again outside, where a model is at hand.
"""

from __future__ import annotations

import json
import math
import re
import string
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from akm_harbor.verify.answers import WrongAnswerError, read_answer
from akm_harbor.verify.outcome import (
    BROKEN,
    RIGHT,
    BrokenVerifierError,
    clear_reward,
    logs_dir,
    write_atomic,
    write_json,
)
from akm_harbor.verify.porter import stem

F1, PARTS, PHRASES = "f1", "parts-f1", "phrases"
QUESTION = "question.json"
LONGEST_ANSWER = 100_000
"""Bytes; a longer one is no answer, and would only keep the verifier busy."""
_ARTICLES = re.compile(r"\b(a|an|the|and)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


def stems(text: str) -> Counter[str]:
    """LoCoMo's tokens of a text: no commas, case, ASCII punctuation, articles or "and"; stemmed."""
    bare = text.replace(",", "").lower().translate(_NO_PUNCTUATION)
    return Counter(stem(word) for word in _ARTICLES.sub(" ", bare).split())


def token_f1(answer: str, gold: str) -> float:
    """Multiset overlap F1 of stemmed tokens, in [0, 1]; 0 without overlap."""
    given, wanted = stems(answer), stems(gold)
    same = sum((given & wanted).values())
    if same == 0:
        return 0.0
    precision, recall = same / sum(given.values()), same / sum(wanted.values())
    return 2 * precision * recall / (precision + recall)


def parts_f1(answer: str, gold: str) -> float:
    """For each comma-separated part of the gold, the best F1 of any part of the answer; their mean."""
    given, wanted = ([part.strip() for part in text.split(",")] for text in (answer, gold))
    return math.fsum(max(token_f1(part, want) for part in given) for want in wanted) / len(wanted)


def score_answer(question: Mapping[str, Any], answer: str) -> float:
    """The score of an answer, in [0, 1].

    Args:
        question: `measure`, and `gold` or `phrases`.
        answer: what the agent wrote.

    Raises:
        BrokenVerifierError: an unknown measure.
    """
    measure = question["measure"]
    if measure == F1:
        return token_f1(answer, question["gold"])
    if measure == PARTS:
        return parts_f1(answer, question["gold"])
    if measure == PHRASES:
        return float(any(phrase in answer.lower() for phrase in question["phrases"]))
    raise BrokenVerifierError(f"unknown measure {measure!r}")


def judge(workspace: Path, here: Path) -> float:
    """Score the answer in the workspace; write score.json and the reward."""
    clear_reward()
    question = json.loads((here / QUESTION).read_text(encoding="utf-8"))
    answer, complaint = "", None
    try:
        answer = read_answer(workspace / question["file"], LONGEST_ANSWER).strip()
    except WrongAnswerError as error:
        complaint = str(error)
    score = score_answer(question, answer)
    kept = {name: question[name] for name in ("question_id", "benchmark", "qtype", "scorer", "measure")}
    write_json(
        logs_dir() / "score.json", {"version": 1, **kept, "score": score, "answer": answer, "complaint": complaint}
    )
    write_atomic(logs_dir() / "reward.json", json.dumps({"reward": score}) + "\n")
    print(f"{question['scorer']}: {score:.3f}{f' ({complaint})' if complaint else ''}")  # noqa: T201
    return score


def main() -> int:
    """Judge the workspace named by the first argument."""
    try:
        judge(Path(sys.argv[1]), Path(__file__).resolve().parent)
    except (BrokenVerifierError, OSError, ValueError, KeyError, TypeError, IndexError) as error:
        print(f"the verifier itself failed, no reward is written: {error!r}", file=sys.stderr)  # noqa: T201
        return BROKEN
    return RIGHT
