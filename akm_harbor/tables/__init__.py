"""The ground floor: declared columns, atomic datasets, problems, safe SQLite reading."""

from akm_harbor.tables.columns import Column, Table
from akm_harbor.tables.dataset import open_dataset, read_frame, read_manifest, read_table, replace_dataset
from akm_harbor.tables.problems import PROBLEMS, Problem, Problems

__all__ = [
    "PROBLEMS",
    "Column",
    "Problem",
    "Problems",
    "Table",
    "open_dataset",
    "read_frame",
    "read_manifest",
    "read_table",
    "replace_dataset",
]
