"""YAML that remembers its lines, so that a mistake can be named by the line it stands on."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.errors import UsageError
from akm_harbor.yaml_text import compose

type KeyPath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Lined:
    """A YAML document with the line of everything in it.

    Attributes:
        data: the document as plain values.
        lines: key path -> 1-based line, of a mapping's keys and of a list's items.
        doubled: key paths that stand in their mapping twice, each with the second one's line.
    """

    data: Any
    lines: dict[KeyPath, int]
    doubled: tuple[tuple[KeyPath, int], ...]

    def line(self, path: KeyPath) -> int:
        """The line of a key path, or of the nearest thing around it that is there."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read_yaml(path: Path) -> Lined:
    """Read a YAML file.

    Raises:
        UsageError: it cannot be read, or is no YAML; the message has the line.
    """
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot be read ({error})", path=path) from None
    try:
        node, data = compose(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise UsageError(f"{where}not valid YAML: {problem}", path=path) from None
    lines: dict[KeyPath, int] = {}
    doubled: list[tuple[KeyPath, int]] = []
    if node is not None:
        for key, line, again in _walk(node, ()):
            if again:
                doubled.append((key, line))
            else:
                lines[key] = line
    return Lined(data, lines, tuple(doubled))


def _walk(node: yaml.Node, path: KeyPath) -> Iterator[tuple[KeyPath, int, bool]]:
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key_node, value in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = str(key_node.value)
            yield (*path, key), key_node.start_mark.line + 1, key in seen
            seen.add(key)
            yield from _walk(value, (*path, key))
    elif isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield (*path, number), item.start_mark.line + 1, False
            yield from _walk(item, (*path, number))


def dotted(path: KeyPath) -> str:
    """A key path as people write it, e.g. `agents[1].kwargs.arm`."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text
