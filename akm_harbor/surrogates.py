"""Halves of surrogate pairs: what a name that is no UTF-8, or an escape in JSON, leaves in a text.

No UTF-8 file, Parquet table or notebook can hold them.
"""

import re
from typing import Any

HALF = re.compile("[\ud800-\udfff]")


def plain(text: str) -> str:
    """A file name, or any text, as that UTF-8 can hold: bytes of it that are none become U+FFFD."""
    return text if text.isascii() else HALF.sub("\ufffd", text)


def without_surrogates(value: Any) -> Any:
    """What JSON gave, with every text in it plain."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {without_surrogates(k): without_surrogates(v) for k, v in value.items()}
    if isinstance(value, list):
        return [without_surrogates(item) for item in value]
    return value
