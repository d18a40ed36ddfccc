"""The command line: `akm-harbor <noun> <verb>`, one thin file a noun."""

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
