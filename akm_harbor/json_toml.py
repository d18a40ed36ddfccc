"""JSON and TOML from a stranger: nesting that no reader's stack holds is a syntax error like any other."""

import json
import re
import tomllib
from typing import Any

_HALF = re.compile("[\ud800-\udfff]")


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse JSON.

    Args:
        text: the document.
        options: as for `json.loads`.

    Raises:
        json.JSONDecodeError: not JSON, or nested too deeply.
    """
    try:
        return json.loads(text, **options)
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        tomllib.TOMLDecodeError: not TOML, or nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None


def without_surrogates(value: Any) -> Any:
    """The value with halves of surrogate pairs, which no UTF-8 file can hold, replaced by U+FFFD."""
    if isinstance(value, str):
        return value if value.isascii() else _HALF.sub("\ufffd", value)
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    return value
