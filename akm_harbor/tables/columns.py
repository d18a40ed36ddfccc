"""Tables declared as data: the readers, the Arrow schemas and the docs all come from here."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from akm_harbor.surrogates import without_surrogates

SCHEMA_VERSION_KEY = b"akm_harbor.schema_version"

STRING = pa.string()
INT = pa.int64()
FLOAT = pa.float64()
BOOL = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")
STRINGS = pa.list_(pa.string())


@dataclass(frozen=True, slots=True)
class Column:
    """One column of one table.

    Attributes:
        name: the column's name, part of the contract once released.
        type: its Arrow type; always nullable in the file.
        doc: what it means, with its unit.
        source: where the value comes from, e.g. `result.json:agent_result.cost_usd`.
        required: a row whose value is null here is a problem, never dropped.
    """

    name: str
    type: pa.DataType
    doc: str
    source: str = ""
    required: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table's declaration.

    Attributes:
        name: the folder's name inside a dataset.
        row: what one row is.
        columns: its columns, in file order.
        version: raised when a column changes its meaning.
    """

    name: str
    row: str
    columns: tuple[Column, ...]
    version: int = 1

    @property
    def names(self) -> list[str]:
        """Column names in file order."""
        return [column.name for column in self.columns]

    def schema(self) -> pa.Schema:
        """The explicit Arrow schema, with the schema version in its metadata."""
        return pa.schema(
            [pa.field(c.name, c.type, nullable=True) for c in self.columns],
            metadata={SCHEMA_VERSION_KEY: f"{self.name}/{self.version}".encode()},
        )

    def from_columns(self, columns: Mapping[str, Sequence[Any]]) -> pa.Table:
        """Build the Arrow table from equally long value lists; absent columns become null.

        Raises:
            KeyError: a name that is not declared.
            pyarrow.ArrowInvalid: values that do not fit the declared type.
        """
        unknown = columns.keys() - set(self.names)
        if unknown:
            raise KeyError(f"{self.name} has no column {sorted(unknown)}")
        length = len(next(iter(columns.values()))) if columns else 0
        arrays = [
            _array(columns[c.name], c.type) if c.name in columns else pa.nulls(length, c.type) for c in self.columns
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema())

    def from_rows(self, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
        """Build the Arrow table from dictionaries; absent keys become null.

        Raises:
            KeyError: a key that is not declared.
        """
        listed = list(rows)
        present: set[str] = set().union(*listed)
        unknown = present.difference(self.names)
        if unknown:
            raise KeyError(f"{self.name} has no column {sorted(unknown)}")
        # Most rows lack most columns of a wide table: those that no row has need not be looked for.
        arrays = [
            _array([row.get(c.name) for row in listed], c.type) if c.name in present else pa.nulls(len(listed), c.type)
            for c in self.columns
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema())

    def markdown(self) -> str:
        """The table's documentation as a Markdown section."""
        head = [f"## `{self.name}`", "", f"A row is {self.row}. Schema version {self.version}.", ""]
        lines = [*head, "| column | type | meaning | source |", "|---|---|---|---|"]
        for c in self.columns:
            source = f"`{c.source}`" if c.source else ""
            name = f"**`{c.name}`**" if c.required else f"`{c.name}`"
            lines.append(f"| {name} | {c.type} | {_cell(c.doc)} | {_cell(source)} |")
        return "\n".join(lines) + "\n"


def _array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, type=kind)
    except UnicodeEncodeError:  # a file's name that is no UTF-8, say
        return pa.array(without_surrogates(list(values)), type=kind)


def _cell(text: str) -> str:
    """Text that cannot end its table cell."""
    return text.replace("|", "\\|")
