"""Small checks shared by the readers: a defect is recorded with its place, and nothing is lost."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.memory.datasets.reading import WrongSchemaError
from akm_harbor.tables import Problems

_SHOWN = 5


@dataclass(slots=True)
class Reading:
    """What the reading of one source has found so far.

    Attributes:
        path: the source.
        problems: where defects go; those that repeat are counted and reported once a kind.
        question_ids: ids seen, with how often.
    """

    path: Path
    problems: Problems
    question_ids: Counter[str] = field(default_factory=Counter)
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _places: dict[tuple[str, str], list[str]] = field(default_factory=dict)

    def note(self, kind: str, place: str, action: str) -> None:
        """Count a defect; `finish` reports each kind once, with its first places."""
        key = (kind, action)
        self._counts[key] += 1
        places = self._places.setdefault(key, [])
        if len(places) < _SHOWN:
            places.append(place)

    def unique_question_id(self, question_id: str) -> str:
        """The id itself, or with a `#2`, `#3` ... behind it when the source repeats it."""
        self.question_ids[question_id] += 1
        seen = self.question_ids[question_id]
        if seen == 1:
            return question_id
        self.note("duplicate-question-id", question_id, "kept, with #n behind its id")
        return f"{question_id}#{seen}"

    def finish(self) -> None:
        """Write the counted defects to the problems."""
        for (kind, action), count in sorted(self._counts.items()):
            places = ", ".join(self._places[kind, action]) + (", ..." if count > _SHOWN else "")
            self.problems.add(self.path, kind, f"{count} x: {places}", action)
        self._counts.clear()
        self._places.clear()


def require(record: Mapping[str, Any], name: str, kinds: type | tuple[type, ...], path: Path, place: str) -> Any:
    """The value of a field that the benchmark cannot do without.

    Raises:
        WrongSchemaError: the field is absent or has another type.
    """
    value = record.get(name)
    if not isinstance(value, kinds) or isinstance(value, bool):
        wanted = kinds.__name__ if isinstance(kinds, type) else " or ".join(k.__name__ for k in kinds)
        found = "absent" if name not in record else type(value).__name__
        raise WrongSchemaError(
            f"{place}: field {name!r} is {found}, {wanted} was expected",
            path=path,
            hint="Is it the right file for this benchmark? Name the benchmark explicitly to be sure.",
        )
    return value


def leftover(record: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any] | None:
    """The fields nobody reads, kept as they are; None when there are none."""
    rest = {key: value for key, value in record.items() if key not in known}
    return rest or None
