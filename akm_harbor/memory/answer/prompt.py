"""The answer prompt: one for all arms of a study, named by its digest."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.errors import AkmHarborError, UsageError

_SLOTS = ("{context}", "{question}", "{date}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt before it is filled in.

    Attributes:
        name: what it is called in results.
        system: the system message; empty: none.
        user: the user message with the slots `{context}`, `{question}` and `{date}`.
        dated: what stands in `{date}` where the question has a date, with the slot `{when}`.
        undated: what stands there where it has none.
        nothing: what stands in `{context}` where nothing was found.
    """

    name: str
    system: str
    user: str
    dated: str = "The question is asked on {when}."
    undated: str = "The question has no date."
    nothing: str = "(nothing was found)"

    @property
    def sha256(self) -> str:
        """Digest of every word of ours that reaches the reader."""
        parts = [self.system, self.user, self.dated, self.undated, self.nothing]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def messages(self, context: str, question: str, date: str | None) -> list[dict[str, str]]:
        """The messages for one question; what a slot is filled with is never read as a slot."""
        values = {
            "{context}": context or self.nothing,
            "{question}": question,
            "{date}": self.dated.replace("{when}", date) if date else self.undated,
        }
        filled, rest = "", self.user
        while rest:
            place, slot = min(((rest.find(s), s) for s in _SLOTS if s in rest), default=(len(rest), ""))
            filled += rest[:place] + (values[slot] if slot else "")
            rest = rest[place + len(slot) :]
        head = [{"role": "system", "content": self.system}] if self.system else []
        return [*head, {"role": "user", "content": filled}]


# "No information available" is the wording LoCoMo's scorer looks for in its adversarial category.
ANSWER_PROMPT = Prompt(
    name="akm-harbor-answer/1",
    system=(
        "You answer a question about past conversations. You are given excerpts of them, each under the date "
        "it was said. Use only the excerpts. Work out relative dates (yesterday, last week) from the date of "
        "the excerpt they stand in. If the excerpts disagree, the later one holds. Give the answer alone, as "
        "short as it can be, without introduction or explanation. If the excerpts do not hold the answer, "
        "reply: No information available."
    ),
    user="Excerpts:\n\n{context}\n\n{date}\nQuestion: {question}\nAnswer:",
)


def load_prompt(path: Path) -> Prompt:
    """A prompt of the user's own: a text with the slots `{context}`, `{question}` and `{date}`.

    Raises:
        AkmHarborError: it cannot be read.
        UsageError: a slot is missing; without `{date}` no question about time can be answered.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise AkmHarborError(f"the answer prompt cannot be read ({error})", path=path) from error
    missing = [slot for slot in _SLOTS if text.count(slot) != 1]
    if missing:
        raise UsageError(f"each of {', '.join(missing)} must stand in the answer prompt exactly once", path=path)
    return Prompt(path.name, "", text)
