"""Harbor as a process: what it is called with, who ends it, what it says when it fails."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from akm_harbor.errors import AkmHarborError

SETTINGS = {"HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""Variables every call gets: nothing is reported home, no price list is fetched."""

_POLL_SECONDS = 0.25
_LAST_LINES = 12


def plain_line(arguments: Sequence[str]) -> str:
    """The call as anyone can type it."""
    return shlex.join(["harbor", *arguments])


def run_harbor(arguments: Sequence[str], log: Path, *, tick: Callable[[], None], lock: int | None = None) -> None:
    """Run Harbor to its end.

    Args:
        arguments: as on its command line.
        log: takes what it prints, after what is in it.
        tick: called while it runs, and once at the end.
        lock: file descriptor that the process holds as long as it lives.

    Raises:
        AkmHarborError: it failed or was killed; the message has its last words.
    """
    begun = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output, started(arguments, output=output, lock=lock) as process:
        while process.poll() is None:
            tick()
            time.sleep(_POLL_SECONDS)
    tick()
    if process.returncode:
        raise _failure(process.returncode, log, begun)


@contextmanager
def started(
    arguments: Sequence[str], *, cwd: Path | None = None, output: IO[bytes] | None = None, lock: int | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Harbor's command line, running; an exception in the block interrupts it and waits for its end.

    Args:
        arguments: as on its command line.
        cwd: where it runs; here, if not given.
        output: takes what it prints; by default that is seen.
        lock: file descriptor that the process holds as long as it lives.
    """
    command = [sys.executable, "-m", "akm_harbor.sandbox.launch", str(os.getpid()), *arguments]
    width = {} if output is None else {"COLUMNS": "160"}
    process = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=None if output is None else subprocess.STDOUT,
        env={**os.environ, **SETTINGS, **width},
        pass_fds=() if lock is None else (lock,),
        process_group=0,  # a terminal's Ctrl-C would reach Harbor twice, and it would drop its trials half-way
    )
    try:
        yield process
    except BaseException:
        # Harbor ends its trials and takes its containers and mounts away when it is interrupted.
        process.send_signal(signal.SIGINT)
        process.wait()
        raise


def _failure(code: int, log: Path, begun: int) -> AkmHarborError:
    if code < 0:
        return AkmHarborError(
            f"Harbor was ended by {signal.Signals(-code).name}",
            path=log,
            hint="The same command goes on where it stopped.",
        )
    with log.open("rb") as text:
        text.seek(begun)
        last = text.read().decode("utf-8", "replace").strip().splitlines()[-_LAST_LINES:]
    return AkmHarborError(
        f"Harbor failed (exit code {code}):\n  " + "\n  ".join(last),
        path=log,
        hint="Once mended, the same command goes on where it stopped.",
    )
