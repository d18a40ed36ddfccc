"""Every model call on disk before anything is done with it.

One JSON line an event: `sent` before a request goes out, `reply` when its answer is here. A line
is synced before anybody hears of it. What was sent and has no reply was in flight when the process
ended: whether it was paid for cannot be known, so it is counted, and charged to the cap.
"""

import contextlib
import errno
import json
import os
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer.calls import Reply

_RESERVE = 4 << 20
_VERSION = 1


class DiskFullError(AkmHarborError):
    """No room for another line; what was in flight has been written."""


@dataclass(slots=True)
class Recorded:
    """What a journal holds.

    Attributes:
        replies: key -> the reply; of several, an answer before a failure.
        sent: key -> requests sent for it.
        in_flight: keys of requests whose end is not recorded, with the most they can have cost.
        lost: requests that were in flight when a process ended, and were made again since.
        charged: USD set against those, and against failed attempts that the server may have charged for.
        torn: bytes of a line that was cut off at the end.
    """

    replies: dict[str, Reply] = field(default_factory=dict)
    sent: Counter[str] = field(default_factory=Counter)
    in_flight: dict[str, float] = field(default_factory=dict)
    lost: int = 0
    charged: float = 0.0
    torn: int = 0

    @property
    def uncertain(self) -> int:
        """Requests of which nobody knows whether they were charged for."""
        return len(self.in_flight) + self.lost


def read_journal(path: Path) -> Recorded:
    """Read a journal; a torn last line is left out and counted.

    Raises:
        AkmHarborError: a line that is damaged in the middle of the file, or another version's.
    """
    recorded = Recorded()
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return recorded
    except OSError as error:
        raise AkmHarborError(f"the journal of calls cannot be read ({error.strerror})", path=path) from error
    body, _, tail = data.rpartition(b"\n")
    recorded.torn = len(tail)
    for number, line in enumerate(body.split(b"\n") if body else [], start=1):
        try:
            _take(recorded, json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise AkmHarborError(
                f"line {number} of the journal of calls is damaged ({error})",
                path=path,
                hint="It holds answers that were paid for: mend or delete that line, then run again.",
            ) from error
    return recorded


def _take(recorded: Recorded, event: dict[str, Any]) -> None:
    if event.pop("version") != _VERSION:
        raise ValueError("written by another version")
    kind, key = event.pop("event"), event["key"]
    if kind == "sent":
        recorded.sent[key] += 1
        if key in recorded.in_flight:
            recorded.lost += 1
            recorded.charged += recorded.in_flight[key]
        recorded.in_flight[key] = float(event["at_most_usd"] or 0)
        return
    recorded.in_flight.pop(key, None)
    recorded.charged += float(event.pop("charged_usd", 0) or 0)
    if kind == "reply":
        reply = Reply(**event, taken_over=True)
        old = recorded.replies.get(key)
        if old is None or not old.answered:
            recorded.replies[key] = reply


class Journal:
    """A journal open for writing, by one process at a time."""

    def __init__(self, path: Path) -> None:
        """Open it, after whoever writes to it now has finished.

        Raises:
            AkmHarborError: it cannot be written, or is damaged.
        """
        self.path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            _wait_for_lock(self._file.fileno())
            self.recorded = read_journal(path)
            if self.recorded.torn:
                self._file.truncate(path.stat().st_size - self.recorded.torn)
            self._end = path.stat().st_size
            self._reserve = path.with_name(f".{path.name}.reserve")
            self._keep_reserve()
        except OSError as error:
            raise AkmHarborError(
                f"the journal of calls cannot be written ({error.strerror or error})",
                path=path,
                hint="Nothing is sent that could not be recorded: make room, or choose another place.",
            ) from error

    def sent(self, key: str, at_most_usd: float | None) -> None:
        """Record that a request is about to go out.

        Raises:
            DiskFullError: there is no room, so it must not be sent.
        """
        self._write({"event": "sent", "key": key, "at_most_usd": at_most_usd}, last_words=False)

    def failed(self, key: str, kind: str, charged_usd: float) -> None:
        """Record that an attempt failed and is over, and what the server may have charged for it.

        Raises:
            DiskFullError: there was no room; it is written all the same, into room kept for it.
        """
        event = {"event": "failed", "key": key, "error_class": kind, "charged_usd": charged_usd}
        self._write(event, last_words=True)

    def reply(self, reply: Reply) -> None:
        """Record what became of a call.

        Raises:
            DiskFullError: there was no room; the reply is written all the same, into room kept for it.
        """
        self._write({"event": "reply", **reply.to_json()}, last_words=True)

    def _write(self, event: dict[str, Any], *, last_words: bool) -> None:
        line = json.dumps({"version": _VERSION, **event}, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            try:
                self._append(line)
            except OSError as error:
                if last_words and error.errno in (errno.ENOSPC, errno.EDQUOT):
                    self._reserve.unlink(missing_ok=True)
                    with contextlib.suppress(OSError):  # two failures in a row: the message below says so
                        self._append(line)
                raise DiskFullError(
                    f"the journal of calls cannot be written ({error.strerror})",
                    path=self.path,
                    hint="Every answer received is kept: make room and run the same command again.",
                ) from error

    def _append(self, line: bytes) -> None:
        """Write a whole line or none of it."""
        try:
            written = self._file.write(line)
            while written is not None and written < len(line):
                written += self._file.write(line[written:]) or 0
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self._end)
            raise
        self._end += len(line)

    def _keep_reserve(self) -> None:
        """Hold some room for the answers that are on their way when the disk fills up."""
        if not self._reserve.exists():
            with self._reserve.open("wb") as file:
                file.write(os.urandom(1 << 20) * (_RESERVE >> 20))
                file.flush()
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close it and let the next one in."""
        self._reserve.unlink(missing_ok=True)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _wait_for_lock(descriptor: int) -> None:
    """Wait until no other process writes here; where the system has no such locks, go on."""
    try:
        import fcntl
    except ImportError:
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
