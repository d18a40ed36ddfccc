"""Tokenise command lines and match one against what a task asks.

The comparison is exact about words, options and values, and indifferent to the order of options,
quoting, `--name value` or `--name=value`, short or long spelling, and line continuations.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

_SHELL_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)
    |(?P<comment>\#[^\n]*)
    |(?P<newline>\n)
    |(?P<operator>&&|\|\||>>|<<|[;|&<>()])
    |(?P<word>(?:[^\s'"\\;|&<>()]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)
    |(?P<bad>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED_PART = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.DOTALL)


class UnreadableCommandError(ValueError):
    """Text that is not a list of simple commands."""


@dataclass(frozen=True)
class Option:
    """One option a command must or may have.

    Attributes:
        names: its spellings, e.g. `-n` and `--name`.
        value: the wanted value; None for a switch.
        kind: `is` equal, `matches` a full regular expression match, `set` several values in any order.
    """

    names: tuple[str, ...]
    value: str | None = None
    kind: str = "is"

    def accepts(self, given: list[str]) -> bool:
        """Whether the values given on the command line are the wanted ones."""
        if self.value is None:
            return not given
        if self.kind == "set":
            return sorted(given) == sorted(shlex.split(self.value))
        if len(given) != 1:
            return False
        if self.kind == "matches":
            return re.fullmatch(self.value, given[0]) is not None
        return given[0] == self.value


def parse_option(text: str) -> Option:
    """Read an option as verifiers write it.

    `--yes` a switch, `-n|--name=myrg` a value, `--query~=REGEX` a pattern, `--tags+=a b` a set.

    Raises:
        ValueError: a name that does not begin with a dash.
    """
    head, equals, value = text.partition("=")
    kind = {"~": "matches", "+": "set"}.get(head[-1:], "is") if equals else "is"
    names = tuple((head[:-1] if kind != "is" else head).split("|"))
    if not all(name.startswith("-") and len(name) > 1 for name in names):
        raise ValueError(f"not an option: {text!r}")
    return Option(names, value if equals else None, kind)


def _unquote(word: str) -> str:
    parts: list[str] = []
    for single, double, escaped, plain in _QUOTED_PART.findall(word):
        parts.append(single or re.sub(r'\\(["\\$`])', r"\1", double) or escaped or plain)
    return "".join(parts)


def split_commands(text: str) -> list[list[str]]:
    """Split a script into simple commands, each a list of unquoted words.

    Comments and blank lines are dropped, continued lines joined, line ends and `;` separate.

    Raises:
        UnreadableCommandError: pipes, redirections, `&&`, substitutions or open quotes: the task
            asked for plain commands.
    """
    commands: list[list[str]] = []
    words: list[str] = []
    for match in _SHELL_TOKEN.finditer(text.replace("\\\n", "")):
        kind, piece = match.lastgroup, match.group()
        if kind == "word":
            if "`" in piece or "$(" in piece:
                raise UnreadableCommandError(f"a command substitution: {piece}")
            words.append(_unquote(piece))
        elif kind == "newline" or piece == ";":
            if words:
                commands.append(words)
            words = []
        elif kind == "operator":
            raise UnreadableCommandError(f"an operator that was not asked for: {piece}")
        elif kind == "bad":
            raise UnreadableCommandError(f"an open quote or escape: {piece}")
    if words:
        commands.append(words)
    return commands


def _find_option(token: str, options: list[Option]) -> tuple[Option, str | None] | None:
    """The option a token is, and the value attached to it, if any."""
    name, equals, attached = token.partition("=")
    for option in options:
        if name in option.names and (not equals or option.value is not None):
            return option, attached if equals else None
    for option in options:
        for short in option.names:
            joined = len(short) == 2 and len(token) > 2 and token.startswith(short) and not token.startswith("--")
            if joined and option.value is not None:
                return option, token[2:].removeprefix("=")
    return None


def match_command(given: list[str], words: list[str], required: list[Option], allowed: list[Option]) -> list[str]:
    """Compare one command with what was asked.

    Args:
        given: the command's words, e.g. from `split_commands`.
        words: the program, its subcommands and positional values, in order.
        required: options that must be there, each once.
        allowed: options that may be there, each at most once.

    Returns:
        What is wrong with it, empty if nothing.
    """
    options = [*required, *allowed]
    positional: list[str] = []
    seen: list[tuple[Option, list[str]]] = []
    complaints: list[str] = []
    rest = list(given)
    while rest:
        token = rest.pop(0)
        found = _find_option(token, options)
        if found is None:
            positional.append(token)
            continue
        option, attached = found
        values = [] if attached is None else [attached]
        if option.value is not None and attached is None:
            while rest and not (rest[0].startswith("-") and _find_option(rest[0], options)):
                values.append(rest.pop(0))
                if option.kind != "set":
                    break
        seen.append((option, values))
    if positional != words:
        complaints.append(f"words are {shlex.join(positional)!r}, asked for {shlex.join(words)!r}")
    for option, values in seen:
        if not option.accepts(values):
            complaints.append(f"{option.names[-1]} has the wrong value {' '.join(values)!r}")
    names = [option.names for option, _ in seen]
    complaints += [f"{one.names[-1]} is missing" for one in required if one.names not in names]
    complaints += [
        f"{name[-1]} is given {names.count(name)} times" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    return complaints
