"""The CI examples: the rules are rules, and every command of the workflow is one that exists."""

import re
import shlex
from pathlib import Path
from typing import Any

import click
import typer
import yaml

from akm_harbor.ab.rules import read_rules
from akm_harbor.cli.app import app

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DOCS = Path(__file__).parents[2] / "docs"


def _lines(text: str) -> list[list[str]]:
    joined = re.sub(r"\\\n\s*", " ", text)
    calls = re.findall(r"(?m)(?:^|&&|\s{4,}|\$ )(akm-harbor [^\n|]*)", joined)
    return [shlex.split(call.partition("#")[0].partition(">>")[0]) for call in calls]


def _check(words: list[str]) -> None:
    """Walk down the commands, then ask for every option."""
    command: Any = typer.main.get_command(app)
    rest = words[1:]
    while isinstance(command, click.Group) or hasattr(command, "commands"):
        assert rest, words
        assert rest[0] in command.commands, words
        command = command.commands[rest.pop(0)]
    known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    used = {word.partition("=")[0] for word in rest if re.match(r"^--?[a-z]", word)}
    assert used <= known | {"--help"}, words


def test_the_rules_are_rules() -> None:
    assert read_rules(EXAMPLES / "ab-rules.toml")["rule"] == "non-inferior"


def test_the_workflow_calls_what_exists() -> None:
    workflow = yaml.safe_load((EXAMPLES / "ab-gate.yml").read_text())
    runs = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    calls = [words for run in runs for words in _lines(run)]
    assert len(calls) >= 5
    for words in calls:
        _check(words)


def test_the_workflow_gives_the_key_to_one_step_only() -> None:
    text = (EXAMPLES / "ab-gate.yml").read_text()
    assert text.count("secrets.") == 1
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {"contents": "read"}
    keys = [
        step["with"]["key"]
        for job in workflow["jobs"].values()
        for step in job["steps"]
        if "cache" in str(step.get("uses"))
    ]
    assert len(keys) == 6
    assert all("AKM_HARBOR" in key or "github.sha" in key for key in keys)


def test_the_docs_call_what_exists() -> None:
    calls = [words for name in ("studies.md", "ci.md") for words in _lines((DOCS / name).read_text())]
    assert len(calls) >= 12
    for words in calls:
        _check(words)
