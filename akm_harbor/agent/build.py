"""Build a toolchain on this machine, from npm packages by exact version or local packages."""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from akm_harbor.agent import archive, npm
from akm_harbor.agent.errors import ToolchainError
from akm_harbor.agent.pins import Spec
from akm_harbor.agent.platforms import Platform
from akm_harbor.agent.toolchain import FORMAT, INFO, OWN_FOLDERS, Toolchain, content_digest, place_of, read
from akm_harbor.json_toml import parse_json
from akm_harbor.resources import resource

AKM_WRAPPER = """#!/bin/sh
# akm under the toolchain's own Bun; the plugin's in-process akm is the same copy.
here=$(dirname "$(readlink -f "$0")")
exec "$here/bun" "$here/../plugin/node_modules/akm-cli/dist/cli.js" "$@"
"""


@contextmanager
def in_place(place: Path) -> Iterator[Path]:
    """A temporary folder that becomes `place` in one step, whole or not at all.

    Of several processes that build the same, one wins and the others' work is
    dropped: the content is the same.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=".building-", dir=place.parent))
    try:
        yield folder
        folder.chmod(0o755)
        try:
            folder.rename(place)
        except OSError:
            if not place.is_dir():
                raise
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def build(
    specs: Mapping[str, Spec],
    target: Platform,
    *,
    rebuild: bool = False,
    step: Callable[[str], None] = lambda _: None,
) -> Toolchain:
    """Build the toolchain of these specs, or take the one already built.

    Args:
        specs: part -> spec; without `akm` and `plugin` it becomes control-only.
        target: the containers' platform.
        rebuild: build even if it is in the cache.
        step: called with a line for a person before each step.

    Returns:
        The toolchain, unpacked in the cache with its archive beside it.

    Raises:
        ToolchainError: a part can't be had; the message names it and the remedy.
    """
    place = place_of(specs, target)
    if rebuild:
        shutil.rmtree(place, ignore_errors=True)
    if not (place / "tree" / INFO).is_file():
        shutil.rmtree(place, ignore_errors=True)  # left by hand, or by a full disk
        with in_place(place) as folder:
            _make(folder, specs, target, step)
    return read(place / "tree", place / "toolchain.tar")


def _make(folder: Path, specs: Mapping[str, Spec], target: Platform, step: Callable[[str], None]) -> None:
    tree = folder / "tree"
    downloads = folder / "downloads"
    for path in (tree / "bin", downloads):
        path.mkdir(parents=True)
    parts: dict[str, dict[str, Any]] = {}
    for part, package in (("opencode", target.opencode_package), ("bun", target.bun_package)):
        spec = specs[part]
        platform_spec = spec if spec.source else Spec(package, spec.version)
        step(f"{part}: {platform_spec}")
        parts[part] = _binary(part, platform_spec, downloads, tree / "bin" / part)
    if "plugin" in specs:
        parts |= _plugin(specs, downloads, tree, step)
    for name in OWN_FOLDERS:
        shutil.copytree(resource("agents", name), tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    step("archive")
    shutil.rmtree(downloads)
    info: dict[str, Any] = {"format": FORMAT, "platform": target.name, "parts": parts}
    info["digest"] = content_digest(tree, info)
    (tree / INFO).write_text(json.dumps(info, indent=2, sort_keys=True) + "\n", "utf-8")
    archive.pack(tree, folder / "toolchain.tar")


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / "package.json"
    try:
        manifest = parse_json(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ToolchainError(f"a package without a readable package.json: {error}", path=path) from error
    if not isinstance(manifest, dict) or not isinstance(manifest.get("version"), str):
        raise ToolchainError("package.json names no version", path=path)
    return manifest


def _binary(part: str, spec: Spec, downloads: Path, target: Path) -> dict[str, Any]:
    tarball, integrity = npm.pack(spec, downloads)
    unpacked = downloads / f"{part}-package"
    unpacked.mkdir()
    archive.unpack(tarball, unpacked, strip=1)
    version = str(_manifest(unpacked)["version"])
    binary = unpacked / "bin" / part
    if not binary.is_file() or binary.is_symlink():
        raise ToolchainError(f"the package has no bin/{part}", path=tarball, hint="Give the platform's own package.")
    shutil.move(binary, target)
    target.chmod(0o755)
    return {"package": spec.package, "version": version, "integrity": integrity}


def _plugin(
    specs: Mapping[str, Spec], downloads: Path, tree: Path, step: Callable[[str], None]
) -> dict[str, dict[str, Any]]:
    own = {"akm": "akm-cli", "plugin": "akm-opencode"}
    wanted: dict[str, str] = {}
    for part, package in own.items():
        spec = specs[part]
        step(f"{part}: {spec}")
        wanted[package] = (
            f"npm:{spec.package}@{spec.version}" if spec.source is None else f"file:{npm.pack(spec, downloads)[0]}"
        )
    root = tree / "plugin"
    root.mkdir()
    step("akm and plugin: dependencies")
    installed = npm.install(root, wanted)
    (root / "package.json").unlink()  # names this machine's tarballs
    _drop_foreign(root)
    copies = {name: entry["version"] for name, entry in installed.items() if f"/{name}".endswith("/akm-cli")}
    if len(copies) != 1:
        raise ToolchainError(
            f"the plugin brings an akm of its own: {copies}",
            hint="Pin the akm-cli version that akm-opencode asks for; two versions in one arm can't be told apart.",
        )
    (tree / "bin" / "akm").write_text(AKM_WRAPPER, "utf-8")
    (tree / "bin" / "akm").chmod(0o755)
    for package in own.values():
        # npm installs a local package under the name it was asked for, whatever it is.
        name = _manifest(root / "node_modules" / package).get("name")
        if name != package:
            raise ToolchainError(
                f"the package given for {package} is {name!r}", hint="Check the --akm and --plugin specs."
            )
    parts: dict[str, dict[str, Any]] = {
        part: {"package": package, **installed.get(package, {})} for part, package in own.items()
    }
    parts["plugin"]["packages"] = installed
    return parts


def _drop_foreign(root: Path) -> None:
    """Drop command links and links that lead out of the tree: nothing runs through them."""
    for folder in list(root.rglob(".bin")):
        shutil.rmtree(folder)
    for name, path in list(archive.walk(root)):
        if path.is_symlink() and not path.resolve().is_relative_to(root.resolve()):
            raise ToolchainError(f"{name} is a link out of the package tree", path=path)
        if not path.is_symlink():
            path.chmod(0o755 if path.stat().st_mode & 0o111 else 0o644)
