"""What the pages tell people to type exists: every noun, verb and option, every link."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from akm_harbor.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    path for pattern in ("*.md", "docs/*.md", "tasks/*.md", "notebooks/**/*.md") for path in ROOT.glob(pattern)
)
_TYPED = re.compile(r"(?:^|[`$ ])akm-harbor ([a-z][^`\n|#>&]*)", re.MULTILINE)
_LINK = re.compile(r"\]\(([^)#\s]+)")


def _unknown(line: str) -> list[str]:
    """What of a command line does not exist."""
    words = shlex.split(line, posix=False)
    command: Any = typer.main.get_command(app)
    while words and (inner := getattr(command, "commands", {}).get(words[0])) is not None:
        command = inner
        words.pop(0)
    if hasattr(command, "commands"):
        return [] if not words or words[0].startswith("-") else words[:1]
    options = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = [word.partition("=")[0] for word in words if re.match(r"-{1,2}[a-z]", word)]
    return [name for name in given if name not in options | {"--help"}]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_says_to_type_exists(page: Path) -> None:
    text = page.read_text("utf-8").replace("\\\n", " ")
    lines = [found.split("  ")[0] for found in _TYPED.findall(text) if not found.startswith("version")]
    assert {line: unknown for line in lines if (unknown := _unknown(line))} == {}
    assert [link for link in _LINK.findall(text) if "://" not in link and not (page.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("collect jobs -o out", []),
        ("colect jobs", ["colect"]),
        ("report ab x --base a", ["--base"]),
        ("canary mintt STORE", ["mintt"]),
    ],
)
def test_what_does_not_exist_is_seen(line: str, unknown: list[str]) -> None:
    assert _unknown(line) == unknown
