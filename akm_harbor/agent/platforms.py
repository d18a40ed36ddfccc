"""Container platforms, and which npm package holds which binary for each."""

import platform
import re
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.errors import UsageError

DETECT = (
    "uname -m; if ls /lib/ld-musl-* >/dev/null 2>&1; then echo musl; else echo glibc; fi; "
    'if [ "$(uname -m)" != x86_64 ] || grep -qm1 avx2 /proc/cpuinfo; then echo avx2; else echo baseline; fi'
)
"""Shell command whose three lines `from_container` reads."""

_ARCH = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}


@dataclass(frozen=True, slots=True)
class Platform:
    """One container platform, named as the npm packages name it.

    Attributes:
        name: `linux-x64`, `linux-arm64`, each also `-musl`; x64 also `-baseline`
            (before `-musl`) for CPUs without AVX2.
    """

    name: str

    @property
    def opencode_package(self) -> str:
        """The npm package with opencode's binary."""
        return f"opencode-{self.name}"

    @property
    def bun_package(self) -> str:
        """The npm package with Bun's binary; one x64 build serves every CPU."""
        arch = "aarch64" if "arm64" in self.name else "x64"
        return f"@oven/bun-linux-{arch}{'-musl' if self.name.endswith('-musl') else ''}"


NAMES = (
    "linux-x64",
    "linux-x64-baseline",
    "linux-x64-musl",
    "linux-x64-baseline-musl",
    "linux-arm64",
    "linux-arm64-musl",
)


def named(name: str) -> Platform:
    """The platform of that name.

    Raises:
        UsageError: there is no such platform; the message lists them.
    """
    if name not in NAMES:
        raise UsageError(f"unknown platform {name!r}", hint=f"One of: {', '.join(NAMES)}.")
    return Platform(name)


def host() -> Platform:
    """The platform that containers on this machine most likely have (glibc).

    Raises:
        UsageError: no toolchain exists for this machine's processor.
    """
    arch = _ARCH.get(platform.machine().lower())
    if arch is None:
        raise UsageError(f"no toolchain for processor {platform.machine()!r}", hint=f"One of: {', '.join(NAMES)}.")
    cpu = Path("/proc/cpuinfo")
    old = arch == "x64" and cpu.is_file() and not re.search(r"\bavx2\b", cpu.read_text("utf-8", "replace"))
    return Platform(f"linux-{arch}{'-baseline' if old else ''}")


def from_container(output: str) -> Platform | None:
    """Read what `DETECT` printed inside a container; None if it makes no sense."""
    lines = output.split()
    arch = _ARCH.get(lines[0].lower()) if len(lines) == 3 else None
    if arch is None:
        return None
    baseline = "-baseline" if arch == "x64" and lines[2] == "baseline" else ""
    return Platform(f"linux-{arch}{baseline}{'-musl' if lines[1] == 'musl' else ''}")
