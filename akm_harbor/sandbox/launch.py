"""Harbor's command line in a process that does not outlive the one it works for.

`python -m akm_harbor.sandbox.launch PARENT run -c job.yaml`: Harbor is interrupted once its parent is
gone, so that it ends its trials and takes containers and mounts away.
"""

import contextlib
import os
import signal
import sys
import threading
import time

_POLL_SECONDS = 0.25


def _interrupt_without(parent: int) -> None:
    """Wait until the parent is gone, then interrupt this process, once.

    The kernel could tell (PR_SET_PDEATHSIG), but it may tell once for every thread of the parent,
    and on a second interrupt Harbor drops its trials half-way: they get results of errors that
    never were, and a resume keeps them.
    """
    while os.getppid() == parent:
        time.sleep(_POLL_SECONDS)
    os.kill(os.getpid(), signal.SIGINT)


def main() -> None:
    """Run Harbor with the rest of the arguments."""
    # A shell starts what is put in the background with Ctrl-C ignored, and what that starts inherits it:
    # Harbor would never be interrupted. Nobody's Ctrl-C is meant here: Harbor has a process group of its own.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    parent = int(sys.argv.pop(1))
    sys.argv[0] = "harbor"
    if os.getppid() != parent:
        raise SystemExit(130)
    threading.Thread(target=_interrupt_without, args=(parent,), name="parent-watch", daemon=True).start()
    from harbor.cli.main import app

    with contextlib.suppress(KeyboardInterrupt):
        app()
        return
    raise SystemExit(130)


if __name__ == "__main__":
    main()
