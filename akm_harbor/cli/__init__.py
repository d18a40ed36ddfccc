"""The command line: `akm-harbor <noun> <verb>`, one thin file a noun."""

import contextlib
import os
import sys

from akm_harbor.errors import AkmHarborError


def main() -> None:
    """Run the command line; a known failure is one message and its exit code, never a traceback."""
    from akm_harbor.cli.app import run

    try:
        run()
    except AkmHarborError as error:
        sys.stderr.write(f"akm-harbor: {error}\n")
        raise SystemExit(error.exit_code) from None
    except OSError as error:  # a place nobody thought of: a full disk behind stdout, a folder that is gone
        where = f"{error.filename}: " if error.filename is not None else ""
        remedy = "Check that the place exists, may be written and has room; then give the command again."
        message = f"akm-harbor: {where}{error.strerror or error}\n  {remedy}\n"
        with contextlib.suppress(OSError):
            sys.stderr.write(message)
        _forget_output()
        raise SystemExit(1) from None


def _forget_output() -> None:
    """Leave nothing for the interpreter to flush on its way out, where it would fail again and say so."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
