"""The process that makes the calls, and outlives the one that asked for them.

A run that is killed must not lose an answer that is already on its way: it would be paid for twice.
So the calls are made by a process of its own session. When the run goes away, at any moment and by
any signal, its pipe closes; this process then sends nothing more, waits for what is in flight,
journals it and ends. The next run waits for the journal, and finds the answers in it.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer import endpoint
from akm_harbor.memory.answer.caller import Caller, Endpoint
from akm_harbor.memory.answer.calls import Reply, Request
from akm_harbor.memory.answer.journal import Journal
from akm_harbor.memory.answer.limits import Cap

_MODULE = "akm_harbor.memory.answer.keeper"


@dataclass(frozen=True, slots=True)
class Terms:
    """What the calls are made under.

    Attributes:
        reader: where readers' calls go.
        judge: where judges' calls go; None: no judge.
        max_usd: cap; None: none.
        max_calls: cap on requests; None: none.
        concurrency: calls at once.
    """

    reader: Endpoint
    judge: Endpoint | None
    max_usd: float | None
    max_calls: int | None
    concurrency: int


class Keeper:
    """The calling process, seen from the run.

    Attributes:
        stopped_by: (kind, message) of what made it stop sending; None: it did not.
        spent: `usd` and `requests`, uncertain charges at their most.
    """

    def __init__(self, journal: Path, terms: Terms) -> None:
        """Start it; it is ready when an earlier one has finished its calls.

        Raises:
            AkmHarborError: it could not start: the journal is damaged or cannot be written.
        """
        self._terms = terms
        self.stopped_by: tuple[str, str] | None = None
        self.spent: dict[str, Any] = {"usd": 0.0, "requests": 0}
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(journal)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
            env={**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )
        self._tell(asdict(terms))
        hello = self._hear()
        if "error" in hello:
            self.close()
            raise AkmHarborError(hello["error"], path=hello.get("path"), hint=hello.get("hint"))

    def ask(self, requests: Iterable[Request]) -> Iterator[Reply]:
        """Make calls; replies come as they end, in any order."""
        waiting = 0
        for request in requests:
            self._tell(asdict(request))
            waiting += 1
            while waiting >= self._terms.concurrency * 2:
                yield self._reply()
                waiting -= 1
        for _ in range(waiting):
            yield self._reply()

    def _reply(self) -> Reply:
        heard = self._hear()
        self.spent = heard["spent"]
        if heard["stopped_by"] is not None:
            self.stopped_by = (heard["stopped_by"][0], heard["stopped_by"][1])
        return Reply(**heard["reply"])

    def _tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._gone() from error

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith("\n"):
            raise self._gone()
        heard: dict[str, Any] = json.loads(line)
        return heard

    def _gone(self) -> AkmHarborError:
        return AkmHarborError(
            f"the process that makes the model calls ended (exit code {self._process.poll()})",
            hint="What was answered is in the journal: run the same command again.",
        )

    def close(self) -> None:
        """Let it finish what is in flight, and end."""
        for pipe in (self._process.stdin, self._process.stdout):
            try:
                if pipe is not None:
                    pipe.close()
            except OSError:
                continue
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def _serve(journal_path: Path, requests: IO[str], replies: IO[str]) -> None:
    """Read terms and requests, write replies, until the asking side goes away."""
    speaking = threading.Lock()

    def say(message: dict[str, Any]) -> None:
        try:
            with speaking:
                replies.write(json.dumps(message) + "\n")
                replies.flush()
        except (OSError, ValueError):  # nobody listens any more; the journal has it
            return

    terms = json.loads(requests.readline() or "null")
    if terms is None:
        return
    try:
        journal = Journal(journal_path)
    except AkmHarborError as error:
        say({"error": error.message, "path": str(error.path), "hint": error.hint})
        return
    with journal:
        endpoint.warm_up()
        cap = Cap(terms["max_usd"], terms["max_calls"])
        judge = _endpoint(terms["judge"]) if terms["judge"] else None
        caller = Caller(_endpoint(terms["reader"]), judge, cap, journal)
        say({"ready": True})

        def work(request: Request) -> None:
            reply = caller.call(request)
            say({"reply": asdict(reply), "stopped_by": caller.stopped_by, "spent": caller.spent()})

        pool = ThreadPoolExecutor(terms["concurrency"], thread_name_prefix="call")
        for line in requests:
            pool.submit(work, _request(json.loads(line)))
        caller.draining.set()
        caller.stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def _endpoint(told: dict[str, Any]) -> Endpoint:
    price = told["price"]
    return Endpoint(**{**told, "serves": tuple(told["serves"]), "price": tuple(price) if price else None})


def _request(told: dict[str, Any]) -> Request:
    messages = tuple((role, content) for role, content in told["messages"])
    settings = tuple((name, value) for name, value in told["settings"])
    return Request(**{**told, "messages": messages, "settings": settings})


def main() -> None:
    """Serve on standard input and output; whatever else prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with open(0, encoding="utf-8", closefd=False) as requests:
        _serve(Path(sys.argv[1]), requests, replies)


if __name__ == "__main__":
    main()
