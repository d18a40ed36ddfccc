"""The few Linux calls that Python has no function for, through libc."""

import ctypes
import fcntl
import os

LOCK_NAME = "lock"
MS_REC = 0x4000
MS_PRIVATE = 0x40000

_PR_CAPBSET_DROP = 24
_PR_SET_DUMPABLE = 4

# Docker's default set without MKNOD and NET_RAW: nothing here keeps devices apart, and a
# sandbox with network shares the host's. Numbers from linux/capability.h.
_KEPT_CAPABILITIES = frozenset({0, 1, 3, 4, 5, 6, 7, 8, 10, 18, 29, 31})
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str | None, flags: int, options: str | None = None) -> None:
    """Mount something, or change how it is mounted.

    Raises:
        OSError: the kernel refused; the message carries the options.
    """
    result = _libc.mount(
        source.encode(),
        os.fsencode(target),
        kind.encode() if kind else None,
        ctypes.c_ulong(flags),
        os.fsencode(options) if options else None,
    )
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"mount {kind or ''} on {target}: {os.strerror(code)} ({options or 'no options'})")


def hide() -> None:
    """Close /proc/self of this process to others until it runs another program."""
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def limit_capabilities() -> None:
    """Take from this process and its descendants every capability a container would not have."""
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in _KEPT_CAPABILITIES:
            _libc.prctl(_PR_CAPBSET_DROP, ctypes.c_ulong(capability), 0, 0, 0)


def unmount(target: str) -> None:
    """Take a mount away, also when something still has a file open there."""
    _libc.umount2(os.fsencode(target), 2)


def hold(folder: str) -> None:
    """Lock a sandbox's folder for the life of this process and its children.

    The lock is taken before the file gets its name, so nobody ever sees it free.
    """
    unnamed = os.path.join(folder, f".{LOCK_NAME}")
    lock = os.open(unnamed, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.rename(unnamed, os.path.join(folder, LOCK_NAME))
