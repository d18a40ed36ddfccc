"""Machine-readable results: strict JSON from frozen dataclasses."""

import dataclasses
import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.atomic import write_file


def to_plain(value: Any) -> Any:
    """Turn dataclasses, tuples, dates and NumPy scalars into what JSON has.

    Raises:
        ValueError: NaN or infinity; JSON has neither and a reader must not meet one.
        TypeError: something that has no plain form.
    """
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("NaN or infinity has no place in a result")
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"type": type(value).__name__, **plain} if type(value).__name__ == "NotEstimable" else plain
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_plain(v) for v in value]
    if isinstance(value, (datetime, date, Path)):
        return str(value) if isinstance(value, Path) else value.isoformat()
    if hasattr(value, "item"):
        return to_plain(value.item())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def write_json(path: Path, value: Any) -> None:
    """Write strict, indented JSON, whole or not at all.

    Raises:
        AkmHarborError: the place cannot be written.
    """
    text = json.dumps(to_plain(value), indent=2, allow_nan=False, ensure_ascii=False)
    write_output(path, text + "\n")


def write_output(path: Path, content: str | bytes) -> None:
    """Write one output file, whole or not at all.

    Raises:
        AkmHarborError: the place cannot be written.
    """
    try:
        write_file(path, content)
    except OSError as error:
        raise AkmHarborError(
            f"cannot be written ({error.strerror or error})", path=path, hint="Choose a writable output folder."
        ) from error
