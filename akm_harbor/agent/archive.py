"""One folder as one deterministic tar, and back, without trusting what is inside."""

import hashlib
import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from akm_harbor.agent.errors import ToolchainError


def walk(root: Path) -> Iterator[tuple[str, Path]]:
    """Every file and symlink below `root`, as (relative posix path, path), sorted by it."""
    found: list[tuple[str, Path]] = []
    for folder, dirs, files in os.walk(root, followlinks=False):
        links = [name for name in dirs if (Path(folder) / name).is_symlink()]
        for name in [*files, *links]:
            path = Path(folder) / name
            found.append((path.relative_to(root).as_posix(), path))
    return iter(sorted(found))


def _inside(root: Path, path: Path) -> bool:
    return path.resolve().is_relative_to(root.resolve())


def tree_digest(root: Path, *, without: frozenset[str] = frozenset()) -> str:
    """Content digest of a folder: names, executable bits, contents, link targets.

    Args:
        root: the folder.
        without: relative paths that don't count.

    Returns:
        sha256, 64 hex digits; times, owners and other mode bits never count.

    Raises:
        ToolchainError: a link leads out of the folder, or a file is no plain file.
    """
    total = hashlib.sha256()
    for name, path in walk(root):
        if name in without:
            continue
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            if not _inside(root, path):
                raise ToolchainError("a link leads out of the folder", path=path)
            kind, content = "l", hashlib.sha256(str(path.readlink()).encode()).hexdigest()
        elif stat.S_ISREG(mode):
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            kind = "x" if mode & 0o111 else "f"
        else:
            raise ToolchainError("neither a file nor a link", path=path)
        total.update(f"{kind} {content} {name}\0".encode())
    return total.hexdigest()


def pack(root: Path, target: Path) -> None:
    """Write `root` as an uncompressed tar: sorted, no times, no owners, two modes."""
    with tarfile.open(target, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, path in walk(root):
            info = tar.gettarinfo(path, arcname=name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = 0
            info.mode = 0o755 if info.issym() or info.mode & 0o111 else 0o644
            if info.islnk():  # a hard link here is a plain file there
                info.type, info.linkname, info.size = tarfile.REGTYPE, "", path.stat().st_size
            if info.isreg():
                with path.open("rb") as file:
                    tar.addfile(info, file)
            else:
                tar.addfile(info)


def unpack(archive: Path, target: Path, *, strip: int = 0) -> None:
    """Unpack a tar (any compression) into `target`, refusing anything that leaves it.

    Args:
        archive: the tar.
        target: an existing folder.
        strip: leading path components to drop, e.g. 1 for npm's `package/`.

    Raises:
        ToolchainError: not a tar, or a member that leads out of `target`.
    """

    def keep(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo | None:
        parts = PurePosixPath(member.name).parts[strip:]
        if not parts:
            return None
        return tarfile.data_filter(member.replace(name="/".join(parts), deep=False), path)

    try:
        with tarfile.open(archive) as tar:
            tar.extractall(target, filter=keep)  # noqa: S202 (the filter refuses what leaves `target`)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ToolchainError(f"can't unpack: {error}", path=archive) from error
