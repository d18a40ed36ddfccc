"""What a sandbox sees as its root: the host's system folders, or a given rootfs.

On the host's root only the folders that hold the system are shown, each the read-only
lower layer of an overlay. Everything else (homes, mounts, /tmp, /run, /srv, any folder
somebody made at the top) is not there at all: the top is a skeleton of our own. /etc is
a copy, and holds only what every user of this machine may read.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from akm_harbor.sandbox.cleanup import BUILDING
from akm_harbor.sandbox.failures import SandboxError, SandboxUnavailableError

# Shown as they are when they exist; a symbolic link (/bin -> usr/bin) stays one.
SYSTEM_FOLDERS = ("usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "opt", "nix")
PACKAGE_DATABASES = ("var/lib/dpkg", "var/lib/apt", "var/lib/rpm", "var/lib/pacman", "var/lib/ca-certificates")
_SKELETON = (
    "dev", "proc", "sys", "run", "run/lock", "home", "mnt", "media", "srv",
    "var/cache/apt/archives/partial", "var/lib", "var/log", "var/spool", "var/local", "var/opt", "var/mail",
)  # fmt: skip
_LINKS = {"var/run": "/run", "var/lock": "/run/lock"}
# Without root the host's folders belong to nobody in the sandbox. Where programs get
# installed, folders of the user's own are laid over them, this many levels deep.
_OPENED = {"usr": 1, "usr/local": 4, "opt": 1}
HOSTNAME = "sandbox"
_ACCOUNT_FILES = {"shadow": "passwd", "gshadow": "group"}


@dataclass(frozen=True, slots=True)
class Part:
    """One folder of the sandbox's root and the read-only layers under it, topmost first."""

    name: str
    target: str
    lower: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Root:
    """A base to build on; `identity` changes when what it holds may have changed."""

    parts: tuple[Part, ...]
    identity: str


def host_root(bases: Path) -> Root:
    """The host's own system as a base; its skeleton is made once and kept in `bases`."""
    parts = []
    digest = hashlib.sha256()
    links = dict(_LINKS)
    for name in (*SYSTEM_FOLDERS, *PACKAGE_DATABASES):
        path = Path("/", name)
        if path.is_symlink():
            links[name] = str(path.readlink())
        elif path.is_dir():
            parts.append(Part(name.replace("/", "-"), f"/{name}", (str(path),)))
            digest.update(f"{name} {path.stat().st_mtime_ns}\n".encode())
    for folder in (Path("/usr/bin"), Path("/usr/local/bin"), Path("/usr/local/lib")):
        if folder.is_dir():
            digest.update(f"{folder} {folder.stat().st_mtime_ns}\n".encode())
    digest.update(_fingerprint(Path("/etc")).encode())
    identity = digest.hexdigest()[:24]
    as_root = os.geteuid() == 0

    def make(folder: Path) -> None:
        (folder / "root").mkdir()
        _make_skeleton(folder / "root", parts, links)
        for name in () if as_root else _OPENED:
            _mirror_folders(Path("/", name), folder / name, _OPENED[name])

    made = _once(bases / f"host-{identity}", make)
    if not as_root:
        parts = [
            replace(part, lower=(str(made / part.name), *part.lower)) if part.name in _OPENED else part
            for part in parts
        ]
    return Root((Part("root", "/", (str(made / "root"),)), *parts), f"host-{identity}")


def given_root(rootfs: Path, bases: Path) -> Root:
    """A folder that holds a whole root file system as a base.

    Raises:
        SandboxError: it does not look like one.
    """
    rootfs = rootfs.expanduser().resolve()
    if not (rootfs / "bin").exists() or not (rootfs / "etc").is_dir():
        raise SandboxError(
            "not a root file system: it needs at least /bin/sh and /etc",
            path=rootfs,
            hint="Give the folder that debootstrap or an unpacked image made.",
        )
    if rootfs == Path("/"):
        raise SandboxError("that is this machine's own root", path=rootfs, hint="Leave `rootfs` out to run on it.")
    details = rootfs.stat()
    identity = hashlib.sha256(
        f"{rootfs} {details.st_ino} {details.st_mtime_ns} {_resolver()} {_hosts()}".encode()
    ).hexdigest()[:24]

    def make(folder: Path) -> None:
        (folder / "etc").mkdir()
        _write_network_files(folder / "etc")
        (folder / "etc").chmod(0o755)
        shutil.copystat(rootfs, folder)

    return Root(
        (Part("root", "/", (str(_once(bases / f"rootfs-{identity}", make)), str(rootfs))),), f"rootfs-{identity}"
    )


def check_no_overlap(root: Root, cache: Path) -> None:
    """Overlay layers may not lie inside one another.

    Raises:
        SandboxUnavailableError: the cache lies inside a shown folder.
    """
    for part in root.parts:
        for lower in part.lower:
            if cache.is_relative_to(lower) and lower != "/" and not Path(lower).is_relative_to(cache):
                raise SandboxUnavailableError(
                    f"the sandbox cache cannot lie inside {lower}, which sandboxes show",
                    path=cache,
                    hint="Choose another with AKM_HARBOR_CACHE or --ek cache_dir=…",
                )


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for path, entry in _walk(folder):
        details = entry.stat(follow_symlinks=False)
        digest.update(
            f"{path} {details.st_mode} {details.st_size} {details.st_mtime_ns}\n".encode("utf-8", "surrogateescape")
        )
    digest.update(_resolver().encode())
    return digest.hexdigest()


def _walk(folder: Path) -> list[tuple[str, os.DirEntry[str]]]:
    found: list[tuple[str, os.DirEntry[str]]] = []
    pending = [str(folder)]
    while pending:
        try:
            entries = sorted(os.scandir(pending.pop()), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            found.append((entry.path, entry))
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
    return found


def _once(path: Path, make: Callable[[Path], None]) -> Path:
    if path.is_dir():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=BUILDING, dir=path.parent))
    building.chmod(0o755)
    make(building)
    try:
        building.rename(path)
    except OSError:  # another process was faster
        shutil.rmtree(building, ignore_errors=True)
    return path


def _make_skeleton(folder: Path, parts: list[Part], links: dict[str, str]) -> None:
    for name in _SKELETON:
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part in parts:
        (folder / part.target.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, target in links.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).symlink_to(target)
    (folder / "root").mkdir(mode=0o700)
    for name in ("tmp", "var/tmp"):
        (folder / name).mkdir()
        (folder / name).chmod(0o1777)
    _copy_etc(Path("/etc"), folder / "etc")


def _mirror_folders(source: Path, target: Path, depth: int) -> None:
    target.mkdir(parents=True, exist_ok=True)
    try:
        entries = list(os.scandir(source))
    except OSError:
        return
    for entry in entries:
        if depth and entry.is_dir(follow_symlinks=False):
            _mirror_folders(Path(entry.path), target / entry.name, depth - 1)


def _copy_etc(source: Path, target: Path) -> None:
    target.mkdir()
    pending = [(source, target)]
    while pending:
        here, there = pending.pop()
        for entry in os.scandir(here):
            details = entry.stat(follow_symlinks=False)
            copy = there / entry.name
            if stat.S_ISLNK(details.st_mode):
                copy.symlink_to(os.readlink(entry.path))  # noqa: PTH115
            elif stat.S_ISDIR(details.st_mode) and details.st_mode & stat.S_IROTH and details.st_mode & stat.S_IXOTH:
                copy.mkdir()
                copy.chmod(stat.S_IMODE(details.st_mode))
                pending.append((Path(entry.path), copy))
            elif stat.S_ISREG(details.st_mode) and details.st_mode & stat.S_IROTH:
                shutil.copy2(entry.path, copy)
    for name, like in _ACCOUNT_FILES.items():
        accounts = [
            line.split(":")[0] for line in (source / like).read_text(errors="replace").splitlines() if ":" in line
        ]
        rest = ":*:19000:0:99999:7:::" if name == "shadow" else ":*::"
        (target / name).write_text("".join(f"{account}{rest}\n" for account in accounts))
        (target / name).chmod(0o640)
    _write_network_files(target)


def _write_network_files(etc: Path) -> None:
    # Regular files, as in Docker: the host's resolv.conf is often a link into /run.
    for name, text in (("resolv.conf", _resolver()), ("hosts", _hosts()), ("hostname", f"{HOSTNAME}\n")):
        (etc / name).unlink(missing_ok=True)
        (etc / name).write_text(text)


def _hosts() -> str:
    # The network, if any, is the host's own, and so are its names.
    return f"{_text(Path('/etc/hosts')) or '127.0.0.1 localhost'}\n127.0.1.1 {HOSTNAME}\n"


def _resolver() -> str:
    return _text(Path("/etc/resolv.conf"))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").rstrip("\n") + "\n"
    except OSError:
        return ""
