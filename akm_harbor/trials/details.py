"""The tables beside the trials: rows as they are read, to Arrow a few thousand at a time."""

from typing import Any

import numpy as np
import pyarrow as pa

from akm_harbor.tables.columns import STRING, TIME, Table
from akm_harbor.tables.dataset import DatasetWriter
from akm_harbor.trials.clean import clean
from akm_harbor.trials.columns import ALL
from akm_harbor.trials.packed import Column, Texts, Whole, as_arrow
from akm_harbor.trials.values import micros
from akm_harbor.trials.worker import Rows

DETAIL = tuple(table for table in ALL if table.name not in ("trials", "tasks", "harbor_stats"))
_BATCH_ROWS = 16_384

type Keys = dict[str, list[Any]]
"""trial_id, root and trial_path: one element a trial"""


class Details:
    """Collects rows of all detail tables, and writes them a batch at a time to bound memory."""

    def __init__(self, writer: DatasetWriter) -> None:
        self._writer = writer
        self._parts: dict[str, list[tuple[Keys, Rows]]] = {table.name: [] for table in DETAIL}
        self._waiting = dict.fromkeys(self._parts, 0)

    def add(self, keys: Keys, tables: dict[str, Rows]) -> None:
        """Take in what some trials have in all tables."""
        for table in DETAIL:
            if table.name in tables:
                rows = tables[table.name]
                self._parts[table.name].append((keys, rows))
                self._waiting[table.name] += sum(rows.counts)
                if self._waiting[table.name] >= _BATCH_ROWS:
                    self._write(table)

    def finish(self) -> None:
        """Write the rest. An empty table is written too: a dataset always holds all of them."""
        for table in DETAIL:
            self._write(table)

    def _write(self, table: Table) -> None:
        parts, self._parts[table.name] = self._parts[table.name], []
        self._waiting[table.name] = 0
        arrays = [_arrays(table, keys, rows) for keys, rows in parts]
        columns = {name: pa.concat_arrays([part[name] for part in arrays]) for name in table.names} if parts else {}
        self._writer.write(table, clean(table, table.from_columns(columns)))


def _arrays(table: Table, keys: Keys, rows: Rows) -> dict[str, pa.Array]:
    counts = np.array(rows.counts)
    n = int(counts.sum())
    trial_of = pa.array(np.repeat(np.arange(len(counts)), counts))
    arrays: dict[str, pa.Array] = {}
    for column in table.columns:
        if column.name in keys:
            arrays[column.name] = pa.array(keys[column.name], type=STRING).take(trial_of)
        elif column.name not in rows.columns:
            arrays[column.name] = pa.nulls(n, column.type)
        elif column.type == TIME:
            arrays[column.name] = _times(rows.columns[column.name])
        else:
            arrays[column.name] = as_arrow(rows.columns[column.name], column.type)
    return arrays


def _times(column: Column) -> pa.Array:
    """Times, written as ISO 8601 (trajectories) or as microseconds (streams)."""
    if isinstance(column, Whole):
        return as_arrow(column, TIME)
    values: list[Any]
    if isinstance(column, Texts):
        texts = as_arrow(column, STRING)
        try:
            return texts.cast(TIME)
        except pa.ArrowInvalid:
            values = texts.to_pylist()
    else:
        values = column
    return pa.array([v if isinstance(v, int) else micros(v)[0] for v in values], type=TIME)
