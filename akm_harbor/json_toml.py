"""JSON and TOML from a stranger: what no reader holds (nesting, digits) is a syntax error like any other."""

import json
import tomllib
from typing import Any


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse JSON.

    Args:
        text: the document.
        options: as for `json.loads`.

    Raises:
        json.JSONDecodeError: not JSON, nested too deeply, or a number of thousands of digits.
        UnicodeDecodeError: bytes that are no text.
    """
    try:
        return json.loads(text, **options)
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise
    except RecursionError:
        raise json.JSONDecodeError("nested too deeply", "", 0) from None
    except ValueError as error:  # a number of thousands of digits
        raise json.JSONDecodeError(str(error).partition(";")[0], "", 0) from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML.

    Raises:
        tomllib.TOMLDecodeError: not TOML, or nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deeply") from None
