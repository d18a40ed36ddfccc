"""Read trials in another process: `python -m akm_harbor.trials.worker`, spoken to over pipes.

A worker is told nothing it could not read itself, holds no state, and ends when its input
ends, so none survives the collector, however that dies. It imports no Arrow: it starts in
a tenth of a second.
"""

import gc
import struct
import sys
from typing import IO

import msgspec

from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.trial import TrialRead, read_trial

HEADER = struct.Struct("<Q")


class Request(msgspec.Struct):
    """Trials to read."""

    number: int
    trials: list[TrialDir]
    reward_key: str
    now_ns: int


def send(pipe: IO[bytes], value: object) -> None:
    """Write one message."""
    data = msgspec.msgpack.encode(value)
    pipe.write(HEADER.pack(len(data)) + data)
    pipe.flush()


def receive(pipe: IO[bytes]) -> bytes | None:
    """Read one message; None at the end."""
    head = pipe.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    (size,) = HEADER.unpack(head)
    data = pipe.read(size)
    return data if len(data) == size else None


def read_chunk(request: Request) -> list[TrialRead]:
    """Read all trials of a request, in order."""
    return [read_trial(trial, request.reward_key, request.now_ns) for trial in request.trials]


def main() -> None:
    """Answer requests until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print must not break the protocol
    gc.disable()  # nothing here makes cycles
    decode = msgspec.msgpack.Decoder(Request).decode
    while (message := receive(source)) is not None:
        send(sink, read_chunk(decode(message)))


if __name__ == "__main__":
    main()
