"""Whether tens of thousands of files are as they were: one question to the system each, on two cores.

That is nearly all that collecting again costs when nothing changed. The system answers in a
microsecond, so a second process pays only where it costs nothing to make: by forking.
"""

import os
from collections.abc import Sequence

from akm_harbor.trials.stamps import FOLDER

_WORTH = 10_000


def unchanged(paths: Sequence[str], sizes: Sequence[int], mtimes: Sequence[int]) -> bool:
    """Whether every file has its size and mtime, and every folder its mtime.

    Args:
        paths: what to look at; links are not followed.
        sizes: bytes, or `FOLDER`.
        mtimes: ns.
    """
    n = len(paths)
    if n < _WORTH or not _alone():
        return _same(paths, sizes, mtimes, 0, n)
    other = os.fork()
    if other == 0:
        answer = 1
        try:
            answer = 0 if _same(paths, sizes, mtimes, n // 2, n) else 1
        finally:
            os._exit(answer)  # nothing of the parent's is to be flushed or closed twice
    same = _same(paths, sizes, mtimes, 0, n // 2)
    try:
        return os.waitpid(other, 0)[1] == 0 and same
    except ChildProcessError:  # somebody else collects this process's children
        return same and _same(paths, sizes, mtimes, n // 2, n)


def _alone() -> bool:
    """Whether there are two cores, and no thread that a fork would cut off (where the system tells)."""
    try:
        return (os.cpu_count() or 1) > 1 and len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


def _same(paths: Sequence[str], sizes: Sequence[int], mtimes: Sequence[int], first: int, end: int) -> bool:
    lstat = os.lstat
    try:
        for number in range(first, end):
            info = lstat(paths[number])
            if info.st_mtime_ns != mtimes[number] or (sizes[number] != FOLDER and info.st_size != sizes[number]):
                return False
    except OSError:
        return False
    return True
