"""The typer application: every noun is added here, its heavy imports wait until it is called."""

from typing import Annotated

import typer

import akm_harbor
from akm_harbor.cli import (
    ab,
    arms,
    canary,
    collect,
    corpus,
    demo,
    doctor,
    memory,
    model,
    plan,
    report,
    sandbox,
    tables,
    toolchain,
)

app = typer.Typer(
    name="akm-harbor",
    help="Evidence about agent memory: A/B trials under Harbor, memory benchmarks, store health.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode="markdown",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(akm_harbor.__version__)
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Evidence about agent memory."""


app.command()(collect.collect)
app.command()(demo.demo)
app.command()(doctor.doctor)
app.command()(plan.plan)
app.add_typer(ab.app, name="ab")
app.add_typer(arms.app, name="arms")
app.add_typer(canary.app, name="canary")
app.add_typer(corpus.app, name="corpus")
app.add_typer(memory.app, name="memory")
app.add_typer(model.app, name="model")
app.add_typer(report.app, name="report")
app.add_typer(sandbox.app, name="sandbox")
app.add_typer(toolchain.app, name="toolchain")
app.command()(tables.tables)
