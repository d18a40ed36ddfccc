"""Exact versions of what enters a container: agents/pins.toml, or `npm:` and `file:` specs."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.agent.errors import ToolchainError
from akm_harbor.errors import UsageError
from akm_harbor.json_toml import parse_toml
from akm_harbor.resources import resource

PARTS = ("opencode", "bun", "akm", "plugin")
"""What a toolchain is made of; the last two are absent from a control-only one."""

_EXACT = re.compile(r"^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.-]+)?$")
_NAME = re.compile(r"^(?:@[a-z0-9._-]+/)?[a-z0-9._-]+$")


@dataclass(frozen=True, slots=True)
class Spec:
    """Where one part comes from.

    Attributes:
        package: npm package name.
        version: exact version; empty for a `file:` source, whose package.json tells.
        source: a tarball or package folder on this machine, or None for npm.
    """

    package: str
    version: str
    source: Path | None = None

    def __str__(self) -> str:
        return f"file:{self.source}" if self.source else f"npm:{self.package}@{self.version}"


def parse_spec(text: str, default: Spec) -> Spec:
    """Read `npm:NAME@VERSION`, `NAME@VERSION`, a bare `VERSION` or `file:PATH`.

    Raises:
        UsageError: neither of these, a range or a tag instead of an exact version,
            or a file that is not there.
    """
    if text.startswith("file:"):
        source = Path(text.removeprefix("file:")).expanduser().resolve()
        if not source.exists():
            raise UsageError("no such package file or folder", path=source)
        if source.is_dir() and not (source / "package.json").is_file():
            raise UsageError("a package folder needs a package.json", path=source)
        return Spec(default.package, "", source)
    body = text.removeprefix("npm:")
    name, at, version = body.rpartition("@") if "@" in body[1:] else ("", "", body)
    name = name if at else default.package
    if not _NAME.match(name) or not _EXACT.match(version):
        raise UsageError(
            f"not an exact package spec: {text!r}",
            hint="Give npm:NAME@1.2.3 or file:PATH; a range or a tag would change what is measured.",
        )
    return Spec(name, version)


def load_pins(path: Path | None = None) -> dict[str, Spec]:
    """Read the pins file: part name -> spec.

    Raises:
        ToolchainError: not readable as pins; the message names the entry.
    """
    path = path or resource("agents", "pins.toml")
    try:
        table = parse_toml(path.read_text("utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ToolchainError(f"can't read the pins: {error}", path=path) from error
    pins: dict[str, Spec] = {}
    for part in PARTS:
        entry = table.get(part)
        package = entry.get("package") if isinstance(entry, dict) else None
        version = entry.get("version") if isinstance(entry, dict) else None
        if not isinstance(package, str) or not isinstance(version, str):
            raise ToolchainError(f"[{part}] needs a package and a version", path=path)
        try:
            pins[part] = parse_spec(f"npm:{package}@{version}", Spec(package, version))
        except UsageError as error:
            raise ToolchainError(f"[{part}]: {error.message}", path=path, hint=error.hint) from error
    return pins
