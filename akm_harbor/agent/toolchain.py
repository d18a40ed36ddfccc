"""The toolchain: one content-addressed archive of everything an arm's agent runs.

In the cache, one folder a build: `toolchains/<key>/{toolchain.tar, tree/}`. The
key is made from the asked-for specs, the platform and our own files, so a changed
pin or probe is another build; the digest is made from the content.
"""

import hashlib
import json
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.agent import archive
from akm_harbor.agent.errors import ToolchainError, ToolchainIncompleteError, ToolchainMissingError
from akm_harbor.agent.pins import PARTS, Spec, load_pins
from akm_harbor.agent.platforms import Platform, host
from akm_harbor.json_toml import parse_json
from akm_harbor.resources import resource

FORMAT = 1
INFO = "toolchain.json"
OWN_FOLDERS = ("probe", "scripts", "shim")
"""Folders of agents/ that go into the archive as they are."""

ENV = "AKM_HARBOR_TOOLCHAIN"
"""Environment variable that names an archive, below the `toolchain` kwarg."""


@dataclass(frozen=True, slots=True)
class Toolchain:
    """A built toolchain, unpacked.

    Attributes:
        tree: its unpacked folder.
        tar: the archive beside it; None for a folder given without one.
        digest: content digest, 64 hex digits.
        platform: e.g. `linux-x64`.
        versions: part -> version; akm and plugin are absent from a control-only one.
    """

    tree: Path
    tar: Path | None
    digest: str
    platform: str
    versions: Mapping[str, str]

    @property
    def control_only(self) -> bool:
        """Whether akm and its plugin are missing."""
        return not {"akm", "plugin"} <= set(self.versions)

    @property
    def agent_version(self) -> str:
        """What goes into the agent's version: opencode's and the toolchain's."""
        return f"{self.versions['opencode']}+tc.{self.digest[:12]}"

    def require_akm(self) -> None:
        """Raise unless akm and its plugin are inside.

        Raises:
            ToolchainIncompleteError: this is a control-only toolchain.
        """
        if self.control_only:
            raise ToolchainIncompleteError(
                "this toolchain is control-only: it has no akm and no akm-opencode",
                path=self.tar or self.tree,
                hint="Build a full one with `akm-harbor toolchain build`, or run ControlOpenCode.",
            )


def cache_dir() -> Path:
    """The user's cache folder: `$AKM_HARBOR_CACHE`, else the platform's own."""
    if given := os.environ.get("AKM_HARBOR_CACHE"):
        return Path(given).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "akm_harbor"
    if platform.system() == "Windows":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home() / "AppData" / "Local"))) / "akm_harbor"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "akm_harbor"


def read(tree: Path, tar: Path | None = None) -> Toolchain:
    """Read an unpacked toolchain's own description.

    Raises:
        ToolchainError: not a toolchain, or of a format this version doesn't know.
    """
    path = tree / INFO
    try:
        info = parse_json(path.read_text("utf-8"))
        if info["format"] != FORMAT:
            raise ToolchainError(
                f"toolchain format {info['format']!r}, not {FORMAT}", path=path, hint="Build it again."
            )
        versions = {part: str(entry["version"]) for part, entry in info["parts"].items()}
        return Toolchain(tree, tar, str(info["digest"]), str(info["platform"]), versions)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolchainError(f"not a built toolchain: {error!r}", path=path) from error


def open_toolchain(path: Path) -> Toolchain:
    """Open a toolchain given as an archive or as its unpacked folder.

    A bare archive is unpacked once, into the cache, beside its content.

    Raises:
        ToolchainMissingError: nothing there.
        ToolchainError: it is no toolchain.
    """
    path = path.expanduser().absolute()
    if not path.exists():
        raise ToolchainMissingError("no such toolchain", path=path, hint="Build one: akm-harbor toolchain build")
    if path.is_dir():
        if (path / INFO).is_file():
            sibling = path.parent / "toolchain.tar"
            return read(path, sibling if sibling.is_file() else None)
        path = path / "toolchain.tar"
    if (path.parent / "tree" / INFO).is_file():
        return read(path.parent / "tree", path)
    with path.open("rb") as file:
        name = hashlib.file_digest(file, "sha256").hexdigest()[:32]
    place = cache_dir() / "toolchains" / f"tar-{name}"
    if not (place / "tree" / INFO).is_file():
        from akm_harbor.agent.build import in_place

        with in_place(place) as folder:
            (folder / "tree").mkdir()
            archive.unpack(path, folder / "tree")
    return read(place / "tree", path)


def content_digest(tree: Path, info: Mapping[str, Any]) -> str:
    """The digest of a toolchain: its files and its own description, without the digest in it."""
    described = json.dumps({key: value for key, value in info.items() if key != "digest"}, sort_keys=True)
    files = archive.tree_digest(tree, without=frozenset({INFO}))
    return hashlib.sha256(f"{files}\n{described}".encode()).hexdigest()


def verify(toolchain: Toolchain) -> None:
    """Read the whole tree again and compare its digest.

    Raises:
        ToolchainError: the content is not what the toolchain says it is.
    """
    info = parse_json((toolchain.tree / INFO).read_text("utf-8"))
    if content_digest(toolchain.tree, info) != toolchain.digest:
        raise ToolchainError(
            "the content does not match its digest",
            path=toolchain.tree,
            hint="Build it again: akm-harbor toolchain build --rebuild",
        )


def build_key(specs: Mapping[str, Spec], target: Platform) -> str:
    """Name of the cache folder for these specs: 32 hex digits.

    `file:` sources count by content, our own probe and scripts too.
    """
    parts: dict[str, str] = {}
    for part in PARTS:
        if part not in specs:
            continue
        source = specs[part].source
        if source is None:
            parts[part] = str(specs[part])
        elif source.is_dir():
            parts[part] = archive.tree_digest(source)
        else:
            with source.open("rb") as file:
                parts[part] = hashlib.file_digest(file, "sha256").hexdigest()
    own = {name: archive.tree_digest(resource("agents", name)) for name in OWN_FOLDERS}
    recipe = {"format": FORMAT, "platform": target.name, "parts": parts, "own": own}
    return hashlib.sha256(json.dumps(recipe, sort_keys=True).encode()).hexdigest()[:32]


def default_specs(*, control_only: bool) -> dict[str, Spec]:
    """The pinned specs, without akm and its plugin for a control-only toolchain."""
    pins = load_pins()
    return {part: pins[part] for part in PARTS if not (control_only and part in {"akm", "plugin"})}


def place_of(specs: Mapping[str, Spec], target: Platform) -> Path:
    """The cache folder these specs are, or would be, built in."""
    return cache_dir() / "toolchains" / build_key(specs, target)


def find(given: str | Path | None, *, target: Platform | None = None, need_akm: bool = False) -> Toolchain:
    """The toolchain an arm uses.

    Args:
        given: the `toolchain` kwarg; wins over `$AKM_HARBOR_TOOLCHAIN`, which wins
            over the one built for agents/pins.toml.
        target: the container's platform, default this machine's.
        need_akm: whether akm and its plugin must be inside.

    Returns:
        The full toolchain; a control-only one only where no full one was built.

    Raises:
        ToolchainMissingError: none is built; the hint names the command.
        ToolchainIncompleteError: only a control-only one is there and akm is needed.
    """
    chosen = given or os.environ.get(ENV)
    if chosen:
        toolchain = open_toolchain(Path(chosen))
    else:
        target = target or host()
        places = [place_of(default_specs(control_only=control_only), target) for control_only in (False, True)]
        built = [place for place in places if (place / "tree" / INFO).is_file()]
        if not built:
            raise ToolchainMissingError(
                f"no toolchain is built for agents/pins.toml on {target.name}",
                path=places[0],
                hint=f"Build it once: akm-harbor toolchain build --platform {target.name}",
            )
        toolchain = read(built[0] / "tree", built[0] / "toolchain.tar")
    if need_akm:
        toolchain.require_akm()
    return toolchain
