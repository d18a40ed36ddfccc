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

from akm_harbor.trials.cache import Told
from akm_harbor.trials.calls import Columns
from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.stamps import Stamp
from akm_harbor.trials.trial import TrialRead, read_trial

HEADER = struct.Struct("<Q")


class Request(msgspec.Struct):
    """Trials to read."""

    number: int
    trials: list[TrialDir]
    reward_key: str
    now_ns: int


class ChunkRead(msgspec.Struct):
    """What several trials gave, one element a trial in every list.

    Attributes:
        n: how many trials.
        rows: columns of the trials table; those that no trial filled are left out.
        private: what the join and the cache need but no column holds.
        tables: columns of the other tables by table name.
        stamps: what was looked at.
        problems: (path below the trial, kind, detail, action).
        notes: minor findings.
    """

    n: int
    rows: Columns
    private: Columns
    tables: list[dict[str, Columns]]
    stamps: list[list[Stamp]]
    problems: list[list[Told]]
    notes: list[dict[str, str]]


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


def read_chunk(request: Request) -> ChunkRead:
    """Read all trials of a request, in order."""
    return joined([read_trial(trial, request.reward_key, request.now_ns) for trial in request.trials])


def joined(reads: list[TrialRead]) -> ChunkRead:
    """Put what trials gave side by side: columns are cheaper to pass on than rows."""
    names = dict.fromkeys(name for read in reads for name in read.row)
    private = dict.fromkeys(name for read in reads for name in read.private)
    return ChunkRead(
        len(reads),
        {name: [read.row.get(name) for read in reads] for name in names},
        {name: [read.private.get(name) for read in reads] for name in private},
        [read.tables for read in reads],
        [read.stamps for read in reads],
        [read.problems for read in reads],
        [read.notes for read in reads],
    )


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
