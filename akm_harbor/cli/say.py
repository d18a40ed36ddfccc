"""What a command prints: names and texts of other people's files, so never as they are."""

import sys

import typer

from akm_harbor.report.text import visible


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print to stdout, or to stderr.

    A file's name may hold an escape sequence that repaints the terminal, or marks that turn its letters
    round: such characters are shown as their code points.
    """
    typer.echo(visible(str(text), sys.maxsize), err=err, nl=nl)
