"""Read trials in another process: `python -m akm_harbor.trials.worker`, spoken to over pipes.

A worker is told nothing it could not read itself, holds no state, and ends when its input
ends, so none survives the collector, however that dies. It imports no Arrow: it starts in
a tenth of a second.
"""

import gc
import os
import struct
import sys
from itertools import chain, cycle
from queue import Queue
from threading import Thread
from typing import IO, Any

import msgspec

from akm_harbor.trials.cache import Told
from akm_harbor.trials.calls import Columns
from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.packed import Column, packed
from akm_harbor.trials.result import Row
from akm_harbor.trials.stamps import Stamp
from akm_harbor.trials.trial import TrialRead, read_trial, unread_trial

HEADER = struct.Struct("<Q")


class Request(msgspec.Struct):
    """Trials to read."""

    number: int
    trials: list[TrialDir]
    reward_key: str
    now_ns: int


class Rows(msgspec.Struct):
    """Rows of one detail table.

    Attributes:
        counts: how many each trial has.
        columns: without the trial's own; those that no row filled are left out.
    """

    counts: list[int]
    columns: dict[str, Column]


class ChunkRead(msgspec.Struct):
    """What several trials gave, one element a trial in every list.

    Attributes:
        n: how many trials.
        rows: columns of the trials table; those that no trial filled are left out.
        private: what the join and the cache need but no column holds.
        tables: rows of the other tables by table name; those without any are left out.
        stamps: what was looked at.
        problems: (path below the trial, kind, detail, action).
        notes: minor findings.
    """

    n: int
    rows: Columns
    private: Columns
    tables: dict[str, Rows]
    stamps: list[list[Stamp]]
    problems: list[list[Told]]
    notes: list[dict[str, str]]


def send(pipe: IO[bytes], message: bytes | bytearray) -> None:
    """Write one message."""
    pipe.write(HEADER.pack(len(message)))
    pipe.write(message)
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
    return joined([_read(trial, request) for trial in request.trials])


def _read(trial: TrialDir, request: Request) -> TrialRead:
    try:
        return read_trial(trial, request.reward_key, request.now_ns)
    except Exception as error:  # noqa: BLE001  (a stranger's files: what nobody thought of must not stop the rest)
        return unread_trial(trial, f"reading this trial failed with {type(error).__name__}: {error}"[:500])


def joined(reads: list[TrialRead]) -> ChunkRead:
    """Put what trials gave side by side: columns are cheaper to pass on than rows."""
    tables = dict.fromkeys(chain.from_iterable(read.tables for read in reads))
    parts = {name: _stacked([read.tables.get(name, {}) for read in reads]) for name in tables}
    return ChunkRead(
        len(reads),
        _side_by_side([read.row for read in reads]),
        _side_by_side([read.private for read in reads]),
        {name: rows for name, rows in parts.items() if rows.columns},
        [read.stamps for read in reads],
        [read.problems for read in reads],
        [read.notes for read in reads],
    )


def _side_by_side(rows: list[Row]) -> Columns:
    """Rows as columns."""
    names = dict.fromkeys(chain.from_iterable(rows))
    return dict(zip(names, map(list, zip(*(map(row.get, names) for row in rows), strict=True)), strict=False))


def _stacked(parts: list[Columns]) -> Rows:
    """The trials' rows of one table, one below the other."""
    counts = [len(next(iter(columns.values()), ())) for columns in parts]
    stacked: dict[str, Column] = {}
    for name in dict.fromkeys(chain.from_iterable(parts)):
        values: list[Any] = []
        for columns, count in zip(parts, counts, strict=True):
            values += columns[name] if name in columns else [None] * count
        if values and (values[0] is not None or values.count(None) < len(values)):
            stacked[name] = packed(values)
    return Rows(counts, stacked)


def main() -> None:
    """Answer requests until the input ends."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # a stray print must not break the protocol
    gc.disable()  # nothing here makes cycles
    if hasattr(os, "nice"):
        os.nice(5)  # the collector goes first: it is one process, and where it waits, all do
    decode = msgspec.msgpack.Decoder(Request).decode
    encode_into = msgspec.msgpack.Encoder().encode_into
    answers: Queue[bytearray | None] = Queue(maxsize=1)
    writer = Thread(target=_write, args=(sink, answers), daemon=True)
    writer.start()
    # One is filled, one waits, one is written: growing a new one each time would cost more than filling it.
    buffers = cycle((bytearray(), bytearray(), bytearray()))
    while (message := receive(source)) is not None:
        buffer = next(buffers)
        encode_into(read_chunk(decode(message)), buffer)
        answers.put(buffer)
    answers.put(None)
    writer.join()


def _write(sink: IO[bytes], answers: "Queue[bytearray | None]") -> None:
    """Write answers while the next is read: a pipe holds but a part of one, and the collector may be busy."""
    while (answer := answers.get()) is not None:
        try:
            send(sink, answer)
        except OSError:
            os._exit(1)  # nobody listens any more


if __name__ == "__main__":
    main()
