"""Our own judge prompts: never a benchmark's, so their numbers stand under a name of their own."""

import hashlib
from collections.abc import Mapping, Sequence

SCORER_ID = "akm-harbor-judge/1"
FACT, RUBRIC, NONE = "fact", "rubric", "none"

_END = (
    "\n\nQuestion: {question}\n\n{label}: {gold}\n\nAnswer to be judged: {answer}\n\n"
    "Reply with one word: yes if the answer is right, no if it is not."
)
_LABELS = {FACT: "Reference", RUBRIC: "What a right answer does", NONE: "Why the question cannot be answered"}
PROMPTS: Mapping[str, str] = {
    FACT: (
        "Judge one answer to a question. It is right if it states what the reference states, in whatever words; more "
        "detail that does not contradict the reference does no harm. It is wrong if it leaves out part of what was "
        "asked, names only the topic, stays so vague that it would fit other references as well, or says that it does "
        "not know." + _END
    ),
    RUBRIC: (
        "Judge one answer to a question. It is right if it does what is listed below; it need not use the same words. "
        "It is wrong if it misses any point that matters, stays vague, or says that it does not know." + _END
    ),
    NONE: (
        "Judge one answer to a question that cannot be answered from what is known. It is right if it says so, in "
        "whatever words. It is wrong if it gives an answer." + _END
    ),
}
DIGESTS: Mapping[str, str] = {
    kind: hashlib.sha256((text + _LABELS[kind]).encode()).hexdigest() for kind, text in PROMPTS.items()
}


def kind_of(gold: str | None, rubric: Sequence[str], *, is_abstention: bool) -> str:
    """Which prompt judges a question."""
    if is_abstention:
        return NONE
    return RUBRIC if rubric and not gold else FACT


def fill(kind: str, question: str, gold: str | None, rubric: Sequence[str], answer: str) -> str:
    """The prompt for one answer; what a slot is filled with is never read as a slot."""
    reference = gold if gold is not None else "\n".join(f"- {item}" for item in rubric)
    values = {"question": question, "label": _LABELS[kind], "gold": reference or "(none)", "answer": answer}
    return PROMPTS[kind].format_map(values)
