"""Which benchmark is this file or folder?"""

from collections.abc import Callable, Iterator
from pathlib import Path

from akm_harbor.memory.datasets import beam, convomem, locomo, longmemeval
from akm_harbor.memory.datasets.checks import Reading
from akm_harbor.memory.datasets.model import Instance
from akm_harbor.memory.datasets.reading import DatasetMissingError, WrongSchemaError, iter_records

type Reader = Callable[[Path, Reading], Iterator[Instance]]

READERS: dict[str, Reader] = {
    longmemeval.BENCHMARK: longmemeval.read,
    locomo.BENCHMARK: locomo.read,
    beam.BENCHMARK: beam.read,
    convomem.BENCHMARK: convomem.read,
}


def source_files(benchmark: str, path: Path) -> list[Path]:
    """The files that make up a dataset: what its digest is taken of.

    Raises:
        DatasetMissingError: nothing is there.
        WrongSchemaError: a folder without any file of the benchmark.
    """
    if not path.exists():
        raise DatasetMissingError("no such file or folder", path=path, hint="Name the benchmark's files with --data.")
    if benchmark == beam.BENCHMARK:
        return beam.files(path)
    if benchmark == convomem.BENCHMARK:
        return convomem.files(path)
    if path.is_dir():
        raise WrongSchemaError(f"is a folder, but {benchmark} is one JSON file", path=path)
    return [path]


def detect(path: Path) -> str:
    """The benchmark that a file or folder belongs to, by its first record.

    Raises:
        DatasetMissingError: nothing is there.
        WrongSchemaError: it is none that we can read.
    """
    if not path.exists():
        raise DatasetMissingError("no such file or folder", path=path, hint="Name the benchmark's files with --data.")
    if path.suffix == ".parquet" or (path.is_dir() and next(path.rglob("*chat*.json"), None) is not None):
        return beam.BENCHMARK
    if path.is_dir():
        if next(path.rglob("*.parquet"), None) is not None:
            return beam.BENCHMARK
        if next(path.rglob("batched_*.json"), None) is not None:
            return convomem.BENCHMARK
        raise WrongSchemaError("no file of a known benchmark below it", path=path)
    first = next(iter_records(path), None)
    if first is None:
        raise WrongSchemaError("holds no record", path=path)
    for name, fields in (
        (longmemeval.BENCHMARK, {"question_id", "haystack_sessions"}),
        (locomo.BENCHMARK, {"conversation", "qa"}),
        (convomem.BENCHMARK, {"evidenceItems"}),
    ):
        if fields <= first.keys():
            return name
    raise WrongSchemaError(
        f"its records have the fields {', '.join(sorted(first)[:8])}: no benchmark we know",
        path=path,
        hint=f"Known: {', '.join(READERS)}.",
    )
