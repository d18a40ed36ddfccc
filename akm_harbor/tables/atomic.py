"""Put a finished folder or file in another's place in one step.

A reader, or a process killed at any moment, sees the old one or the new one, whole.
"""

import contextlib
import ctypes
import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from akm_harbor.errors import AkmHarborError

NO_ROOM = frozenset({errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)})
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def _exchange(a: Path, b: Path) -> bool:
    """Swap two paths in one system call, where the kernel has one (Linux renameat2)."""
    try:
        call = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(call(_AT_FDCWD, os.fsencode(a), _AT_FDCWD, os.fsencode(b), _RENAME_EXCHANGE) == 0)


def _alive(pid: int) -> bool:
    if os.name != "posix":
        return True  # asking is not harmless elsewhere; leave the folder alone
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _set_aside(target: Path) -> Path:
    return target.with_name(f".{target.name}.old")


def recover(target: Path) -> None:
    """Undo a replacement that was killed half-way, and sweep up what dead processes left."""
    aside = _set_aside(target)
    if not target.exists() and aside.exists():
        aside.rename(target)
    if not target.parent.is_dir():
        return
    prefix = f".{target.name}.new-"
    for leftover in target.parent.glob(f"{prefix}*"):
        pid = leftover.name.removeprefix(prefix).partition("-")[0]
        if pid.isdigit() and not _alive(int(pid)):
            shutil.rmtree(leftover, ignore_errors=True)


def _replace(new: Path, target: Path) -> None:
    if not target.exists():
        new.rename(target)
        return
    if _exchange(new, target):
        _remove(new)
        return
    aside = _set_aside(target)
    if aside.is_symlink() or aside.exists():
        _remove(aside)
    target.rename(aside)
    new.rename(target)
    _remove(aside)


def _remove(folder: Path) -> None:
    """Remove a folder; of a link to one, only the link."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)


def _sync(folder: Path) -> None:
    """Flush every file below a folder to disk: a rename must not outlive its data."""
    for file in folder.rglob("*"):
        if file.is_file():
            with file.open("rb+") as handle:
                os.fsync(handle.fileno())


@contextmanager
def replaced_directory(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside `target`; on a clean exit it takes target's place.

    Raises:
        OSError: the parent folder cannot be written.
    """
    target = Path(os.path.abspath(target))  # noqa: PTH100  (resolve() would follow a symlinked target)
    target.parent.mkdir(parents=True, exist_ok=True)
    recover(target)
    new = target.with_name(f".{target.name}.new-{os.getpid()}-{secrets.token_hex(4)}")
    new.mkdir()
    try:
        yield new
        _sync(new)
        _replace(new, target)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def no_room(folder: Path) -> AkmHarborError:
    """The error for a temporary folder that is full."""
    return AkmHarborError(
        "no room for a private copy", path=folder, hint="Set TMPDIR to a folder on a disk with more room."
    )


@contextmanager
def filled_whole(folder: Path) -> Iterator[None]:
    """Fill a new or empty folder in the block; when that fails, nothing of it is left.

    Raises:
        AkmHarborError: something could not be written.
    """
    there = folder.is_dir()
    try:
        yield
    except BaseException as error:
        for entry in list(folder.iterdir()) if there else [folder]:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise AkmHarborError(
                f"could not be filled ({error.strerror or error}), and was taken away",
                path=folder,
                hint="Choose a place that may be written and has room.",
            ) from error
        raise


def write_file(target: Path, content: str | bytes) -> None:
    """Write a file so that it is there whole or not at all.

    Half of a surrogate pair, which stands for a byte in a name that is no UTF-8, becomes its escape.
    A device or pipe (/dev/stdout, /dev/null) is written to: renaming a file to its name would replace it.
    """
    data = content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content
    if target.exists() and not target.is_file() and not target.is_dir():
        with target.open("wb") as device:
            device.write(data)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    new = target.with_name(f".{target.name}.new-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with new.open("wb") as handle:
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        new.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
