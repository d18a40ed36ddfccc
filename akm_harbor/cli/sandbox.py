"""`akm-harbor sandbox`: can this machine run it, and sweep up what killed runs left."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.say import say

app = typer.Typer(
    name="sandbox", help="Harbor trials without Docker, for demos, tests and CI: check, clean.", no_args_is_help=True
)

_CACHE_DIR = typer.Option(
    "--cache-dir", help="Where the sandbox keeps its layers, as given to it with --ek cache_dir=…"
)


@app.command(epilog="Example: akm-harbor sandbox check")
def check(
    rootfs: Annotated[Path | None, typer.Option(help="Try it on this root file system instead of the host's.")] = None,
    cache_dir: Annotated[Path | None, _CACHE_DIR] = None,
) -> None:
    """Tell whether trials can run here with `-e akm_harbor:SandboxEnvironment`; exit code 1 if not."""
    import asyncio

    from akm_harbor.sandbox.check import findings
    from akm_harbor.sandbox.places import places

    found = asyncio.run(findings(places(cache_dir), rootfs))
    for finding in found:
        say(f"{'ok  ' if finding.ok else 'MISS'} {finding.name}: {finding.detail}")
        if not finding.ok and finding.hint:
            say(f"     {finding.hint}")
    if not all(finding.ok for finding in found):
        raise typer.Exit(1)


@app.command(epilog="Example: akm-harbor sandbox clean --images")
def clean(
    images: Annotated[
        bool, typer.Option("--images", help="Also remove built images; the next trial of each task builds again.")
    ] = False,
    cache_dir: Annotated[Path | None, _CACHE_DIR] = None,
) -> None:
    """Remove what killed runs left on disk; running sandboxes are left alone."""
    from akm_harbor.sandbox.check import linux
    from akm_harbor.sandbox.cleanup import sweep
    from akm_harbor.sandbox.places import places

    linux()
    swept = sweep(places(cache_dir), images=images)
    say(f"removed {len(swept.removed)} folders, {swept.freed / 1e6:.1f} MB")
    if swept.running:
        kept = ", and so are the images" if images else ""
        say(f"{len(swept.running)} sandboxes are running and left alone{kept}")
