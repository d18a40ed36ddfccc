"""Files into and out of a sandbox, as tar streams made and unpacked on the safe side.

Paths of the sandbox are resolved only by processes inside it, so a symbolic link that an
agent left can lead nowhere but into the sandbox; archives that come out are unpacked
with Python's data filter.
"""

import asyncio
import contextlib
import logging
import os
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from akm_harbor.sandbox.failures import SandboxError
from akm_harbor.sandbox.process import Result, Sandbox

_ENV = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


async def upload_file(sandbox: Sandbox, source: Path, target: str) -> None:
    """Copy one file to `target`, which is the new file's own path, as root."""
    if not source.is_file():
        raise SandboxError("no such file to upload", path=source)
    parent, name = str(PurePosixPath(target).parent), PurePosixPath(target).name

    def write(archive: tarfile.TarFile) -> None:
        archive.add(source.resolve(), arcname=name, recursive=False, filter=_as_root)

    await unpack_inside(sandbox, parent, write)


async def upload_dir(sandbox: Sandbox, source: Path, target: str) -> None:
    """Copy what is in the folder `source` into the folder `target`, as root."""
    if not source.is_dir():
        raise SandboxError("no such folder to upload", path=source)

    def write(archive: tarfile.TarFile) -> None:
        for entry in sorted(source.iterdir()):
            archive.add(entry, arcname=entry.name, filter=_as_root)

    await unpack_inside(sandbox, target, write)


async def download_file(sandbox: Sandbox, source: str, target: Path) -> None:
    """Copy one file out.

    Raises:
        SandboxError: there is no such file in the sandbox.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name[:40]}-", delete=False) as copy:
        result = await sandbox.run(["cat", "--", source], env=_ENV, network=False, stdout=copy.fileno())
    if result.code != 0:
        Path(copy.name).unlink()
        raise SandboxError(f"cannot download {source}: {_said(result)}")
    Path(copy.name).chmod(0o644)
    Path(copy.name).replace(target)  # never through a link that an agent left at the target


async def download_dir(sandbox: Sandbox, source: str, target: Path, log: logging.Logger) -> None:
    """Copy what is in a folder out; devices, and links that lead out of it, stay behind with a warning.

    Raises:
        SandboxError: there is no such folder in the sandbox.
    """
    target.mkdir(parents=True, exist_ok=True)

    def keep(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        try:
            return tarfile.data_filter(member, path)
        except tarfile.FilterError as error:
            log.warning("not downloaded from %s: %s", source, error)
            return None

    def unpack(packed: BinaryIO) -> None:
        packed.seek(0)
        with tarfile.open(fileobj=packed) as archive:
            archive.extractall(target, filter=keep)  # noqa: S202 - filtered by `keep`

    with tempfile.TemporaryFile() as packed:
        argv = ["tar", "-C", source, "-cf", "-", "."]
        result = await sandbox.run(argv, env=_ENV, network=False, stdout=packed.fileno())
        if result.code > 1:  # 1: a file changed while it was read
            raise SandboxError(f"cannot download {source}: {_said(result)}")
        await asyncio.to_thread(unpack, packed)


def _said(result: Result) -> str:
    return result.stderr.decode(errors="replace").strip()


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


async def unpack_inside(
    sandbox: Sandbox, folder: str, write: Callable[[tarfile.TarFile], None], *, keep_owner: bool = False
) -> None:
    """Let `write` fill a tar stream that is unpacked, as root, into a folder of the sandbox."""
    read, feed = os.pipe()

    def pack() -> None:
        with (
            contextlib.suppress(BrokenPipeError),
            os.fdopen(feed, "wb") as pipe,
            tarfile.open(fileobj=pipe, mode="w|", format=tarfile.PAX_FORMAT) as archive,
        ):
            write(archive)

    owner = "--same-owner" if keep_owner else "--no-same-owner"
    packing = asyncio.create_task(asyncio.to_thread(pack))
    try:
        result = await sandbox.run(
            ["sh", "-c", 'mkdir -p -- "$1" && exec tar -C "$1" "$2" -xpf -', "sh", folder, owner],
            env=_ENV,
            network=False,
            stdin=read,
        )
    finally:
        os.close(read)
        await packing
    if result.code != 0:
        raise SandboxError(f"cannot unpack into {folder}: {_said(result)}")
