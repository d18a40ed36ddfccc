"""The ground floor: declared columns, atomic datasets, problems, safe SQLite reading.

Names are loaded on first use: a worker that only reads SQLite or redacts text must not
pay for pyarrow.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from akm_harbor.tables.columns import Column, Table
    from akm_harbor.tables.dataset import open_dataset, read_frame, read_manifest, read_table, replace_dataset
    from akm_harbor.tables.problems import PROBLEMS, Problem, Problems
    from akm_harbor.tables.redact import redact_text, redact_value
    from akm_harbor.tables.redacted import redacted
    from akm_harbor.tables.sqlite import StoreError, open_readonly

__all__ = [
    "PROBLEMS",
    "Column",
    "Problem",
    "Problems",
    "StoreError",
    "Table",
    "open_dataset",
    "open_readonly",
    "read_frame",
    "read_manifest",
    "read_table",
    "redact_text",
    "redact_value",
    "redacted",
    "replace_dataset",
]

_HOME = {
    "PROBLEMS": "problems",
    "Column": "columns",
    "Problem": "problems",
    "Problems": "problems",
    "StoreError": "sqlite",
    "Table": "columns",
    "open_dataset": "dataset",
    "open_readonly": "sqlite",
    "read_frame": "dataset",
    "read_manifest": "dataset",
    "read_table": "dataset",
    "redact_text": "redact",
    "redact_value": "redact",
    "redacted": "redacted",
    "replace_dataset": "dataset",
}


def __getattr__(name: str) -> object:
    """Load a public name from its home module on first use (PEP 562)."""
    try:
        home = _HOME[name]
    except KeyError:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg) from None
    return getattr(import_module(f"{__name__}.{home}"), name)
