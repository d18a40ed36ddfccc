"""Read many trials, in other processes where there is enough to read.

Own processes over pipes rather than a process pool: a pool imports the caller's main module
again (a script without a main guard, a notebook's kernel), and its workers outlive a killed
parent. Ours see their input end and leave.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import msgspec

from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.trial import unread_trial
from akm_harbor.trials.worker import ChunkRead, Request, joined, read_chunk, receive, send

_CHUNK = 64
_WORTH_BYTES = 24 * 1024 * 1024
_WORTH_TRIALS = 2000

_decode = msgspec.msgpack.Decoder(ChunkRead).decode

type Answer = tuple[int, ChunkRead | None]


def read_all(trials: list[TrialDir], reward_key: str, now_ns: int, workers: int | None = None) -> Iterator[ChunkRead]:
    """Read trials in order, a chunk at a time.

    Args:
        trials: the directories.
        reward_key: which key of the rewards is the primary one.
        now_ns: when the collection began.
        workers: processes; None decides by what there is to read, 0 or 1 reads here.
    """
    chunks = _chunks(trials)
    requests = [Request(i, chunk, reward_key, now_ns) for i, chunk in enumerate(chunks)]
    if workers is None:
        workers = min(os.cpu_count() or 1, 8, len(requests)) if _worth_it(trials) else 1
    if workers <= 1:
        for request in requests:
            yield read_chunk(request)
        return
    yield from _in_order(requests, workers)


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
    """Runs of at most 64 trials or about 16 MB, so that no worker is left with all the weight."""
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


def _worth_it(trials: list[TrialDir]) -> bool:
    return len(trials) >= _WORTH_TRIALS or sum(map(_weight, trials)) >= _WORTH_BYTES


def _in_order(requests: list[Request], workers: int) -> Iterator[ChunkRead]:
    """Hand out requests, yield answers in request order; a few may be ahead, not all of them."""
    todo: SimpleQueue[Request | None] = SimpleQueue()
    done: SimpleQueue[Answer] = SimpleQueue()
    ahead = 3 * workers
    for request in requests[:ahead]:
        todo.put(request)
    handed = min(ahead, len(requests))
    threads = [threading.Thread(target=_serve, args=(todo, done), daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    waiting: dict[int, list[ChunkRead]] = {}
    try:
        for number, request in enumerate(requests):
            while number not in waiting:
                got, answer = done.get()
                waiting[got] = [answer] if answer is not None else _one_by_one(requests[got])
            yield from waiting.pop(request.number)
            if handed < len(requests):
                todo.put(requests[handed])
                handed += 1
    finally:
        for _ in threads:
            todo.put(None)
        for thread in threads:
            thread.join(timeout=10)


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


def _serve(todo: "SimpleQueue[Request | None]", done: "SimpleQueue[Answer]") -> None:
    """One thread drives one worker, and starts another when it dies."""
    worker = None
    try:
        while (request := todo.get()) is not None:
            worker = worker or _start()
            answer = _ask(worker, request)
            if answer is None:
                _stop(worker)
                worker = None
            done.put((request.number, answer))
    finally:
        if worker is not None:
            _stop(worker)


def _ask(worker: "subprocess.Popen[bytes]", request: Request) -> ChunkRead | None:
    """The worker's answer; None when it died over it."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        send(worker.stdin, request)
        message = receive(worker.stdout)
        return None if message is None else _decode(message)
    except UnicodeEncodeError:  # a name that is not UTF-8 cannot be told over the pipe
        return read_chunk(request)
    except (OSError, msgspec.MsgspecError):
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
        reads.append(answer if answer is not None else joined([unread_trial(trial)]))
    return reads
