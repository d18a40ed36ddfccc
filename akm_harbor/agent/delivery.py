"""Bring the toolchain and the arm's files into an environment."""

import inspect
import json
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harbor.environments.base import BaseEnvironment

from akm_harbor.agent import layout, platforms
from akm_harbor.agent.bundle import Bundle
from akm_harbor.agent.errors import AgentError, ToolchainError
from akm_harbor.agent.pins import load_pins
from akm_harbor.agent.toolchain import INFO, Toolchain

PROXY_NAMES = tuple(
    name for plain in ("http_proxy", "https_proxy", "all_proxy", "no_proxy") for name in (plain, plain.upper())
)


async def must(environment: BaseEnvironment, what: str, command: str, **options: Any) -> str:
    """Run a command of the set-up; stdout, or an error that says what it was for."""
    done = await environment.exec(command, **options)
    if done.return_code != 0:
        detail = (done.stderr or done.stdout or "").strip()[-500:]
        raise AgentError(f"{what} failed (exit {done.return_code}): {detail}")
    return done.stdout or ""


async def look(environment: BaseEnvironment, folders: list[str]) -> tuple[platforms.Platform | None, str | None]:
    """Make the arm's folders and find out where we are.

    Returns:
        The container's platform (None if it can't be told) and the digest of a
        toolchain that is already there, mounted by the job or part of the image.
    """
    present = (
        f'if [ -r {layout.TOOLCHAIN}/{INFO} ]; then grep -o \'"digest": *"[0-9a-f]*"\' {layout.TOOLCHAIN}/{INFO}; fi'
    )
    made = " ".join(folders)
    command = f"mkdir -p {made} && chmod 777 {made} && {{ {platforms.DETECT}; {present}; }}"
    lines = (await must(environment, "preparing the arm's folders", command, user="root")).splitlines()
    digest = lines.pop().split('"')[3] if lines and lines[-1].startswith('"digest"') else None
    return platforms.from_container("\n".join(lines)), digest


async def bring_toolchain(environment: BaseEnvironment, toolchain: Toolchain) -> str:
    """Put the toolchain at its place: by read-only mount, else by one upload.

    Returns:
        How: `mount` or `upload`.
    """
    mount = getattr(environment, "add_readonly_mount", None)
    if mount is not None:
        outcome = mount(toolchain.tree, layout.TOOLCHAIN)
        if inspect.isawaitable(outcome):
            await outcome
        return "mount"
    if toolchain.tar is None:
        raise ToolchainError(
            "an archive is needed to upload", path=toolchain.tree, hint="Give the .tar, not its folder."
        )
    packed = f"{layout.TMP}/toolchain.tar"
    await environment.upload_file(toolchain.tar, packed)
    command = f"mkdir -p {layout.TOOLCHAIN} && tar -xf {packed} -C {layout.TOOLCHAIN} && rm -f {packed}"
    await must(environment, "unpacking the toolchain", command, user="root")
    return "upload"


async def upload_files(
    environment: BaseEnvironment, files: Mapping[str, str | Path], bundle: Bundle | None = None
) -> None:
    """Upload small files below the arm's root in one go.

    Args:
        environment: where to.
        files: path below the root -> text, or a folder on the host to copy.
        bundle: a bundle to lay out, or None.
    """
    with tempfile.TemporaryDirectory(prefix="akm-harbor-") as name:
        _lay_out(Path(name), files, bundle)
        await environment.upload_dir(Path(name), layout.ROOT)


def _lay_out(stage: Path, files: Mapping[str, str | Path], bundle: Bundle | None) -> None:
    stage.chmod(0o755)  # a temporary folder is private, the agent's user must read it
    for relative, content in files.items():
        target = stage / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, Path):
            shutil.copytree(content, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.write_text(content, "utf-8")
    if bundle is not None:
        bundle.copy_to(stage / "bundle")


def config_folder() -> dict[str, str]:
    """What makes opencode's config folder complete, so that no npm install runs in a trial.

    opencode installs @opencode-ai/plugin there at start, and waits for it when a
    plugin is configured: 70 s without a network, a package fetch inside the trial
    with one. An empty node_modules beside a lock file without entries stops it.
    """
    needs = {"@opencode-ai/plugin": load_pins()["opencode"].version}
    lock = {"name": "opencode", "lockfileVersion": 3, "requires": True, "packages": {"": {"dependencies": needs}}}
    return {
        "home/package.json": json.dumps({"dependencies": needs}) + "\n",
        "home/package-lock.json": json.dumps(lock) + "\n",
    }


def settle_command() -> str:
    """As the agent's user: fill opencode's config folder from what was uploaded."""
    return f"mkdir -p ~/.config/opencode/node_modules && cp -R {layout.ROOT}/home/. ~/.config/opencode/"


def run_prefix(run_id: str) -> str:
    """Shell text before Harbor's opencode command.

    The toolchain's opencode wins over any other, its children are marked with the
    run's id, images without stdbuf (busybox) work, and empty proxy variables,
    which some clients take for a proxy named "", are gone.
    """
    unset = "; ".join(f'[ -n "${{{name}:-}}" ] || unset {name}' for name in PROXY_NAMES)
    return (
        f'export PATH={layout.BIN}:"$PATH"; {unset}; '
        f'opencode() {{ AKM_HARBOR_RUN={shlex.quote(run_id)} {layout.BIN}/opencode "$@"; }}; '
        'command -v stdbuf >/dev/null 2>&1 || stdbuf() { shift; "$@"; }; '
    )


def without_empty_proxies(environment: Mapping[str, str] | None) -> dict[str, str]:
    """A copy without proxy variables that are set to nothing."""
    return {k: v for k, v in (environment or {}).items() if v or k not in PROXY_NAMES}
