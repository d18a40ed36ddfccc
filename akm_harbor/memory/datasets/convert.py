"""Convert a benchmark to Parquet once, streaming; everything later reads that."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.memory.columns import INSTANCES, QUESTIONS, TURNS
from akm_harbor.memory.datasets.checks import Reading
from akm_harbor.memory.datasets.detect import READERS, detect, source_files
from akm_harbor.memory.datasets.model import Instance, Question
from akm_harbor.memory.datasets.quirks import Quirks, quirks_for
from akm_harbor.memory.datasets.reading import WrongSchemaError, file_sha256, tree_sha256
from akm_harbor.memory.datasets.sources import Source, check_digest, sources
from akm_harbor.resources import cache_root
from akm_harbor.tables import PROBLEMS, Problems, read_manifest, replace_dataset
from akm_harbor.tables.columns import Table
from akm_harbor.tables.dataset import DatasetWriter
from akm_harbor.tables.layout import MANIFEST

FORMAT = 1  # raised when a converted dataset must be made again
_GROUP_CHARS = 1 << 20  # text of one row group: the least that is read for one history
UNRECOGNISED = "unrecognised"


@dataclass(frozen=True, slots=True)
class Conversion:
    """What a conversion made.

    Attributes:
        path: the converted dataset.
        benchmark: which benchmark it is.
        sha256: digest of the source.
        instances: histories.
        questions: questions.
        problems: what did not fit.
    """

    path: Path
    benchmark: str
    sha256: str
    instances: int
    questions: int
    problems: Problems


class _Rows:
    """Rows of one table, until a row group is full."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: list[tuple[Any, ...]] = []

    def flush(self, writer: DatasetWriter) -> None:
        if self.rows:
            columns = dict(zip(self.table.names, zip(*self.rows, strict=True), strict=True))
            writer.write(self.table, self.table.from_columns(columns))
            self.rows = []


def dataset_digest(benchmark: str, path: Path) -> str:
    """Digest of a dataset: of the file itself, or of the names and digests of its files."""
    files = source_files(benchmark, path)
    return file_sha256(path) if files == [path] else tree_sha256(path, files)


def convert(
    path: Path,
    out: Path,
    benchmark: str | None = None,
    source: Source | None = None,
    progress: Callable[[int], None] | None = None,
) -> Conversion:
    """Convert a benchmark to a dataset of ours, in memory bounded by its largest record.

    Args:
        path: the published file or folder.
        out: the dataset to write; replaced whole or not at all.
        benchmark: which benchmark it is; found out where None.
        source: the published source it must be; its digest is checked.
        progress: called with the number of histories converted so far.

    Raises:
        DatasetError: the source cannot be read as a whole; nothing is written.
        AkmHarborError: the output cannot be written; what was there stays.
    """
    benchmark = benchmark or (source.benchmark if source else detect(path))
    digest = dataset_digest(benchmark, path)
    if source is not None:
        check_digest(source, path, digest)
    known = quirks_for(digest)
    problems = Problems()
    reading = Reading(path, problems)
    types: Counter[str] = Counter()
    instances = 0
    with replace_dataset(out) as writer:
        for instances, _ in enumerate(_write(READERS[benchmark](path, reading), known, types, writer), start=1):
            if progress is not None:
                progress(instances)
        reading.finish()
        if instances == 0:
            raise WrongSchemaError("holds no record", path=path)
        writer.write(PROBLEMS, problems.table())
        writer.write_manifest(
            {
                "kind": "memory-dataset",
                "format": FORMAT,
                "package": akm_harbor.__version__,
                "benchmark": benchmark,
                "variant": _variant(digest, known, source),
                "source": path.name,
                "sha256": digest,
                "revision": known.revision if known else source.revision if source else None,
                "instances": instances,
                "questions": types.total(),
                "questions_by_type": dict(sorted(types.items())),
                "audit_source": known.source if known else None,
                "problems": len(problems),
            }
        )
    return Conversion(out, benchmark, digest, instances, types.total(), problems)


def converted(
    path: Path,
    benchmark: str | None = None,
    source: Source | None = None,
    progress: Callable[[int], None] | None = None,
) -> Path:
    """The converted dataset of a source: the path itself if it is one, else made once and kept in the cache.

    Raises:
        DatasetError: as `convert`.
    """
    if (path / MANIFEST).is_file() and read_manifest(path).get("kind") == "memory-dataset":
        return path
    benchmark = benchmark or (source.benchmark if source else detect(path))
    digest = dataset_digest(benchmark, path)
    if source is not None:
        check_digest(source, path, digest)
    out = cache_root() / "memory" / f"{benchmark}-{digest[:16]}-f{FORMAT}"
    if not (out / MANIFEST).is_file():
        convert(path, out, benchmark, source, progress)
    return out


def _variant(digest: str, known: Quirks | None, source: Source | None) -> str:
    if known is not None:
        return known.variant
    if source is not None:
        return source.variant
    return next((s.variant for s in sources().values() if s.sha256 == digest), UNRECOGNISED)


def _write(
    read: Iterator[Instance], known: Quirks | None, types: Counter[str], writer: DatasetWriter
) -> Iterator[None]:
    """Write the instances of a reader, a row group at a time; yield once an instance."""
    tables = {table: _Rows(table) for table in (INSTANCES, TURNS, QUESTIONS)}
    chars = 0
    for number, instance in enumerate(read):
        size = _add_turns(tables[TURNS].rows, number, instance)
        for position, question in enumerate(instance.questions):
            types[question.type_raw] += 1
            tables[QUESTIONS].rows.append(_question_row(number, instance.instance_id, position, question, known))
        turns = sum(len(session.turns) for session in instance.sessions)
        tables[INSTANCES].rows.append(
            (
                number,
                instance.instance_id,
                len(instance.sessions),
                turns,
                len(instance.questions),
                size,
                _json(instance.extra),
            )
        )
        chars += size
        if chars >= _GROUP_CHARS:
            tables[TURNS].flush(writer)
            chars = 0
        yield
    for rows in tables.values():
        rows.flush(writer)


def _add_turns(rows: list[tuple[Any, ...]], number: int, instance: Instance) -> int:
    size = 0
    for place, session in enumerate(instance.sessions):
        head = (number, place, session.session_id, session.date, session.time)
        if not session.turns:  # the session must not vanish because it is empty
            rows.append((*head, None, None, None, None, None, None, None, None))
        for position, turn in enumerate(session.turns):
            size += len(turn.text)
            rows.append(
                (
                    *head,
                    position,
                    turn.turn_id,
                    turn.speaker,
                    turn.role,
                    turn.text,
                    turn.caption,
                    turn.has_answer,
                    _json(turn.extra),
                )
            )
    return size


def _question_row(
    number: int, instance_id: str, position: int, question: Question, known: Quirks | None
) -> tuple[Any, ...]:
    evidence = question.evidence
    repaired = evidence.repaired_turns
    return (
        number,
        instance_id,
        question.question_id,
        position,
        question.text,
        question.date,
        question.time,
        question.type_raw,
        question.type,
        question.is_abstention,
        question.answer,
        question.answer_type,
        list(question.rubric),
        list(evidence.raw),
        evidence.status,
        list(evidence.turns),
        list(evidence.sessions),
        list(repaired) if repaired is not None else None,
        question.has_user_target,
        known.flag(question.question_id) if known else None,
        _json(question.extra),
    )


def _json(extra: dict[str, Any] | None) -> str | None:
    return None if extra is None else json.dumps(extra, ensure_ascii=False, sort_keys=True, default=str)
