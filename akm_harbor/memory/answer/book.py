"""The calls of a study: what was answered before, what is asked now, and one place to look both up."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer import failures
from akm_harbor.memory.answer.caller import Endpoint
from akm_harbor.memory.answer.calls import JUDGE, READER, Reply, Request
from akm_harbor.memory.answer.journal import Recorded, read_journal
from akm_harbor.memory.answer.keeper import Keeper, Terms

type Progress = Callable[[int, int], None]


class Book:
    """Looks calls up, and makes those that are missing; the calling process starts with the first of them."""

    def __init__(self, journal: Path, terms: Terms) -> None:
        """Open the book; nothing is called yet.

        Raises:
            AkmHarborError: the journal is damaged.
        """
        self.journal = journal
        self._terms = terms
        self._keeper: Keeper | None = None
        self._failed: dict[str, Reply] = {}
        self._known: dict[str, Reply] = {}
        self.used: dict[str, Reply] = {}
        self.recorded = Recorded()
        self._take(read_journal(journal))
        self.stopped_by: tuple[str, str] | None = None
        self.requests_before = self.recorded.sent.total()

    def _take(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self._known = {key: reply for key, reply in recorded.replies.items() if reply.answered}

    def endpoint(self, role: str) -> Endpoint:
        """Where a role's calls go."""
        return self._terms.reader if role == READER or self._terms.judge is None else self._terms.judge

    def find(self, key: str) -> Reply | None:
        """The reply to a request by its key, or the failure of this run; None: it was not asked."""
        reply = self._known.get(key) or self._failed.get(key)
        if reply is not None:
            self.used[key] = reply
        return reply

    def make(self, requests: Iterable[Request], total: int, progress: Progress | None = None) -> None:
        """Make the calls that are missing; every one has a reply or a failure afterwards.

        Raises:
            AkmHarborError: the calling process could not start, or ended.
        """
        done = 0

        def missing() -> Iterator[Request]:
            nonlocal done
            seen: set[str] = set()
            for request in requests:
                key = request.key
                if key in seen:
                    continue
                seen.add(key)
                if key in self._known:
                    self._check_served(request, self._known[key])
                    done += 1
                elif self.stopped_by is not None:
                    self._failed[key] = self._not_sent(request)
                    done += 1
                else:
                    yield request

        asked = missing()
        first = next(asked, None)
        if first is not None:
            for reply in self._start().ask(_chain(first, asked)):
                (self._known if reply.answered else self._failed)[reply.key] = reply
                done += 1
                self.stopped_by = self.stopped_by or self._start().stopped_by
                if progress is not None:
                    progress(done, total)
        if progress is not None:
            progress(done, total)

    def _start(self) -> Keeper:
        if self._keeper is None:
            self._keeper = Keeper(self.journal, self._terms)
            self._take(read_journal(self.journal))  # an earlier run's calls may have ended while we waited
        return self._keeper

    def served_as_asked(self, reply: Reply) -> bool:
        """Whether the model that answered is the one that was asked for."""
        return self.endpoint(reply.role).is_served_by(reply.model_served or "")

    def _check_served(self, request: Request, reply: Reply) -> None:
        if self.stopped_by is None and not self.served_as_asked(reply):
            message = f"{request.model} was asked for, {reply.model_served or 'an unnamed model'} answered"
            self.stopped_by = (failures.OTHER_MODEL, message)

    def _not_sent(self, request: Request) -> Reply:
        assert self.stopped_by is not None
        why = f"not sent: the run had been stopped ({self.stopped_by[0]})"
        return Reply(request.key, request.role, "failed", request.model, error_class=failures.STOPPED, error=why)

    def counts(self) -> dict[str, object]:
        """How many calls were answered now and before, failed, retried, or are uncertain."""
        replies = list(self.used.values())
        classes = Counter(r.error_class for r in replies if r.error_class is not None)
        return {
            "answered": sum(r.answered and not r.taken_over for r in replies),
            "taken_over": sum(r.answered and r.taken_over for r in replies),
            "failed": sum(not r.answered for r in replies),
            "retried": sum(max(0, r.attempts - 1) for r in replies),
            "uncertain": self.recorded.uncertain,
            "by_class": dict(sorted(classes.items())),
        }

    def spent(self) -> float:
        """USD so far, earlier runs included, uncertain charges at their most."""
        if self._keeper is not None and self._keeper.spent["requests"]:
            return float(self._keeper.spent["usd"])
        before = sum(r.usd or 0.0 for r in self.recorded.replies.values())
        return before + sum(self.recorded.in_flight.values()) + self.recorded.charged

    def price(self, reply: Reply | None) -> float | None:
        """Price of a call by the terms of this study."""
        if reply is None or not reply.answered:
            return None
        return self.endpoint(reply.role).usd(reply.in_tok, reply.out_tok)

    def close(self) -> None:
        """Let calls in flight end."""
        if self._keeper is not None:
            self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _chain(first: Request, rest: Iterator[Request]) -> Iterator[Request]:
    yield first
    yield from rest


def check_keys(terms: Terms, environment: "dict[str, str]") -> None:
    """Refuse to start without the keys that the study names.

    Raises:
        AkmHarborError: a variable is not set.
    """
    for role, endpoint in ((READER, terms.reader), (JUDGE, terms.judge)):
        if endpoint is not None and endpoint.api_key_env and not environment.get(endpoint.api_key_env):
            raise AkmHarborError(
                f"the {role}'s key is not set", hint=f"Put it into the variable {endpoint.api_key_env}."
            )
