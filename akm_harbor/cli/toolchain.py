"""`akm-harbor toolchain`: build, show and find the archive that both arms run."""

import json
from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.say import say

app = typer.Typer(name="toolchain", help="The archive that both arms run: build, show, path.", no_args_is_help=True)

_PLATFORM = typer.Option("--platform", help="Containers' platform, e.g. linux-x64, linux-arm64, linux-x64-musl.")
_SPEC = "npm:NAME@VERSION, a version, or file:PATH; default: agents/pins.toml."


@app.command(epilog="Example: akm-harbor toolchain build --akm file:akm-cli.tgz --plugin file:akm-opencode.tgz")
def build(
    opencode: Annotated[str | None, typer.Option(help=f"opencode. {_SPEC}")] = None,
    bun: Annotated[str | None, typer.Option(help=f"Bun. {_SPEC}")] = None,
    akm: Annotated[str | None, typer.Option(help=f"akm-cli. {_SPEC}")] = None,
    plugin: Annotated[str | None, typer.Option(help=f"akm-opencode. {_SPEC}")] = None,
    platform: Annotated[str | None, _PLATFORM] = None,
    control_only: Annotated[bool, typer.Option("--control-only", help="Leave out akm and its plugin.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Build again even if it is in the cache.")] = False,
) -> None:
    """Build the archive from npm packages by exact version, or from local packages.

    Prints the archive's path. Built once and cached; the same specs give the same digest.
    """
    from rich.console import Console

    from akm_harbor.agent.build import build as make
    from akm_harbor.agent.pins import load_pins, parse_spec
    from akm_harbor.agent.platforms import host, named
    from akm_harbor.errors import UsageError

    if control_only and (akm or plugin):
        raise UsageError("--control-only leaves out akm and its plugin; drop it, or --akm and --plugin")
    pins = load_pins()
    given = {"opencode": opencode, "bun": bun, "akm": akm, "plugin": plugin}
    specs = {
        part: parse_spec(given[part] or str(pin), pin)
        for part, pin in pins.items()
        if not (control_only and part in {"akm", "plugin"})
    }
    console = Console(stderr=True)
    with console.status("toolchain …") as status:
        built = make(
            specs,
            named(platform) if platform else host(),
            rebuild=rebuild,
            step=lambda line: status.update(f"toolchain … {line}"),
        )
    console.print(f"{built.agent_version}  {built.platform}{'  control-only' if built.control_only else ''}")
    say(built.tar or built.tree)


@app.command(epilog="Example: akm-harbor toolchain show --verify")
def show(
    toolchain: Annotated[Path | None, typer.Argument(help="An archive; default: the one an arm would use.")] = None,
    platform: Annotated[str | None, _PLATFORM] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read the content again and compare its digest.")] = False,
    mount: Annotated[bool, typer.Option("--mount", help="Print the mount for a job file instead.")] = False,
) -> None:
    """Print what an archive holds: versions, digest, platform; with --verify check it."""
    from akm_harbor.agent import layout
    from akm_harbor.agent.platforms import named
    from akm_harbor.agent.toolchain import find
    from akm_harbor.agent.toolchain import verify as check

    found = find(toolchain, target=named(platform) if platform else None)
    if verify:
        check(found)
    if mount:
        entry = {"type": "bind", "source": str(found.tree), "target": layout.TOOLCHAIN, "read_only": True}
        say(json.dumps([entry]))
        return
    described = {
        "archive": str(found.tar) if found.tar else None,
        "tree": str(found.tree),
        "digest": found.digest,
        "platform": found.platform,
        "control_only": found.control_only,
        "versions": dict(found.versions),
    }
    say(json.dumps(described, indent=2))


@app.command(epilog="Example: harbor run -a akm_harbor:ControlOpenCode --ak toolchain=$(akm-harbor toolchain path) ...")
def path(platform: Annotated[str | None, _PLATFORM] = None) -> None:
    """Print the archive an arm would use."""
    from akm_harbor.agent.platforms import named
    from akm_harbor.agent.toolchain import find

    found = find(None, target=named(platform) if platform else None)
    say(found.tar or found.tree)
