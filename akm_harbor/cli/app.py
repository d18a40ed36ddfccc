"""The typer application: a table of nouns, each a thin module whose heavy imports wait until it is called."""

import sys
from importlib import import_module
from typing import Annotated

import typer

import akm_harbor
from akm_harbor.cli.say import say

NOUNS = (
    *("collect", "demo", "doctor", "plan"),
    *("ab", "arms", "canary", "corpus", "memory", "model", "report", "sandbox", "toolchain", "tables"),
)


def build(argv: list[str] | None = None) -> typer.Typer:
    """The application: all of it, or only the noun that the arguments begin with.

    Typer makes every parameter of every command it is given, which takes longer than what
    a short command does.
    """
    whole = typer.Typer(
        name="akm-harbor",
        help="Evidence about agent memory: A/B trials under Harbor, memory benchmarks, store health.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
        rich_markup_mode="markdown",
    )
    whole.callback()(_main)
    called = (argv or [""])[0]
    for noun in (called,) if called in NOUNS else NOUNS:
        module = import_module(f"akm_harbor.cli.{noun}")
        if hasattr(module, "app"):
            whole.add_typer(module.app, name=noun)
        else:
            whole.command()(getattr(module, noun))
    return whole


def _version(value: bool) -> None:
    if value:
        say(akm_harbor.__version__)
        raise typer.Exit


def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Evidence about agent memory."""


def run() -> None:
    """Run what the process was asked for.

    Raises:
        UsageError: an argument is empty. As a path that would mean the working folder.
    """
    arguments = sys.argv[1:]
    if "" in arguments:
        from akm_harbor.errors import UsageError

        where = arguments.index("")
        which = f"the argument after {arguments[where - 1]}" if where else "the first argument"
        raise UsageError(f"{which} is empty", hint="Is it a shell variable that has no value?")
    build(arguments)()


def __getattr__(name: str) -> object:
    """`app`, with every noun, for whoever wants to look at it."""
    if name != "app":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return build()
