"""The few npm calls a toolchain needs: packages by exact version, install scripts never run."""

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from akm_harbor.agent.errors import ToolchainError
from akm_harbor.agent.pins import Spec


def _npm(arguments: Sequence[str], cwd: Path) -> str:
    npm = shutil.which("npm")
    if npm is None:
        raise ToolchainError(
            "npm is not installed", hint="Install Node.js 20 or newer with npm; it is needed once, here."
        )
    quiet = {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_update_notifier": "false"}
    done = subprocess.run(
        [npm, *arguments], cwd=cwd, env={**os.environ, **quiet}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        lines = [line.removeprefix("npm error ") for line in done.stderr.splitlines() if "complete log" not in line]
        detail = " ".join(line for line in lines if line.strip())[:400]
        raise ToolchainError(f"npm {arguments[0]} failed: {detail}", hint=_remedy(done.stderr))
    return done.stdout


def _remedy(stderr: str) -> str:
    if "E404" in stderr:
        return (
            "The registry in use does not have that package. Point npm at one that does, or give a tarball: "
            "--akm file:akm-cli.tgz --plugin file:akm-opencode.tgz; --control-only builds without them."
        )
    if "ETARGET" in stderr:
        return "The registry does not have that version; correct agents/pins.toml or give the spec on the command line."
    return "Check the network and npm's registry setting, then try again."


def pack(spec: Spec, target: Path) -> tuple[Path, str | None]:
    """Fetch one package as a tarball into `target`.

    Returns:
        The tarball and npm's integrity string (None for a `file:` tarball).

    Raises:
        ToolchainError: npm is missing, the package is not there, or it can't be packed.
    """
    if spec.source is not None and spec.source.is_file():
        return spec.source, None
    what = str(spec.source) if spec.source else f"{spec.package}@{spec.version}"
    entries = json.loads(_npm(["pack", what, "--json", "--ignore-scripts"], target))
    entry = entries[0] if isinstance(entries, list) else next(iter(entries.values()))
    name = str(entry["filename"]).replace("@", "").replace("/", "-")
    return target / name, None if spec.source else str(entry["integrity"])


def install(root: Path, dependencies: dict[str, str]) -> dict[str, dict[str, str]]:
    """Install packages below `root`, without scripts and optional dependencies.

    Args:
        root: an existing folder; gets a package.json and node_modules.
        dependencies: package name -> exact version or `file:` path.

    Returns:
        Every installed package: path below node_modules -> version and integrity.
    """
    manifest = {"name": "akm-harbor-plugin", "private": True, "dependencies": dependencies}
    (root / "package.json").write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")
    _npm(["install", "--ignore-scripts", "--omit=optional", "--no-package-lock", "--install-links"], root)
    lock = root / "node_modules" / ".package-lock.json"
    packages = json.loads(lock.read_text("utf-8")).get("packages", {})
    lock.unlink()  # names the registry in use; what matters of it goes into toolchain.json
    return {
        name.removeprefix("node_modules/"): {
            "version": str(entry.get("version", "")),
            "integrity": str(entry.get("integrity", "")),
        }
        for name, entry in sorted(packages.items())
        if name
    }
