"""Read untrusted JSON leniently, and take plain values out of it without ever raising."""

import json
import math
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from akm_harbor.surrogates import without_surrogates
from akm_harbor.tables.redact import REDACTED, redact_text, redact_value

_STRING_OR_SCRUBBED = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.+-]*\[REDACTED\][\w.+-]*')
_decode = msgspec.json.Decoder().decode


class InvalidJsonError(ValueError):
    """Bytes that are not JSON, with what a person needs to find the place.

    Attributes:
        kind: short stable name for the problems table.
        repaired: what could be read after putting Harbor's unquoted `[REDACTED]` in quotes,
            or None. Evidence, never a score: the scrubbed value may be the reward itself.
    """

    def __init__(self, kind: str, detail: str, repaired: Any = None) -> None:
        super().__init__(detail)
        self.kind = kind
        self.repaired = repaired


def parse_json(data: bytes) -> Any:
    """Parse JSON as Harbor's own files have it: NaN and lone surrogates are let through.

    Raises:
        InvalidJsonError: it is not JSON.
    """
    try:
        return _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return _parse_slowly(data)


def _parse_slowly(data: bytes) -> Any:
    if not data.strip(b" \t\r\n\x00"):
        raise InvalidJsonError("empty-file", "the file is empty")
    text = data.decode("utf-8-sig", "replace")
    try:
        return without_surrogates(json.loads(text, parse_int=_whole))
    except RecursionError:
        raise InvalidJsonError("invalid-json", "nested too deeply") from None
    except json.JSONDecodeError as error:
        detail = f"not JSON: {error.msg}, line {error.lineno} column {error.colno}"
    if "[REDACTED]" not in text:
        raise InvalidJsonError("invalid-json", detail)
    quoted = _STRING_OR_SCRUBBED.sub(lambda m: m[0] if m[0][0] == '"' else f'"{REDACTED}"', text)
    try:
        repaired = without_surrogates(json.loads(quoted, parse_int=_whole))
    except (json.JSONDecodeError, RecursionError):
        raise InvalidJsonError("invalid-json", detail) from None
    raise InvalidJsonError("redacted-json", f"{detail} (a secret scrubber replaced a bare value)", repaired)


def _whole(digits: str) -> float:
    """A whole number; Python refuses thousands of digits, and no column could hold them."""
    return int(digits) if len(digits) < 1000 else float(digits)


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def as_text(value: Any, limit: int = 2000) -> str | None:
    """The value if it is a non-empty string, cut; else None."""
    return value[:limit] if isinstance(value, str) and value else None


def as_int(value: Any) -> int | None:
    """The value if it is a whole number that fits 64 bits; else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else None


def as_float(value: Any) -> float | None:
    """The value if it is a finite number or a boolean; else None."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def as_bool(value: Any) -> bool | None:
    """The value if it is a boolean; else None."""
    return value if isinstance(value, bool) else None


def micros(value: Any) -> tuple[int | None, bool]:
    """Microseconds since 1970 UTC of an ISO 8601 time, and whether it carried no offset.

    A naive trial time is read as UTC: that is what Harbor writes.
    """
    if not isinstance(value, str):
        return None, False
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            # A float holds microseconds exactly for some centuries.
            return round(moment.timestamp() * 1e6), False
        return round(moment.replace(tzinfo=UTC).timestamp() * 1e6), True
    except (ValueError, OverflowError):
        return None, False


def to_json(value: Any, limit: int = 8000) -> str:
    """Compact JSON without secrets, cut at `limit` characters.

    A cut text is no longer JSON; it ends with an ellipsis so that nobody takes it for whole.
    """
    text = json.dumps(redact_value(value, limit=limit), ensure_ascii=False, separators=(",", ":"), default=str)
    return text if len(text) <= limit else redact_text(text[: limit - 1]) + "…"
