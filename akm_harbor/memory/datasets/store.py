"""Read a converted dataset back, pruned: the questions alone, or one history at a time."""

import itertools
import json
import operator
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from akm_harbor.memory.columns import INSTANCES, QUESTIONS, TURNS
from akm_harbor.memory.datasets.model import Evidence, Instance, Question, Session, Turn
from akm_harbor.memory.datasets.reading import DatasetError
from akm_harbor.tables import read_manifest, read_table
from akm_harbor.tables.parquet import ParquetFile, parquet_file

_PART = "part-0.parquet"


@dataclass(frozen=True, slots=True)
class InstanceInfo:
    """A row of `memory_instances`: what is known of a history without reading it."""

    number: int
    instance_id: str
    sessions: int
    turns: int
    questions: int
    text_chars: int


class Store:
    """A converted dataset, open for reading.

    Attributes:
        path: the dataset.
        manifest: its manifest.
    """

    def __init__(self, path: Path) -> None:
        """Open a dataset.

        Raises:
            AkmHarborError: not a dataset.
            DatasetError: a dataset of another kind.
        """
        self.path = path
        self.manifest: dict[str, Any] = read_manifest(path)
        if self.manifest.get("kind") != "memory-dataset":
            raise DatasetError(
                "is a dataset, but not a converted benchmark",
                path=path,
                hint="Make one with `akm-harbor memory convert FILE -o DATASET`.",
            )

    @property
    def benchmark(self) -> str:
        """Which benchmark it is."""
        return str(self.manifest["benchmark"])

    def instances(self) -> list[InstanceInfo]:
        """The histories, without their text."""
        names = ["instance", "instance_id", "sessions", "turns", "questions", "text_chars"]
        table = read_table(self.path, INSTANCES, names)
        return [InstanceInfo(*row) for row in zip(*(table[n].to_pylist() for n in names), strict=True)]

    def questions(self, numbers: Collection[int] | None = None) -> list[Question]:
        """All questions, or those of some histories, in source order, without reading what was said."""
        rows = read_table(self.path, QUESTIONS).to_pylist()
        return [_question(row) for row in rows if numbers is None or row["instance"] in numbers]

    def read(self, numbers: Sequence[int] | None = None) -> Iterator[Instance]:
        """Yield histories with their questions, reading only the row groups that hold them.

        Args:
            numbers: positions in the dataset, ascending; all where None.
        """
        wanted = [info.number for info in self.instances()] if numbers is None else sorted(numbers)
        questions = self._rows(QUESTIONS, wanted)
        names = {info.number: info.instance_id for info in self.instances()}
        for number, rows in self._by_instance(wanted):
            yield _instance(names[number], rows, questions.get(number, []))

    def _by_instance(self, wanted: list[int]) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """(history, its turn rows), one row group in memory at a time."""
        left = set(wanted)
        with self._open(TURNS.name) as part:
            for group in range(part.num_row_groups):
                low, high = _range(part, group)
                if not any(low <= number <= high for number in left):
                    continue
                table = part.read_row_group(group)
                held = table["instance"].to_numpy()
                for number in sorted(set(held.tolist()) & left):
                    rows = table.filter(pa.array(held == number)).to_pylist()
                    left.discard(number)
                    yield number, rows

    def _rows(self, table: Any, wanted: list[int]) -> dict[int, list[dict[str, Any]]]:
        keep = set(wanted)
        found: dict[int, list[dict[str, Any]]] = {}
        for row in read_table(self.path, table).to_pylist():
            if row["instance"] in keep:
                found.setdefault(row["instance"], []).append(row)
        return found

    def _open(self, table: str) -> ParquetFile:
        path = self.path / table / _PART
        try:
            return parquet_file(path)
        except (OSError, pa.ArrowInvalid) as error:
            raise DatasetError(f"cannot be read ({error})", path=path, hint="Convert the benchmark again.") from error


def _range(part: ParquetFile, group: int) -> tuple[int, int]:
    statistics = part.metadata.row_group(group).column(0).statistics
    return (statistics.min, statistics.max) if statistics is not None else (0, 1 << 62)


def _instance(instance_id: str, rows: list[dict[str, Any]], questions: list[dict[str, Any]]) -> Instance:
    sessions = tuple(
        _session(list(session)) for _, session in itertools.groupby(rows, key=operator.itemgetter("session"))
    )
    return Instance(instance_id, sessions, tuple(_question(q) for q in questions))


def _session(rows: list[dict[str, Any]]) -> Session:
    first = rows[0]
    turns = tuple(_turn(row) for row in rows if row["turn"] is not None)
    return Session(first["session_id"], first["session_date"], first["session_time"], turns)


def _turn(row: dict[str, Any]) -> Turn:
    return Turn(
        row["turn_id"],
        row["speaker"],
        row["role"],
        row["text"],
        row["caption"],
        row["has_answer"],
        _load(row["extra_json"]),
    )


def _question(row: dict[str, Any]) -> Question:
    repaired = row["gold_turns_repaired"]
    return Question(
        question_id=row["question_id"],
        text=row["question"],
        date=row["question_date"],
        time=row["question_time"],
        type_raw=row["qtype_raw"],
        type=row["qtype"],
        is_abstention=row["is_abstention"],
        answer=row["answer"],
        answer_type=row["answer_type"],
        rubric=tuple(row["rubric"]),
        evidence=Evidence(
            tuple(row["evidence_raw"]),
            row["evidence_status"],
            tuple(row["gold_turns"]),
            tuple(row["gold_sessions"]),
            tuple(repaired) if repaired is not None else None,
        ),
        has_user_target=row["has_user_target"],
        audit_flag=row["audit_flag"],
        extra=_load(row["extra_json"]),
    )


def _load(text: str | None) -> dict[str, Any] | None:
    return None if text is None else json.loads(text)
