"""One JSON line per model request: what was offered and how large it was, never what it said."""

import json
import threading
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from akm_harbor.errors import AkmHarborError


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What is kept about one request.

    Attributes:
        session: the client's session id, if it sends one; it ties a request to a trial.
        called: names of the tools the answer called.
        outcome: `answered`, `fault`, `client-gone`, `bad-request` or `error`.
        seconds: from the request's arrival to the end of the answer.
    """

    kind: str
    arm: str | None = None
    task: str | None = None
    conversation: str | None = None
    session: str | None = None
    attempt: int | None = None
    turn: int | None = None
    rule: str | None = None
    model: str = ""
    stream: bool = False
    tools: tuple[str, ...] = ()
    system_chars: int = 0
    system_parts: tuple[int, ...] = ()
    prompt_tokens: int = 0
    called: tuple[str, ...] = ()
    fault: str | None = None
    status: int = 200
    outcome: str = "answered"
    seconds: float = 0.0


class RequestLog:
    """Appends records to a JSONL file; without a path it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        self._lock = threading.Lock()
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("a", encoding="utf-8") if path is not None else None
        except OSError as error:
            raise AkmHarborError(f"cannot write the request log ({error.strerror})", path=path) from None

    def write(self, record: RequestRecord, arrived: datetime) -> None:
        """Append one line; it is on disk when this returns.

        A line is written when its answer has gone out, so the file's order is that of the ends: sort by `at`,
        the time of arrival, for the order of the requests.
        """
        if self._file is None:
            return
        line = json.dumps({"version": 1, "at": arrived.isoformat(), **asdict(record)})
        with self._lock:
            if not self._file.closed:
                self._file.write(line + "\n")
                self._file.flush()

    def close(self) -> None:
        """Close the file; later records are dropped."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()
