"""The benchmarks' own date spellings. An unparseable date is None, never today."""

import re
from datetime import UTC, datetime
from functools import lru_cache

_FORMATS = (
    "%Y/%m/%d (%a) %H:%M",  # LongMemEval
    "%I:%M %p on %d %B, %Y",  # LoCoMo
    "%B-%d-%Y",  # BEAM
    "%Y/%m/%d %H:%M",
    "%Y-%m-%d",
)
_SPACES = re.compile(r"\s+")


@lru_cache(maxsize=4096)
def parse_date(raw: str | None) -> datetime | None:
    """Parse a published date; the benchmarks name no zone, so the wall time is kept as UTC.

    A weekday that contradicts the date is accepted: the date is what the questions are about.
    """
    if raw is None:
        return None
    text = _SPACES.sub(" ", raw).strip()
    for form in _FORMATS:
        try:
            return datetime.strptime(text, form).replace(tzinfo=UTC)
        except ValueError:
            continue
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
