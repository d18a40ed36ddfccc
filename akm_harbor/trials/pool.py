"""Read many trials, in other processes where there is enough to read.

Reading begins while trials are still being found. Own processes over pipes rather than a
process pool: a pool imports the caller's main module again (a script without a main guard,
a notebook's kernel), and its workers outlive a killed parent. Ours see their input end and leave.
"""

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Self

import msgspec

from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.trial import unread_trial
from akm_harbor.trials.worker import ChunkRead, Request, joined, read_chunk, receive, send

_CHUNK = 256
_AHEAD = 2
"""Requests a worker has at once, so that it need not wait while its answer is fetched."""
_WORTH_BYTES = 24 * 1024 * 1024
_WORTH_TRIALS = 2000
_UNTAKEN_BYTES = 64 * 1024 * 1024
_PIPE_BYTES = 1024 * 1024
"""An answer is a few of these, not dozens: for each, a worker waits until this process looks."""
_KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(1 << 26), "MALLOC_TRIM_THRESHOLD_": str(1 << 28)}
"""glibc's: trajectories of some MB come and go, and getting the memory anew each time costs a tenth."""

_encode = msgspec.msgpack.Encoder().encode
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
                self._crew = _Crew(self._requests, self._workers)

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
    """Runs of at most 256 trials or about 24 MB, so that no worker is left with all the weight."""
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


class _Crew:
    """Threads that drive a worker each. They stay ahead of who takes the answers, but not without bound."""

    def __init__(self, requests: SimpleQueue[Request | None], workers: int) -> None:
        self._requests = requests
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
        asked: deque[tuple[Request, bytes]] = deque()
        try:
            while True:
                while len(asked) < _AHEAD and (request := self._next(wait=not asked)) is not None:
                    try:
                        asked.append((request, _encode(request)))
                    except UnicodeEncodeError:  # a name that is not UTF-8 cannot be told over the pipe
                        self._put(request, read_chunk(request))
                        continue
                    if worker is not None:
                        _tell(worker, asked[-1][1])
                if not asked:
                    break
                if worker is None:
                    worker = _start()
                    for _, message in asked:
                        _tell(worker, message)
                answer = _heard(worker)
                if answer is None:
                    _stop(worker)
                    worker = None
                self._put(asked.popleft()[0], answer)
            self._done.put(None)
        except BaseException as error:  # noqa: BLE001  (raised again where the answers are taken)
            self._done.put(error)
        finally:
            if worker is not None:
                _stop(worker)

    def _next(self, *, wait: bool) -> Request | None:
        """The next request; None when there is none any more, or none yet and nothing else to wait for."""
        with self._room:
            # Only who owes no answer waits for room: the answer that would make some may be its own.
            if wait:
                self._room.wait_for(lambda: self._closed or self._untaken < _UNTAKEN_BYTES)
            if self._closed or self._untaken >= _UNTAKEN_BYTES:
                return None
        try:
            request = self._requests.get(block=wait)
        except Empty:
            return None
        if request is None:
            self._requests.put(None)  # the end, for every thread
        return request

    def _put(self, request: Request, answer: bytes | ChunkRead | None) -> None:
        with self._room:
            self._untaken += _size(answer)
        self._done.put((request, answer))

    def _taken(self, request: Request, answer: bytes | ChunkRead | None) -> list[ChunkRead]:
        with self._room:
            self._untaken -= _size(answer)
            self._room.notify_all()
        read = _decoded(answer)
        return _again(request) if read is None else [read]


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
    worker = subprocess.Popen(
        [sys.executable, "-m", "akm_harbor.trials.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**_KEEP_FREED_MEMORY, **os.environ, "PYTHONPATH": path},
        process_group=0,  # a Ctrl-C in the terminal is for the collector, whose end closes the input
    )
    try:
        import fcntl

        fcntl.fcntl(worker.stdout.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)  # type: ignore[union-attr]
    except (ImportError, AttributeError, OSError):
        pass  # not on this system, or not for this user: only slower
    return worker


def _tell(worker: "subprocess.Popen[bytes]", message: bytes) -> None:
    assert worker.stdin is not None
    with suppress(OSError):  # it died, which listening for the answer will tell
        send(worker.stdin, message)


def _heard(worker: "subprocess.Popen[bytes]") -> bytes | None:
    """The worker's answer; None when it died over it."""
    assert worker.stdout is not None
    try:
        return receive(worker.stdout)
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


def _again(request: Request) -> list[ChunkRead]:
    """A worker died over a chunk: halve it until the trial that kills it is alone, and keep the row."""
    worker = _start()
    _tell(worker, _encode(request))
    read = _decoded(_heard(worker))
    _stop(worker)
    if read is not None:
        return [read]
    trials = request.trials
    if len(trials) == 1:
        return [joined([unread_trial(trials[0])])]
    halves = trials[: len(trials) // 2], trials[len(trials) // 2 :]
    return [
        read for half in halves for read in _again(Request(request.number, half, request.reward_key, request.now_ns))
    ]
