"""Read many trials, in other processes where there is enough to read.

Reading begins while trials are still being found. Own processes over pipes rather than a
process pool: a pool imports the caller's main module again (a script without a main guard,
a notebook's kernel), and its workers outlive a killed parent. Ours see their input end and leave.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

import msgspec

from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.trial import unread_trial
from akm_harbor.trials.worker import ChunkRead, Request, joined, read_chunk, receive, send

_CHUNK = 64
_WORTH_BYTES = 24 * 1024 * 1024
_WORTH_TRIALS = 2000
_UNTAKEN_BYTES = 64 * 1024 * 1024

_decode = msgspec.msgpack.Decoder(ChunkRead).decode


class Reader:
    """Takes trials as they are found, and gives what they hold in the same order.

    Args:
        reward_key: which key of the rewards is the primary one.
        now_ns: when the collection began.
        workers: processes; None decides by what there is to read, 0 or 1 reads here.
    """

    def __init__(self, reward_key: str, now_ns: int, workers: int | None = None) -> None:
        self._reward_key = reward_key
        self._now_ns = now_ns
        self._workers = min(os.cpu_count() or 1, 8) if workers is None else workers
        self._at_once = workers is not None
        self._trials = self._bytes = self._asked = 0
        self._held: list[TrialDir] = []
        self._requests: SimpleQueue[Request | None] = SimpleQueue()
        self._crew: _Crew | None = None

    def give(self, trials: Iterable[TrialDir]) -> None:
        """Take trials to read; workers begin with them as soon as they are worth their start."""
        self._held += trials
        if len(self._held) > _CHUNK:
            *full, self._held = _chunks(self._held)
            self._ask(full)

    def read(self) -> Iterator[ChunkRead]:
        """What all the trials given hold, a chunk at a time, in order."""
        self._ask(_chunks(self._held))
        self._requests.put(None)
        if self._crew is None:
            yield from map(read_chunk, iter(self._requests.get, None))
        else:
            yield from self._crew.answers()

    def _ask(self, chunks: list[list[TrialDir]]) -> None:
        for chunk in chunks:
            self._requests.put(Request(self._asked, chunk, self._reward_key, self._now_ns))
            self._asked += 1
            if self._crew is None and self._workers > 1 and self._worth_it(chunk):
                self._crew = _Crew(iter(self._requests.get, None), self._workers)

    def _worth_it(self, chunk: list[TrialDir]) -> bool:
        self._trials += len(chunk)
        self._bytes += sum(map(_weight, chunk))
        return self._at_once or self._trials >= _WORTH_TRIALS or self._bytes >= _WORTH_BYTES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._requests.put(None)
        if self._crew is not None:
            self._crew.close()


def _weight(trial: TrialDir) -> int:
    """Bytes that take time to parse, roughly: the trajectory and the printed stream."""
    total = 0
    if "agent" in trial.folders:
        for name in ("trajectory.json", "opencode.txt"):
            try:
                total += os.lstat(f"{trial.path}/agent/{name}").st_size
            except OSError:
                continue
    return total


def _chunks(trials: list[TrialDir]) -> list[list[TrialDir]]:
    """Runs of at most 64 trials or about 24 MB, so that no worker is left with all the weight."""
    chunks: list[list[TrialDir]] = []
    weight = 0
    for trial in trials:
        own = _weight(trial)
        if not chunks or len(chunks[-1]) >= _CHUNK or weight + own > _WORTH_BYTES:
            chunks.append([])
            weight = 0
        chunks[-1].append(trial)
        weight += own
    return chunks


def _in_order(requests: Iterable[Request], workers: int) -> Iterator[ChunkRead]:
    """Answers in the order of the requests, which may still be coming."""
    return _Crew(iter(requests), workers).answers()


class _Crew:
    """Threads that drive a worker each. They stay ahead of who takes the answers, but not without bound."""

    def __init__(self, requests: Iterator[Request], workers: int) -> None:
        self._requests = requests
        self._asking = threading.Lock()
        self._done: SimpleQueue[_Done | BaseException | None] = SimpleQueue()
        self._room = threading.Condition()
        self._untaken = 0
        self._closed = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(workers)]
        for thread in self._threads:
            thread.start()

    def answers(self) -> Iterator[ChunkRead]:
        """What was read, in the order of the requests."""
        waiting: dict[int, _Done] = {}
        number, running = 0, len(self._threads)
        while running:
            got = self._done.get()
            if isinstance(got, BaseException):
                raise got
            if got is None:
                running -= 1
            else:
                waiting[got[0].number] = got
            while number in waiting:
                yield from self._taken(*waiting.pop(number))
                number += 1

    def close(self) -> None:
        """Stop after what is being read now."""
        with self._room:
            self._closed = True
            self._room.notify_all()
        for thread in self._threads:
            thread.join(timeout=10)

    def _serve(self) -> None:
        """Drive one worker, and start another when it dies."""
        worker = None
        try:
            while (request := self._next()) is not None:
                worker = worker or _start()
                answer = _ask(worker, request)
                if answer is None:
                    _stop(worker)
                    worker = None
                with self._room:
                    self._untaken += _size(answer)
                self._done.put((request, answer))
            self._done.put(None)
        except BaseException as error:  # noqa: BLE001  (raised again where the answers are taken)
            self._done.put(error)
        finally:
            if worker is not None:
                _stop(worker)

    def _next(self) -> Request | None:
        # Waiting comes before asking: so the oldest answer that is not there yet is always being read.
        with self._room:
            self._room.wait_for(lambda: self._closed or self._untaken < _UNTAKEN_BYTES)
        with self._asking:
            return None if self._closed else next(self._requests, None)

    def _taken(self, request: Request, answer: bytes | ChunkRead | None) -> list[ChunkRead]:
        with self._room:
            self._untaken -= _size(answer)
            self._room.notify_all()
        read = _decoded(answer)
        return _one_by_one(request) if read is None else [read]


type _Done = tuple[Request, bytes | ChunkRead | None]
"""A request and its answer, still encoded: decoded it takes ten times the room. None when the worker died."""


def _size(answer: bytes | ChunkRead | None) -> int:
    return len(answer) if isinstance(answer, bytes) else 0


def _decoded(answer: bytes | ChunkRead | None) -> ChunkRead | None:
    try:
        return _decode(answer) if isinstance(answer, bytes) else answer
    except msgspec.MsgspecError:
        return None


def _start() -> "subprocess.Popen[bytes]":
    # The package may be importable only through the parent's path (a checkout, a zip).
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", "akm_harbor.trials.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path},
    )


def _ask(worker: "subprocess.Popen[bytes]", request: Request) -> bytes | ChunkRead | None:
    """The worker's answer; None when it died over it."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        send(worker.stdin, request)
        return receive(worker.stdout)
    except UnicodeEncodeError:  # a name that is not UTF-8 cannot be told over the pipe
        return read_chunk(request)
    except OSError:
        return None


def _stop(worker: "subprocess.Popen[bytes]") -> None:
    for pipe in (worker.stdin, worker.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            continue
    try:
        worker.wait(timeout=5)
    except subprocess.TimeoutExpired:
        worker.kill()
        worker.wait()


def _one_by_one(request: Request) -> list[ChunkRead]:
    """A worker died over a chunk: find the trial that kills it and keep the row."""
    reads: list[ChunkRead] = []
    for trial in request.trials:
        worker = _start()
        answer = _ask(worker, Request(0, [trial], request.reward_key, request.now_ns))
        _stop(worker)
        reads.append(_decoded(answer) or joined([unread_trial(trial)]))
    return reads
