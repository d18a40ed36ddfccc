"""Every command explains itself, with an example."""

import pytest
import typer
from typer.testing import CliRunner

from akm_harbor.cli.app import NOUNS, app, build


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


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_what_is_written_goes_by_one_name(command: tuple[str, ...]) -> None:
    found: object = typer.main.get_command(app)
    for name in command:
        found = found.commands[name]  # type: ignore[attr-defined]
    names = [set(parameter.opts) for parameter in found.params]  # type: ignore[attr-defined]
    assert all(own == {"-o", "--output", "--out"} for own in names if own & {"-o", "--output", "--out"})


@pytest.mark.parametrize("noun", NOUNS)
def test_a_noun_is_built_alone_and_as_in_the_whole(noun: str) -> None:
    alone = typer.main.get_command(build([noun, "--help"]))
    assert _commands(alone) == [command for command in COMMANDS if command[0] == noun]


@pytest.mark.parametrize("argv", [[], ["--help"], ["colect"], ["--version", "collect"]], ids=" ".join)
def test_anything_else_builds_the_whole(argv: list[str]) -> None:
    assert _commands(typer.main.get_command(build(argv))) == COMMANDS
