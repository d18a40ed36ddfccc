"""Finished units on disk, so that a probe that was stopped goes on where it was.

A unit's file is named by the digest of everything its result depends on: another dataset,
another akm, another setting finds nothing here.
"""

import json
import shutil
from pathlib import Path

import pyarrow as pa

from akm_harbor.memory.unit import UnitResult
from akm_harbor.tables.atomic import write_file
from akm_harbor.tables.parquet import opened

_PROBLEMS = b"akm_harbor.problems"


class Checkpoint:
    """The finished units of one output dataset."""

    def __init__(self, out: Path) -> None:
        self.folder = out.with_name(f".{out.name}.parts")

    def load(self, key: str) -> UnitResult | None:
        """The stored result of a unit; None if there is none, or it is torn."""
        path = self.folder / f"{key}.arrow"
        try:
            with opened(path) as file:
                trials = pa.ipc.open_stream(file).read_all()
                retrieval = pa.ipc.open_stream(file).read_all()
                contexts = pa.ipc.open_stream(file).read_all()
        except (OSError, pa.ArrowInvalid):
            return None
        metadata = dict(trials.schema.metadata or {})
        problems = json.loads(metadata.pop(_PROBLEMS, b"[]"))
        trials = trials.replace_schema_metadata(metadata)
        return UnitResult(
            trials, retrieval, tuple((kind, detail, action) for kind, detail, action in problems), contexts
        )

    def save(self, key: str, result: UnitResult) -> None:
        """Store a unit's result, whole or not at all.

        Raises:
            OSError: the disk is full or not writable.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        metadata = {**(result.trials.schema.metadata or {}), _PROBLEMS: json.dumps(result.problems).encode()}
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd", unify_dictionaries=True)
        for table in (result.trials.replace_schema_metadata(metadata), result.retrieval, result.contexts):
            with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
                writer.write_table(table)
        write_file(self.folder / f"{key}.arrow", sink.getvalue().to_pybytes())

    def clear(self) -> None:
        """Forget everything: the dataset is written."""
        shutil.rmtree(self.folder, ignore_errors=True)
