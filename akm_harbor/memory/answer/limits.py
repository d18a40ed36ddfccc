"""What holds a run back: requests and tokens a minute, and money."""

import threading
import time
from collections import deque
from dataclasses import dataclass

_MINUTE = 60.0


class Rate:
    """At most so many requests and prompt tokens in any minute."""

    def __init__(self, requests: int | None, tokens: int | None) -> None:
        self._requests = requests
        self._tokens = tokens
        self._sent: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()

    def wait(self, tokens: int, stop: threading.Event) -> None:
        """Return when a request of so many tokens may go out, or when the run stops."""
        while not stop.is_set():
            with self._lock:
                pause = self._pause(tokens)
                if pause <= 0:
                    self._sent.append((time.monotonic(), tokens))
                    return
            stop.wait(min(pause, 1.0))

    def _pause(self, tokens: int) -> float:
        now = time.monotonic()
        while self._sent and self._sent[0][0] <= now - _MINUTE:
            self._sent.popleft()
        pause = 0.0
        if self._requests is not None and len(self._sent) >= self._requests:
            pause = self._sent[len(self._sent) - self._requests][0] + _MINUTE - now
        if self._tokens is not None and self._sent:
            room = self._tokens - tokens - sum(size for _, size in self._sent)
            for sent, size in self._sent:  # wait for the oldest ones to leave the window
                if room >= 0:
                    break
                room += size
                pause = max(pause, sent + _MINUTE - now)
        return pause


@dataclass(slots=True)
class Cap:
    """Money and calls: what is spent, what may still be charged for calls on their way, and the limit.

    Attributes:
        max_usd: never more than this; None: no limit.
        max_calls: never more requests than this; None: no limit.
        spent: USD, uncertain charges at their most.
        reserved: the most that calls on their way can cost.
        calls: requests sent.
    """

    max_usd: float | None
    max_calls: int | None
    spent: float = 0.0
    reserved: float = 0.0
    calls: int = 0

    def reserve(self, at_most: float | None) -> bool:
        """Set aside what a request can cost at most; False: it would break the cap."""
        cost = at_most or 0.0
        if self.max_usd is not None and self.spent + self.reserved + cost > self.max_usd + 1e-12:
            return False
        if self.max_calls is not None and self.calls >= self.max_calls:
            return False
        self.reserved += cost
        self.calls += 1
        return True

    def settle(self, at_most: float | None, cost: float) -> None:
        """Replace what was set aside by what it cost."""
        self.reserved -= at_most or 0.0
        self.spent += cost
