"""Every command explains itself, with an example."""

import pytest
import typer
from typer.testing import CliRunner

from akm_harbor.cli.app import app


def _commands(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    inner = getattr(group, "commands", None)
    if inner is None:
        return [path]
    return [found for name, command in sorted(inner.items()) for found in _commands(command, (*path, name))]


COMMANDS = _commands(typer.main.get_command(app))


def test_there_are_commands() -> None:
    assert ("collect",) in COMMANDS
    assert ("demo",) in COMMANDS


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_has_an_example(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0, result.output
    assert " ".join(("akm-harbor", *command)) in " ".join(result.output.split())
