"""One writer of a history at a time: two cron jobs at once would lose a row."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from akm_harbor.errors import AkmHarborError

_WAIT_SECONDS = 10.0
_STALE_SECONDS = 120.0


@contextmanager
def locked(history: Path) -> Iterator[None]:
    """Hold the lock beside a history.

    Raises:
        AkmHarborError: another process holds the lock, or the place cannot be written.
    """
    lock = history.with_name(f".{history.name}.lock")
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            history.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            break
        except FileExistsError:
            _break_stale(lock)
            if time.monotonic() > deadline:
                raise AkmHarborError(
                    "another snapshot is being written",
                    path=history,
                    hint=f"If none is running, delete {lock.name} beside it.",
                ) from None
            time.sleep(0.05)
        except OSError as error:
            raise AkmHarborError(
                f"cannot be written ({error.strerror})", path=history, hint="Name a writable folder with --history."
            ) from error
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)


def _break_stale(lock: Path) -> None:
    """A killed process leaves its lock behind; nothing here takes minutes."""
    try:
        if time.time() - lock.stat().st_mtime > _STALE_SECONDS:
            lock.unlink(missing_ok=True)
    except FileNotFoundError:
        return
