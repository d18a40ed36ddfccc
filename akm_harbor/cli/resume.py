"""`akm-harbor arms resume`: go on with an interrupted job, without losing anything to it."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.say import say


def resume(
    job: Annotated[Path, typer.Argument(metavar="JOB", help="The job's directory.")],
    again: Annotated[
        list[str] | None,
        typer.Option("--filter-error-type", "-f", help="Run trials with this exception again; default CancelledError."),
    ] = None,
    plugin: Annotated[
        list[str] | None, typer.Option("--plugin", help="A Harbor job plugin, e.g. akm; Harbor remembers none.")
    ] = None,
    plugin_kwarg: Annotated[list[str] | None, typer.Option("--pk", help="KEY=VALUE for the plugin.")] = None,
    cwd: Annotated[
        Path | None, typer.Option(help="The folder the job was started in; found out from the job where it can be.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only tell what would be done, or what blocks it.")
    ] = False,
) -> None:
    """Resume a job with Harbor, after finding out what would block that.

    Harbor's own resume deletes trials before it checks whether it can go on. This looks first, says which
    task or key is in the way, and records what Harbor is about to delete, so that it stays visible.

    Example: `akm-harbor arms resume jobs/eval --plugin akm`
    """
    from akm_harbor.study import resume as resuming

    kinds = tuple(again or resuming.CANCELLED)
    more = [part for name in plugin or [] for part in ("--plugin", name)]
    more += [part for value in plugin_kwarg or [] for part in ("--pk", value)]
    found = resuming.preview(job, cwd=cwd, again=kinds)
    say(f"{found.job}: {_plan(found)}")
    for doomed in found.doomed:
        say(f"  run again: {doomed.name} ({doomed.why})")
    for name in found.unreadable:
        say(f"  run again, its directory stays: {name} (Harbor cannot read its result)")
    for blocker in found.blockers if dry_run else ():
        say(f"  blocked: {blocker}")
    command = resuming.resume_command(found, again=kinds, more=more, in_cwd=True)
    if not found.blockers:
        say(resuming.as_typed(found, command))
    if dry_run:
        raise typer.Exit(1 if found.blockers else 0)
    code = resuming.resume(found, again=kinds, more=more)
    counted = resuming.tally(found.job)
    statuses = ", ".join(f"{name} {n}" for name, n in counted.statuses.items())
    say(f"{counted.counted} of {counted.planned} planned trials: {statuses or 'none'}")
    if counted.superseded:
        say(f"{counted.superseded} superseded attempts, kept as such")
    if code or not counted.complete:
        raise typer.Exit(code if code and code > 0 else 1)


def _plan(found: object) -> str:
    from akm_harbor.study.resume import Preview

    assert isinstance(found, Preview)
    if found.planned is None:
        return "Harbor cannot plan it"
    return f"{found.planned} trials planned, {found.kept} kept, {found.to_run} to run"
