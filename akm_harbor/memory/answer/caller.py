"""Make model calls: so many at once, at a rate, within a cap, each tried a bounded number of times, all journalled."""

import os
import random
import threading
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from akm_harbor.memory.answer import failures
from akm_harbor.memory.answer.calls import ANSWERED, FAILED, READER, Reply, Request, as_messages
from akm_harbor.memory.answer.endpoint import complete
from akm_harbor.memory.answer.failures import CallError
from akm_harbor.memory.answer.journal import DiskFullError, Journal
from akm_harbor.memory.answer.limits import Cap, Rate

_FIRST_WAIT, _LONGEST_WAIT = 1.0, 60.0
_GIVE_UP_AFTER = 3  # calls in a row that failed with all their attempts: the server is not there


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the calls of one role go.

    Attributes:
        model: as litellm names it.
        api_base: the server's address; empty: the provider's own.
        api_key_env: the variable that holds the key; empty: as litellm finds it.
        serves: names under which the model may answer; empty: the model's own, or a dated snapshot of it.
        price: USD per million tokens, (input, output); None: unknown.
        attempts: requests a call may take.
        timeout_s: how long one request may take.
        first_wait_s: pause before the second attempt, doubled each time.
        requests_per_minute: None: no limit.
        tokens_per_minute: prompt tokens; None: no limit.
    """

    model: str
    api_base: str = ""
    api_key_env: str = ""
    serves: tuple[str, ...] = ()
    price: tuple[float, float] | None = None
    attempts: int = 6
    timeout_s: float = 120.0
    first_wait_s: float = _FIRST_WAIT
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def usd(self, in_tok: int | None, out_tok: int | None) -> float | None:
        """Price of one call; None: unknown."""
        if self.price is None or in_tok is None or out_tok is None:
            return None
        return (in_tok * self.price[0] + out_tok * self.price[1]) / 1e6

    def at_most(self, request: Request) -> float | None:
        """The most a request can cost: its prompt with a tenth on top, and all it may say."""
        return self.usd(int(request.in_tokens * 1.1) + 16, request.max_tokens)

    def is_served_by(self, name: str) -> bool:
        """Whether an answer that names this model is one of the model asked for."""
        if self.serves:
            return name in self.serves
        asked = self.model.rpartition("/")[2]
        short = name.rpartition("/")[2]
        return short == asked or (short.startswith(f"{asked}-") and short[len(asked) + 1 :].replace("-", "").isdigit())


class Caller:
    """Makes calls for two endpoints; thread-safe: one `call` a thread."""

    def __init__(self, reader: Endpoint, judge: Endpoint | None, cap: Cap, journal: Journal) -> None:
        self._endpoints = {READER: reader}
        self._judge = judge or reader
        self._rates = {id(e): Rate(e.requests_per_minute, e.tokens_per_minute) for e in (reader, self._judge)}
        self._cap = cap
        self._journal = journal
        self._lock = threading.Lock()
        self._in_a_row = 0
        self.stop = threading.Event()
        self.draining = threading.Event()
        self.stopped_by: tuple[str, str] | None = None
        recorded = journal.recorded
        cap.spent += sum(reply.usd or 0.0 for reply in recorded.replies.values())
        cap.spent += sum(recorded.in_flight.values()) + recorded.charged
        cap.calls += recorded.sent.total()

    def call(self, request: Request) -> Reply:
        """Make one call; whatever happens is in the reply, never an exception."""
        endpoint = self._endpoints.get(request.role, self._judge)
        failed = Reply(request.key, request.role, FAILED, endpoint.model)
        attempt = 0
        while True:
            self._rates[id(endpoint)].wait(request.in_tokens, self.stop)
            at_most = endpoint.at_most(request)
            held = self._held_back(request, at_most)
            if held is not None:
                return replace(failed, attempts=attempt, error_class=held[0], error=held[1])
            attempt += 1
            started = _now()
            try:
                reply = replace(self._attempt(request, endpoint, at_most), attempts=attempt, started_at=started)
            except CallError as error:
                last = replace(
                    failed,
                    attempts=attempt,
                    error_class=error.kind,
                    error=error.message,
                    started_at=started,
                    ended_at=_now(),
                )
                if not self._try_again(error, attempt, endpoint):
                    return self._finish(last, endpoint)
            else:
                return self._finish(reply, endpoint)

    def _held_back(self, request: Request, at_most: float | None) -> tuple[str, str] | None:
        """Why a request may not go out, after everything that must be done before it does."""
        if self.stopped_by is not None:
            return failures.STOPPED, f"not sent: the run had been stopped ({self.stopped_by[0]})"
        if self.stop.is_set():
            return failures.STOPPED, "not sent: the run had been stopped"
        with self._lock:
            if not self._cap.reserve(at_most):
                limit = f"{self._cap.max_usd} USD" if self._cap.max_usd is not None else f"{self._cap.max_calls} calls"
                return failures.CAP_REACHED, f"not sent: it could have cost more than is left of {limit}"
        try:
            self._journal.sent(request.key, at_most)
        except DiskFullError as error:
            with self._lock:
                self._cap.settle(at_most, 0.0)
            self._halt(failures.DISK_FULL, error.message)
            return failures.DISK_FULL, error.message
        return None

    def _attempt(self, request: Request, endpoint: Endpoint, at_most: float | None) -> Reply:
        """One request that has been reserved and recorded."""
        try:
            got = complete(
                endpoint.model,
                as_messages(request.messages),
                dict(request.settings),
                api_base=endpoint.api_base or None,
                api_key=os.environ.get(endpoint.api_key_env) if endpoint.api_key_env else None,
                timeout_s=endpoint.timeout_s,
            )
        except CallError as error:
            charged = (at_most or 0.0) if error.kind in failures.PERHAPS_PAID else 0.0
            with self._lock:
                self._cap.settle(at_most, charged)
            try:
                self._journal.failed(request.key, error.kind, charged)
            except DiskFullError as full:
                self._halt(failures.DISK_FULL, full.message)
            raise
        usd = endpoint.usd(got["in_tok"], got["out_tok"])
        with self._lock:
            self._cap.settle(at_most, usd if usd is not None else at_most or 0.0)
        reply = Reply(
            request.key,
            request.role,
            ANSWERED,
            endpoint.model,
            got["model"],
            got["text"],
            got["finish_reason"],
            got["in_tok"],
            got["out_tok"],
            usd,
            ended_at=_now(),
        )
        if endpoint.is_served_by(got["model"]):
            return reply
        message = f"{endpoint.model} was asked for, {got['model'] or 'an unnamed model'} answered"
        return replace(reply, error_class=failures.OTHER_MODEL, error=message)

    def _try_again(self, error: CallError, attempt: int, endpoint: Endpoint) -> bool:
        """Wait, and say whether to go on."""
        if error.kind not in failures.RETRIED or attempt >= endpoint.attempts or self.draining.is_set():
            return False
        backoff = min(endpoint.first_wait_s * 2 ** (attempt - 1), _LONGEST_WAIT)
        pause = error.retry_after if error.retry_after is not None else backoff * (0.5 + random.random() / 2)  # noqa: S311
        return not self.stop.wait(min(pause, _LONGEST_WAIT))

    def _finish(self, reply: Reply, endpoint: Endpoint) -> Reply:
        """Journal a call's end; stop everything where another call would end the same way."""
        try:
            self._journal.reply(reply)
        except DiskFullError as error:
            self._halt(failures.DISK_FULL, error.message)
        kind = reply.error_class
        with self._lock:
            self._in_a_row = self._in_a_row + 1 if kind in failures.RETRIED else 0
            gone = self._in_a_row >= _GIVE_UP_AFTER
        if kind in failures.FATAL or kind == failures.OTHER_MODEL:
            self._halt(kind, reply.error or kind)
        elif gone and kind is not None:
            self._halt(
                kind, f"{_GIVE_UP_AFTER} calls in a row failed after {endpoint.attempts} attempts: {reply.error}"
            )
        return reply

    def _halt(self, kind: str, message: str) -> None:
        with self._lock:
            self.stopped_by = self.stopped_by or (kind, message)
        self.stop.set()

    def spent(self) -> dict[str, Any]:
        """Money and requests so far, earlier runs included."""
        with self._lock:
            return {"usd": self._cap.spent, "requests": self._cap.calls}


def _now() -> str:
    return datetime.now(UTC).isoformat()
