"""What is known to be wrong in a published file, keyed by the file's digest.

The official score stays official and no data are changed: these tables only feed the audited
column beside it. They hold identifiers and kinds of defect, no text of any benchmark.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).with_name("quirks")


@dataclass(frozen=True, slots=True)
class Quirks:
    """One published file and its known defects.

    Attributes:
        benchmark: which benchmark.
        variant: which file of it.
        sha256: the file's digest.
        revision: the pinned revision it comes from.
        source: who found the defects.
        score_flags: question id -> why its published answer is not to be trusted.
        evidence_flags: question id -> why its published evidence is not to be trusted.
    """

    benchmark: str
    variant: str
    sha256: str
    revision: str
    source: str
    score_flags: Mapping[str, str] = field(default_factory=dict)
    evidence_flags: Mapping[str, str] = field(default_factory=dict)

    def flag(self, question_id: str) -> str | None:
        """Why an audit takes this question out of retrieval and score; None where it does not."""
        return self.score_flags.get(question_id) or self.evidence_flags.get(question_id)


@cache
def all_quirks() -> Mapping[str, Quirks]:
    """Every shipped table, by digest."""
    tables = {}
    for path in sorted(_FOLDER.glob("*.json")):
        data = json.loads(path.read_text())
        tables[data["sha256"]] = Quirks(
            benchmark=data["benchmark"],
            variant=data["variant"],
            sha256=data["sha256"],
            revision=data["revision"],
            source=data["source"],
            score_flags=_by_question(data["score_flags"]),
            evidence_flags=_by_question(data["evidence_flags"]),
        )
    return tables


def quirks_for(sha256: str) -> Quirks | None:
    """The table of the file with this digest; None for a file nobody has looked at."""
    return all_quirks().get(sha256)


def _by_question(flags: Mapping[str, list[str]]) -> dict[str, str]:
    return {question: kind for kind, questions in flags.items() for question in questions}
