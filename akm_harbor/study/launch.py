"""Harbor's command line in a process that does not outlive the study it works for.

`python -m akm_harbor.study.launch PARENT run -c job.yaml`: on Linux the kernel interrupts Harbor
when its parent is gone, so that it ends its trials and takes containers and mounts away.
"""

import contextlib
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run Harbor with the rest of the arguments."""
    parent = int(sys.argv.pop(1))
    sys.argv[0] = "harbor"
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        if os.getppid() != parent:
            raise SystemExit(130)
    from harbor.cli.main import app

    with contextlib.suppress(KeyboardInterrupt):
        app()
        return
    raise SystemExit(130)


if __name__ == "__main__":
    main()
