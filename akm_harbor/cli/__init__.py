"""The command line: `akm-harbor <noun> <verb>`, one thin file a noun."""

import contextlib
import gc
import io
import os
import signal
import sys
from typing import NoReturn

from akm_harbor.errors import AkmHarborError


def main() -> None:
    """Run the command line; a known failure is one message and its exit code, never a traceback."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that this terminal's encoding lacks must not end the command
            stream.reconfigure(errors="backslashreplace")
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _end)
    try:
        from akm_harbor.cli.app import run  # in here: a Ctrl-C while it loads is no traceback either

        run()
    except KeyboardInterrupt:
        _forget_output()
        raise SystemExit(130) from None
    except AkmHarborError as error:
        _tell(str(error))
        raise SystemExit(error.exit_code) from None
    except OSError as error:  # a place nobody thought of: a full disk behind stdout, a folder that is gone
        where = f"{error.filename}: " if error.filename is not None else ""
        remedy = "Check that the place exists, may be written and has room; then give the command again."
        with contextlib.suppress(OSError):
            _tell(f"{where}{error.strerror or error}\n  {remedy}")
        _forget_output()
        raise SystemExit(1) from None
    finally:
        gc.freeze()  # looking for cycles among all there is, at the end, would be a tenth of a second for nothing


def _open_what_is_closed() -> None:
    """Put nothing in the place of a standard stream that the caller closed.

    The work is done all the same; but the next file opened would take its number, and what a child
    prints would land in it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
            os.set_inheritable(number, True)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _end(number: int, _: object) -> NoReturn:
    """End as a Ctrl-C would, so that temporary folders and child processes go too."""
    raise SystemExit(128 + number)


def _tell(message: str) -> None:
    from akm_harbor.report.text import visible

    sys.stderr.write(f"akm-harbor: {visible(message, sys.maxsize)}\n")


def _forget_output() -> None:
    """Leave nothing for the interpreter to flush on its way out, where it would fail again and say so."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
