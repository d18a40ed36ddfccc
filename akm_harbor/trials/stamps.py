"""File stamps: how the cache knows that something is as it was."""

FOLDER = -1
"""In place of a size: the stamp is of a folder."""
RACY = -1
"""In place of an mtime too fresh to prove anything: it never matches, so what carries it is read again."""

_RACY_NS = 50_000_000

type Stamp = tuple[str, int, int]
"""path, size in bytes or `FOLDER`, mtime in ns or `RACY`"""


def stamp_of(mtime_ns: int, now_ns: int) -> int:
    """An mtime as the cache keeps it: `RACY` when a later change could still carry the same one."""
    return RACY if now_ns - mtime_ns < _RACY_NS else mtime_ns
