"""`install=npm`: the same layout, made by npm inside the container instead of an archive."""

from typing import TYPE_CHECKING

from harbor.environments.base import BaseEnvironment

from akm_harbor.agent import delivery, layout
from akm_harbor.agent.build import AKM_WRAPPER
from akm_harbor.agent.pins import Spec
from akm_harbor.agent.toolchain import OWN_FOLDERS
from akm_harbor.resources import resource

if TYPE_CHECKING:
    from collections.abc import Mapping

_NVM = "[ -f ~/.nvm/nvm.sh ] && . ~/.nvm/nvm.sh; "


def install_command(pins: "Mapping[str, Spec]", *, treatment: bool) -> str:
    """The shell command, as the agent's user, after Harbor has installed Node and opencode.

    Bun comes by npm as its platform package (no install script), akm and the plugin
    without optional dependencies, as in the archive.
    """
    quiet = "--no-audit --no-fund --ignore-scripts"
    root = layout.TOOLCHAIN
    steps = [
        f"npm install {quiet} --prefix {root}/bun bun@{pins['bun'].version}",
        f"ln -sf {root}/bun/node_modules/@oven/bun-linux-*/bin/bun {root}/bin/bun",
        f'ln -sf "$(command -v opencode)" {root}/bin/opencode',
    ]
    if treatment:
        wanted = " ".join(f"{pins[part].package}@{pins[part].version}" for part in ("akm", "plugin"))
        steps.append(f"npm install {quiet} --omit=optional --prefix {root}/plugin {wanted}")
    return f"{_NVM}mkdir -p {root}/bin && " + " && ".join(steps)


async def bring_by_npm(environment: BaseEnvironment, pins: "Mapping[str, Spec]", *, treatment: bool) -> None:
    """Install what the archive would hold, inside the container.

    Raises:
        AgentError: npm failed; the message ends with its output.
    """
    await delivery.must(environment, "installing by npm", install_command(pins, treatment=treatment))
    files = {f"toolchain/{name}": resource("agents", name) for name in OWN_FOLDERS}
    await delivery.upload_files(environment, {**files, "toolchain/bin/akm": AKM_WRAPPER} if treatment else files)
    if treatment:
        await delivery.must(environment, "making akm runnable", f"chmod 755 {layout.TOOLCHAIN}/bin/akm", user="root")
