"""Datasets: a folder a table of Parquet files, with a manifest, written whole or not at all."""

import json
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_json
from akm_harbor.surrogates import without_surrogates
from akm_harbor.tables.atomic import recover, replaced_directory, write_file
from akm_harbor.tables.columns import Table
from akm_harbor.tables.layout import MANIFEST, STATE
from akm_harbor.tables.parquet import opened, parquet_file

if TYPE_CHECKING:
    import pandas as pd

HOLDS = "holds"
"""The manifest's key for how many columns and rows each table was written with."""

_AGAIN = "Make the dataset again, from what it was made of (`akm-harbor collect` takes --fresh)."


class DatasetWriter:
    """Writes the tables of one dataset into a folder nobody sees yet."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder = folder
        self._stack = stack
        self._writers: dict[str, pq.ParquetWriter] = {}
        self._holds: dict[str, dict[str, int]] = {}

    def write(self, table: Table, rows: pa.Table) -> None:
        """Append rows to a table; call it once, or batch by batch to bound memory.

        Raises:
            pyarrow.ArrowInvalid: rows that do not have the declared schema.
        """
        if table.name not in self._writers:
            path = self._folder / table.name / "part-0.parquet"
            path.parent.mkdir()
            file = self._stack.enter_context(opened(path, "wb"))
            writer = pq.ParquetWriter(file, table.schema(), write_page_checksum=True)
            self._writers[table.name] = self._stack.enter_context(writer)
            self._holds[table.name] = {"columns": len(table.columns), "rows": 0}
        self._holds[table.name]["rows"] += len(rows)
        self._writers[table.name].write_table(rows.cast(table.schema()))

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write the manifest, after the tables: strict JSON (no NaN), sorted keys, and what each table holds."""
        whole = {**manifest, HOLDS: self._holds}
        text = json.dumps(without_surrogates(whole), indent=2, sort_keys=True, allow_nan=False, default=str)
        write_file(self._folder / MANIFEST, text + "\n")

    def write_extra(self, name: str, data: bytes) -> None:
        """Keep a file of our own beside the tables, e.g. the state of an incremental reader."""
        write_file(self._folder / name, data)


@contextmanager
def replace_dataset(path: Path) -> Iterator[DatasetWriter]:
    """Write a dataset that takes the place of the old one in one step.

    Raises:
        AkmHarborError: the place cannot be written, or holds something that is not a dataset.
    """
    if path.exists() and not (path / MANIFEST).is_file() and (not path.is_dir() or any(path.iterdir())):
        raise AkmHarborError(
            "already exists and is not a dataset, so it is left alone",
            path=path,
            hint="Choose another output folder, or move this one away.",
        )
    foreign = sorted(entry.name for entry in path.iterdir() if not _ours(entry)) if path.is_dir() else []
    if foreign:
        raise AkmHarborError(
            f"holds {foreign[0]!r}, which is no part of a dataset and would be lost",
            path=path,
            hint="Move it away, or choose another output folder.",
        )
    try:
        with replaced_directory(path) as folder, ExitStack() as stack:
            yield DatasetWriter(folder, stack)
    except OSError as error:
        raise AkmHarborError(
            f"cannot be written ({error.strerror or error})", path=path, hint="Choose a writable output folder."
        ) from error


def _ours(entry: Path) -> bool:
    """Whether an entry of a dataset's folder is the dataset's own: its files, or a folder of only Parquet."""
    if entry.name in {MANIFEST, STATE} or entry.name.startswith("."):
        return True
    return entry.is_dir() and not entry.is_symlink() and all(file.suffix == ".parquet" for file in entry.iterdir())


def open_dataset(path: Path) -> Path:
    """Check that a folder is a dataset, and return it.

    Raises:
        AkmHarborError: no such folder, or not a dataset.
    """
    recover(path)
    if not path.is_dir():
        raise AkmHarborError("no such dataset", path=path, hint="Make one with `akm-harbor collect JOBS -o DATASET`.")
    if not (path / MANIFEST).is_file():
        raise AkmHarborError(
            "not a dataset (it has no manifest.json)",
            path=path,
            hint="A job directory becomes a dataset with `akm-harbor collect JOBS -o DATASET`.",
        )
    return path


def read_table(dataset: Path, table: Table | str, columns: Sequence[str] | None = None) -> pa.Table:
    """Read one table of a dataset.

    A declared table is returned with exactly its declared columns: those that an older
    dataset lacks are null, so that no reader needs to know which version wrote it.

    Raises:
        AkmHarborError: not a dataset, or a table that cannot be read.
    """
    name = table if isinstance(table, str) else table.name
    manifest = read_manifest(dataset)
    files = table_files(dataset, name)
    try:
        _check_whole(files, name, manifest)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(dataset, name, error) from error
    if not files:
        if isinstance(table, Table):
            empty = table.from_columns({n: [] for n in table.names})
            return empty.select(list(columns)) if columns is not None else empty
        raise AkmHarborError(f"has no table {name!r}", path=dataset, hint="Collect the jobs again.")
    try:
        parts = [_read_part(file, columns) for file in files]
        if isinstance(table, Table):
            # Part by part: another writer's time zone or integer width does not merge, but it converts.
            wanted = set(table.names if columns is None else columns)
            whole = pa.concat_tables([_as_declared(part, table, wanted) for part in parts])
        else:
            whole = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(dataset, name, error) from error
    return whole.select(list(columns)) if columns is not None else whole


def _unreadable(dataset: Path, name: str, error: Exception) -> AkmHarborError:
    return AkmHarborError(f"table {name!r} cannot be read ({error})", path=dataset, hint=_AGAIN)


def _check_whole(files: Sequence[Path], name: str, manifest: Mapping[str, Any]) -> None:
    """Nothing is missing of what was written: absent columns and rows would otherwise read as "not known".

    Raises:
        pyarrow.ArrowInvalid: there is less than the manifest says, or a file is no Parquet.
    """
    holds = manifest.get(HOLDS)
    written = holds.get(name) if isinstance(holds, dict) else None
    if not isinstance(written, dict):
        return
    rows, columns = 0, set()
    for file in files:
        with parquet_file(file) as part:
            rows += part.metadata.num_rows
            columns |= set(part.schema_arrow.names)
    for what, there in (("rows", rows), ("columns", len(columns))):
        said = written.get(what)
        if isinstance(said, int) and there < said:
            raise pa.ArrowInvalid(f"it holds {there} of the {said} {what} that {MANIFEST} tells of")


def table_files(dataset: Path, name: str) -> list[Path]:
    """The files of a table.

    Raises:
        AkmHarborError: something there is no plain file: a link may lead anywhere, a pipe never ends.
    """
    folder = dataset / name
    files = sorted(folder.glob("*.parquet"))
    for place in (folder, *files):
        mode = place.lstat().st_mode if place.exists() or place.is_symlink() else stat.S_IFREG
        if not (stat.S_ISREG(mode) or (place == folder and stat.S_ISDIR(mode))):
            raise AkmHarborError(
                "is a link or a special file, and a dataset holds only folders of plain files",
                path=place,
                hint="Collect the jobs again into a new folder.",
            )
    return files


def _as_declared(part: pa.Table, table: Table, wanted: set[str]) -> pa.Table:
    present = set(part.column_names)
    absent = [column.name for column in table.columns if column.required and column.name in wanted - present]
    if absent:
        raise pa.ArrowInvalid(f"it lacks {', '.join(absent)}, which every version has written")
    arrays = [part[c.name].cast(c.type) if c.name in present else pa.nulls(len(part), c.type) for c in table.columns]
    return pa.Table.from_arrays(arrays, schema=table.schema())


def _read_part(file: Path, columns: Sequence[str] | None) -> pa.Table:
    """Read only the columns asked for, leaving out those this file does not have."""
    with parquet_file(file) as part:
        wanted = None if columns is None else [n for n in part.schema_arrow.names if n in set(columns)]
        return part.read(columns=wanted)


def read_frame(dataset: Path, table: Table | str, columns: Sequence[str] | None = None) -> "pd.DataFrame":
    """Read one table as a pandas frame with Arrow-backed, nullable types."""
    import pandas as pd

    frame: pd.DataFrame = read_table(dataset, table, columns).to_pandas(types_mapper=pd.ArrowDtype)
    return frame


def read_manifest(dataset: Path) -> dict[str, Any]:
    """Read a dataset's manifest.

    Raises:
        AkmHarborError: not a dataset, or a manifest that is not JSON.
    """
    path = open_dataset(dataset) / MANIFEST
    try:
        manifest = parse_json(path.read_bytes())
    except ValueError as error:
        raise AkmHarborError(f"not JSON ({error})", path=path, hint="Collect the jobs again.") from error
    if not isinstance(manifest, dict):
        raise AkmHarborError("not a JSON object", path=path, hint="Collect the jobs again.")
    return manifest
