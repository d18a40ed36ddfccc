"""Parquet files under any name: by themselves Arrow and pandas take only paths that are UTF-8."""

import os
from pathlib import Path

import pyarrow as pa
from pyarrow.parquet import ParquetFile

__all__ = ["ParquetFile", "opened", "parquet_file"]


def opened(path: Path, mode: str = "rb") -> pa.OSFile:
    """A file for Arrow to read or write.

    Raises:
        OSError: it is not there, or may not be opened.
    """
    return pa.OSFile(os.fsencode(path), mode)


def parquet_file(path: Path) -> ParquetFile:
    """A Parquet file, its footer read.

    Raises:
        OSError: it is not there, or cannot be read.
        pyarrow.ArrowInvalid: not Parquet.
    """
    return ParquetFile(opened(path), page_checksum_verification=True)
