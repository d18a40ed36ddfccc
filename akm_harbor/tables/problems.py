"""What could not be read or did not fit: reported beside the data, never a reason to stop."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from akm_harbor.tables.columns import STRING, Column, Table

PROBLEMS = Table(
    "problems",
    "one thing that could not be read or did not fit",
    (
        Column("path", STRING, "the file or folder it is about", required=True),
        Column("kind", STRING, "a stable short name, e.g. `invalid-json`", required=True),
        Column("detail", STRING, "what was wrong, with the place in the file where known"),
        Column("action", STRING, "what was done about it, e.g. `row kept, status unreadable`"),
    ),
)


@dataclass(frozen=True, slots=True)
class Problem:
    """One row of the `problems` table."""

    path: str
    kind: str
    detail: str
    action: str


@dataclass(slots=True)
class Problems:
    """A growing list of problems, shared by the readers of one run."""

    found: list[Problem] = field(default_factory=list)

    def add(self, path: Path | str, kind: str, detail: str, action: str) -> None:
        """Record a problem."""
        self.found.append(Problem(str(path), kind, detail, action))

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def table(self) -> pa.Table:
        """All problems as an Arrow table."""
        return PROBLEMS.from_columns(
            {
                "path": [p.path for p in self.found],
                "kind": [p.kind for p in self.found],
                "detail": [p.detail for p in self.found],
                "action": [p.action for p in self.found],
            }
        )
