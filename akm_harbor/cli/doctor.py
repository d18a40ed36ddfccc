"""`akm-harbor doctor`: what this machine lacks for a study, and whether Harbor is as we rely on it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say

if TYPE_CHECKING:
    from akm_harbor.study.harbor_contract.run import Held


def doctor(
    model: Annotated[str | None, typer.Option("--model", "-m", help="provider/model whose key must be there.")] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Also ask the registry for the pinned packages, and for the time.")
    ] = False,
    harbor: Annotated[
        bool, typer.Option("--harbor", help="Try by mini jobs in the sandbox what we rely on inside Harbor, only that.")
    ] = False,
    python: Annotated[
        Path | None,
        typer.Option(help="With --harbor: another virtual environment's Python, to try its Harbor before a change."),
    ] = None,
    clause: Annotated[list[str] | None, typer.Option(help="With --harbor: only this clause (repeatable).")] = None,
    cache_dir: Annotated[Path | None, typer.Option(help="The sandbox's cache, where it is not the default.")] = None,
    jobs_dir: Annotated[Path | None, typer.Option(help="Where jobs will be written, for the disk space.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Look at this machine and tell, for each thing a study needs, what is wrong and what to do.

    Exit code 1 when something keeps a study from running, or when Harbor does not do what we rely on.

    Example: `akm-harbor doctor --model anthropic/claude-sonnet-5 --online`
    """
    from akm_harbor.errors import UsageError

    if harbor:
        _contract(python, clause or [], as_json=as_json)
        return
    if python or clause:
        raise UsageError("--python and --clause go with --harbor")
    from akm_harbor.study.doctor import Wanted, examine

    with _status() as step:
        found = list(examine(Wanted(model, online, cache_dir, jobs_dir), step))
    if as_json:
        keys = ("name", "status", "detail", "remedy")
        say(json.dumps([{key: getattr(finding, key) for key in keys} for finding in found], indent=2))
    else:
        for finding in found:
            say(f"{finding.status:4} {finding.name}: {finding.detail}")
            if finding.remedy and finding.status != "ok":
                say(f"     {finding.remedy}")
    if any(finding.status == "fail" for finding in found):
        raise typer.Exit(1)


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    with Console(stderr=True).status("looking …") as status:
        yield lambda name: status.update(f"looking … {name}")


def _contract(python: Path | None, clauses: list[str], *, as_json: bool) -> None:
    import sys

    from akm_harbor.study.harbor_contract.run import hold

    with _status() as step:
        held = hold(python=python or sys.executable, only=clauses, progress=step)
    say(json.dumps(_as_data(held), indent=2) if as_json else _as_text(held))
    if not held.ok:
        raise typer.Exit(1)


def _as_data(held: "Held") -> dict[str, object]:
    return {
        "harbor": held.version,
        "ok": held.ok,
        "clauses": [
            {
                "name": verdict.clause.name,
                "ok": verdict.broken is None,
                "behaviour": verdict.clause.behaviour,
                "relied_on_by": [f"akm_harbor.{module}" for module in verdict.clause.relied_on_by],
                "broken": verdict.broken,
            }
            for verdict in held.verdicts
        ],
    }


def _as_text(held: "Held") -> str:
    lines = []
    for verdict in held.verdicts:
        clause = verdict.clause
        lines.append(f"{'FAIL' if verdict.broken else 'ok  '} {clause.name}: {clause.behaviour}")
        if verdict.broken:
            modules = ", ".join(f"akm_harbor.{module}" for module in clause.relied_on_by)
            lines += [f"     seen: {verdict.broken}", f"     relied on by: {modules}"]
    broken = sum(verdict.broken is not None for verdict in held.verdicts)
    verdict_line = (
        f"{broken} of {len(held.verdicts)} clauses broken" if broken else f"{len(held.verdicts)} clauses hold"
    )
    return "\n".join([*lines, f"Harbor {held.version}: {verdict_line}"])
