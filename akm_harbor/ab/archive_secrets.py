"""Nothing secret leaves the house: replace what is known to be private, then look again at what is written."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.ab.words import plural
from akm_harbor.tables.redact import REDACTED, is_secret_name, redact_text, redact_value
from akm_harbor.tables.redacted import redacted

_HOME = re.compile(r"^(/home/[^/]+|/Users/[^/]+|[A-Za-z]:[\\/]Users[\\/][^\\/]+)")
_SHORTEST_SECRET = 8
_JSON_COLUMNS = ("metadata",)


@dataclass(slots=True)
class Cleaner:
    """Literal replacements for one export, longest first, and what they did.

    Attributes:
        replacements: text -> what stands in its place: roots, home folders, values of secret variables.
        n_redacted: cells and texts that held something secret.
        n_renamed: cells and texts that held a path of this machine.
    """

    replacements: dict[str, str] = field(default_factory=dict)
    n_redacted: int = 0
    n_renamed: int = 0

    def text(self, text: str) -> str:
        """One text without secrets and without paths of this machine."""
        clean = redact_text(self._secret(text))
        self.n_redacted += clean != text
        named = self._named(clean)
        self.n_renamed += named != clean
        return named

    def value(self, value: Any) -> Any:
        """A JSON value without secrets, by name and by shape, and without paths of this machine."""
        return self._deep(redact_value(value))

    def _deep(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(k): self._deep(v) for k, v in value.items()}
        return [self._deep(v) for v in value] if isinstance(value, list | tuple) else value

    def _secret(self, text: str) -> str:
        for old, new in self.replacements.items():
            if new == REDACTED:
                text = text.replace(old, new)
        return text

    def _named(self, text: str) -> str:
        for old, new in self.replacements.items():
            if new != REDACTED:
                text = text.replace(old, new)
        return text

    def table(self, table: pa.Table, keep: Iterable[str]) -> pa.Table:
        """A table without them; `keep` names columns that other tables join by and that hold no free text."""
        kept = set(keep)
        json_columns = [n for n in table.column_names if n.endswith("_json") or n in _JSON_COLUMNS]
        clean = redacted(self._replaced(table, kept, secret=True), keep=kept, names=json_columns)
        self.n_redacted += _changed(table, clean)
        named = self._replaced(clean, kept, secret=False)
        self.n_renamed += _changed(clean, named)
        return named

    def _replaced(self, table: pa.Table, keep: set[str], *, secret: bool) -> pa.Table:
        pairs = [(old, new) for old, new in self.replacements.items() if (new == REDACTED) is secret]
        for position, column in enumerate(table.schema):
            if column.name not in keep:
                changed = _column(table.column(position), pairs)
                if changed is not None:
                    table = table.set_column(position, column, changed)
        return table


def _column(column: pa.ChunkedArray, pairs: Sequence[tuple[str, str]]) -> pa.ChunkedArray | None:
    """A text column with literal replacements; None where nothing changes."""
    listed = pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type)
    if not (listed or pa.types.is_string(column.type)):
        return None
    found = pc.list_flatten(column) if listed else column
    hits = [(o, n) for o, n in pairs if pc.any(pc.match_substring(found, o)).as_py()]
    if not hits:
        return None
    if not listed:
        for old, new in hits:
            column = pc.replace_substring(column, old, new)
        return column
    values = column.to_pylist()
    for old, new in hits:
        values = [v and [None if t is None else t.replace(old, new) for t in v] for v in values]
    return pa.chunked_array([pa.array(values, type=column.type)])


def _changed(before: pa.Table, after: pa.Table) -> int:
    """Cells that differ."""
    count = 0
    for one, two in zip(before.columns, after.columns, strict=True):
        if one is not two and not one.equals(two):
            count += sum(a != b for a, b in zip(one.to_pylist(), two.to_pylist(), strict=True))
    return count


def cleaner(roots: Iterable[str], paths: Iterable[str]) -> Cleaner:
    """The replacements for one export.

    Args:
        roots: collected inputs; absolute ones get a short name.
        paths: other paths of this machine, whose home folders become `~`.
    """
    replacements: dict[str, str] = dict.fromkeys(secret_values(), REDACTED)
    taken: set[str] = set()
    absolute = sorted({r for r in roots if _absolute(r)})
    for root in absolute:
        name = short = (PureWindowsPath(root) if "\\" in root else PurePosixPath(root)).name or "root"
        number = 1
        while name in taken:
            number += 1
            name = f"{short}-{number}"
        taken.add(name)
        replacements[root] = name
    homes = {m.group(1) for p in (*absolute, *paths, str(Path.home())) if (m := _HOME.match(p))}
    replacements.update(dict.fromkeys(homes, "~"))
    return Cleaner(dict(sorted(replacements.items(), key=lambda item: -len(item[0]))))


def _absolute(path: str) -> bool:
    return PurePosixPath(path).is_absolute() or PureWindowsPath(path).is_absolute()


def secret_values() -> list[str]:
    """Values of this process's variables whose names mean a secret: known, whatever they look like."""
    found = (v for name, v in os.environ.items() if is_secret_name(name))
    return sorted({v for v in found if len(v) >= _SHORTEST_SECRET and not _harmless(v)})


def _harmless(value: str) -> bool:
    """A path, a number or a single word says nothing by itself, and would be found in any text."""
    return (
        _absolute(value) or value.isdigit() or re.fullmatch(r"[A-Za-z]{1,15}|[a-z]+(?:[-_.][a-z]+)*", value) is not None
    )


def leaks_in_text(name: str, text: str) -> list[str]:
    """Where a text still holds a secret; the secret itself is not repeated."""
    known = secret_values()
    return [
        f"{name}, line {number}"
        for number, line in enumerate(text.splitlines(), start=1)
        if redact_text(line) != line or any(v in line for v in known)
    ]


def leaks_in_table(name: str, table: pa.Table) -> list[str]:
    """Where a table still holds a secret, in any text column, those that are joined by included."""
    secrets = Cleaner(dict.fromkeys(secret_values(), REDACTED))
    clean = secrets.table(table, ())
    found = []
    for column, one, two in zip(table.column_names, table.columns, clean.columns, strict=True):
        if one is not two and not one.equals(two):
            pairs = enumerate(zip(one.to_pylist(), two.to_pylist(), strict=True))
            rows = [row for row, (a, b) in pairs if a != b]
            found.append(f"table {name}, column {column} ({plural(len(rows), 'row')}, the first is row {rows[0]})")
    return found
