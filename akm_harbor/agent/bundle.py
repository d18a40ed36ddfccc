"""The one bundle a trial gets: found on the host, checked, digested, laid out for the container."""

import contextlib
import hashlib
import os
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.agent.errors import BundleError
from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_toml
from akm_harbor.resources import resource

EMPTY = "empty"
TASK = "task"

_SKIPPED_FOLDERS = frozenset({"__pycache__", "node_modules"})
_MAX_FILES = 20_000
_HEADER = "The following notes are provided for the task at hand.\n"


@dataclass(frozen=True, slots=True)
class Bundle:
    """A bundle that may enter a container.

    Attributes:
        name: its name, `empty` for the bundle without files.
        files: (path inside the bundle, path on the host), sorted.
        left_out: files at the bundle's top, which never enter: akm's assets lie in
            folders, what lies beside them describes the bundle (or gives the answer).
    """

    name: str
    files: tuple[tuple[str, Path], ...]
    left_out: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """sha256 over names and contents, 64 hex digits."""
        total = hashlib.sha256()
        for name, path in self.files:
            total.update(f"{hashlib.sha256(path.read_bytes()).hexdigest()} {name}\0".encode())
        return total.hexdigest()

    def copy_to(self, folder: Path) -> None:
        """Lay the files out below `folder`."""
        for name, path in self.files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)

    def context_text(self) -> str:
        """The whole bundle as one text, for the oracle-context arm; files that are no text are left out."""
        parts = [_HEADER]
        for name, path in self.files:
            try:
                parts.append(f"## {name}\n\n{path.read_text('utf-8').strip()}\n")
            except UnicodeDecodeError:
                continue
        return "\n".join(parts)


def task_bundle_name(task_dir: Path) -> str:
    """The name in the task's `[metadata].bundle` (older tasks: `akm_bundle`).

    Raises:
        BundleError: the task names none, or its task.toml can't be read.
    """
    path = task_dir / "task.toml"
    try:
        metadata = parse_toml(path.read_text("utf-8")).get("metadata", {})
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BundleError(f"can't read the task's metadata: {error}", path=path) from error
    name = metadata.get("bundle", metadata.get("akm_bundle"))
    if not isinstance(name, str) or not name:
        raise BundleError(
            "the task names no bundle of its own",
            path=path,
            hint='Add `bundle = "NAME"` below [metadata], or choose one: --ak bundle=NAME (or bundle=empty).',
        )
    return name


def bundle_folders(task_dir: Path, bundles_dir: str | None) -> list[Path]:
    """Where to look for bundles, in order."""
    if bundles_dir is not None:
        return [Path(bundles_dir).expanduser().absolute()]
    folders = [task_dir.parent.parent / "agents" / "bundles"]
    with contextlib.suppress(AkmHarborError):  # an installation without a corpus
        folders.append(resource("agents", "bundles"))
    return folders


def find_bundle(choice: str, task_dir: Path, bundles_dir: str | None) -> Bundle:
    """The bundle an arm gets in this task.

    Args:
        choice: the `bundle` kwarg: `task`, `empty` or a name.
        task_dir: the task's folder on the host.
        bundles_dir: the kwarg of that name.

    Raises:
        BundleError: no such bundle, an unsafe name, or an unsafe file inside.
    """
    if choice == EMPTY:
        return Bundle(EMPTY, ())
    name = task_bundle_name(task_dir) if choice == TASK else choice
    if name in {".", ".."} or name.startswith(".") or any(c in "/\\\0" or not c.isprintable() for c in name):
        raise BundleError(f"not a bundle name: {name!r}", path=task_dir, hint="A bundle is one folder's plain name.")
    folders = bundle_folders(task_dir, bundles_dir)
    for folder in folders:
        if (folder / name).is_symlink():
            raise BundleError("a bundle must be a folder, not a link", path=folder / name)
        if (folder / name).is_dir():
            return read_bundle(folder / name)
    raise BundleError(
        f"no bundle named {name!r}",
        path=", ".join(str(folder) for folder in folders),
        hint="Check the name, or say where bundles lie: --ak bundles_dir=PATH.",
    )


def read_bundle(root: Path) -> Bundle:
    """Read a bundle's file list.

    Raises:
        BundleError: a link, a special file, a name with control characters, or too many files.
    """
    files: list[tuple[str, Path]] = []
    left_out: list[str] = []
    for folder, dirs, names in os.walk(root, followlinks=False):
        here = Path(folder)
        for name in [*dirs, *names]:
            if (here / name).is_symlink():
                raise BundleError("a bundle may hold no links", path=here / name, hint="Replace it by the file itself.")
        dirs[:] = sorted(d for d in dirs if not d.startswith(".") and d not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = here / name
            relative = path.relative_to(root).as_posix()
            if not relative.isprintable() or "\\" in relative:
                raise BundleError(f"a file name no container should see: {relative!r}", path=root)
            if not path.is_file():
                raise BundleError("neither a file nor a folder", path=path)
            if here == root:
                left_out.append(name)
            elif not name.startswith("."):
                files.append((relative, path))
    if len(files) > _MAX_FILES:
        raise BundleError(f"{len(files)} files in one bundle; at most {_MAX_FILES}", path=root)
    return Bundle(root.name, tuple(sorted(files)), tuple(left_out))
