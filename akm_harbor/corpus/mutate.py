"""Near misses of a solution: every single token dropped or changed, every file damaged."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

_TOKEN = re.compile(r"[\w./@$%*?+~^!\\-]+")
_COMMENTED = {".sh", ".yaml", ".yml", ".toml", ".txt", ".env", ".tf", ".conf", ".ini", ".cfg", ""}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One near miss.

    Attributes:
        file: the file it changes, relative to the workspace.
        change: `drop`, `change`, `delete-file`, `empty-file` or `garble-file`.
        was: the line before, or "".
        now: the line after, or "".
        data: the file's new content; None to delete it.
    """

    file: str
    change: str
    was: str
    now: str
    data: bytes | None

    def __str__(self) -> str:
        return f"{self.file}: {self.change}" + (f" `{self.was.strip()}` -> `{self.now.strip()}`" if self.was else "")


def _code_part(line: str, suffix: str) -> str:
    """The line without its comment, in files that have comments."""
    if suffix not in _COMMENTED:
        return line
    match = re.search(r"(?:^|\s)#", line)
    return line[: match.start()] if match else line


def _other(token: str) -> str:
    if token.isdigit():
        return str(int(token) + 1)
    if token in ("true", "false"):
        return {"true": "false", "false": "true"}[token]
    if re.search(r"[A-Za-z0-9]", token):
        return f"{token}x" if not token.endswith(("/", ".")) else f"x{token}"
    return f"{token}{token[-1]}"


def _line_mutants(line: str, suffix: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(_code_part(line, suffix)):
        before, after = line[: match.start()], line[match.end() :]
        # dropping a word drops the blank in front of it as well
        yield "drop", before.rstrip(" ") + after if before.strip() else before + after.lstrip(" ")
        yield "change", before + _other(match.group()) + after


def token_mutants(file: str, data: bytes) -> list[Mutant]:
    """Every single-token mutant of one text file; none for a binary one."""
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        return []
    suffix = PurePosixPath(file).suffix
    found: dict[bytes, Mutant] = {}
    for number, line in enumerate(lines):
        for change, now in _line_mutants(line, suffix):
            text = "\n".join([*lines[:number], now, *lines[number + 1 :]]).encode()
            if text != data:
                found.setdefault(text, Mutant(file, change, line, now, text))
    return list(found.values())


def file_mutants(file: str) -> list[Mutant]:
    """A file gone, empty, and full of bytes that are no text."""
    return [
        Mutant(file, "delete-file", "", "", None),
        Mutant(file, "empty-file", "", "", b""),
        Mutant(file, "garble-file", "", "", b"\x00\xff\xfe not text \x80" * 4),
    ]


def changed_files(before: dict[str, bytes], after: dict[str, bytes]) -> list[str]:
    """The files a solution made or changed."""
    return [name for name, data in after.items() if before.get(name) != data]


def mutants(before: dict[str, bytes], after: dict[str, bytes]) -> list[Mutant]:
    """All near misses of a solution, given the workspace before and after it."""
    result: list[Mutant] = []
    for name in changed_files(before, after):
        result += [m for m in file_mutants(name) if m.data is None or m.data != before.get(name)]
        result += [m for m in token_mutants(name, after[name]) if m.data != before.get(name)]
    return result


def sample(items: list[Mutant], most: int | None) -> list[Mutant]:
    """An evenly spread, repeatable choice of at most so many; all for None."""
    if most is None or len(items) <= most:
        return items
    return [items[place * len(items) // most] for place in range(most)]


def tokens(text: str) -> set[str]:
    """The tokens of a text, stripped of surrounding punctuation."""
    return {token.strip(".!?") for token in _TOKEN.findall(text)} - {""}
