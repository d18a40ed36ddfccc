"""What this machine has and lacks for the sandbox; `akm-harbor sandbox check` prints it."""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.sandbox import root
from akm_harbor.sandbox.failures import SandboxError, SandboxStartError, SandboxUnavailableError
from akm_harbor.sandbox.places import Places

_INSTALL = "Install bubblewrap, e.g. `apt-get install bubblewrap` or `dnf install bubblewrap`."
_APPARMOR = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
_MAX_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the sandbox needs: whether it is there, what was seen, what to do if not."""

    name: str
    ok: bool
    detail: str
    hint: str = ""


def linux() -> None:
    """Refuse any system but Linux.

    Raises:
        SandboxUnavailableError: this is not Linux.
    """
    if sys.platform != "linux":
        raise SandboxUnavailableError(
            f"the sandbox runs on Linux only, this is {platform.system()}", hint="Use `-e docker`."
        )


def bubblewrap() -> str:
    """Path of the bwrap program.

    Raises:
        SandboxUnavailableError: this is not Linux, or bubblewrap is not installed.
    """
    linux()
    found = shutil.which("bwrap")
    if found is None:
        raise SandboxUnavailableError("bubblewrap (bwrap) is not installed", hint=_INSTALL)
    return found


async def findings(where: Places, rootfs: Path | None = None) -> list[Finding]:
    """Look at this machine; the last finding is a sandbox really started, with a command in it."""
    found = [
        Finding("system", sys.platform == "linux", f"{platform.system()} {platform.release()}", "Use `-e docker`.")
    ]
    bwrap = shutil.which("bwrap")
    found.append(Finding("bubblewrap", bwrap is not None, _version(bwrap) if bwrap else "not found", _INSTALL))
    if not all(finding.ok for finding in found):
        return found
    found.append(_privilege())
    free = shutil.disk_usage(where.cache).free >> 20
    found.append(
        Finding("cache", free > 1024, f"{where.cache}, {free} MB free", "Free some disk, or choose another cache_dir.")
    )
    try:
        base = root.given_root(rootfs, where.bases) if rootfs else root.host_root(where.bases)
        root.check_no_overlap(base, where.cache)
        found.append(await _trial(base, where))
    except SandboxStartError as error:
        found.append(Finding("a real sandbox", ok=False, detail=error.message, hint=_why_not(error.message)))
    except SandboxError as error:
        found.append(
            Finding("a real sandbox", ok=False, detail=f"{error.path}: {error.message}", hint=error.hint or "")
        )
    return found


async def _trial(base: root.Root, where: Places) -> Finding:
    from akm_harbor.sandbox.dockerfile import Plan
    from akm_harbor.sandbox.image import Image
    from akm_harbor.sandbox.process import Sandbox
    from akm_harbor.sandbox.protocol import Setup

    folder = Path(tempfile.mkdtemp(prefix="check-", dir=where.trials))
    overlays = Image(base, Plan(), None).overlays(folder)
    sandbox = await Sandbox.start(Setup(str(folder), overlays, (), root.HOSTNAME, bubblewrap(), os.geteuid() != 0))
    try:
        result = await sandbox.run(
            ["sh", "-c", "echo made > /made && cat /made && command -v bash tar find >/dev/null"],
            env={"PATH": "/usr/bin:/bin"},
            network=False,
        )
    finally:
        await sandbox.stop(remove=True)
    ok = result.code == 0 and result.stdout == b"made\n"
    said = result.stderr.decode(errors="replace").strip() or "bash, tar or find is missing in it"
    return Finding(
        "a real sandbox", ok, "started, ran a command, stopped" if ok else said, "Harbor needs bash, tar and find."
    )


def _version(bwrap: str) -> str:
    said = subprocess.run([bwrap, "--version"], capture_output=True, text=True, timeout=10, check=False)
    return said.stdout.strip() or bwrap


def _privilege() -> Finding:
    if os.geteuid() == 0:
        return Finding("privilege", ok=True, detail="root: commands can run as any user")
    text = "not root: a user namespace with a single user"
    return Finding("privilege", not _refused(), f"{text}; {_refused()}" if _refused() else text, _why_not())


def _refused() -> str:
    """Why the kernel would not give an unprivileged process a namespace; empty when it would."""
    if _MAX_NAMESPACES.exists() and _MAX_NAMESPACES.read_text().strip() == "0":
        return "user namespaces are switched off (user.max_user_namespaces = 0)"
    if _APPARMOR.exists() and _APPARMOR.read_text().strip() == "1":
        return "AppArmor keeps them from mounting (kernel.apparmor_restrict_unprivileged_userns = 1)"
    return ""


def _why_not(said: str = "") -> str:
    if "mount overlay" in said and "Invalid argument" in said:
        return (
            "The cache has to lie on a local disk or a tmpfs, not on another overlay or a network drive: "
            "try `--cache-dir /dev/shm/akm-sandbox` here and `--ek cache_dir=/dev/shm/akm-sandbox` with Harbor."
        )
    if os.geteuid() == 0:
        return "Inside a container, start it with --privileged; outside, the kernel needs overlayfs."
    return (
        "Run as root, or on Linux 5.11 or newer allow user namespaces "
        "(`sysctl user.max_user_namespaces=10000 kernel.apparmor_restrict_unprivileged_userns=0`)."
    )
