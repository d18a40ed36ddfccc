"""Verdict rules as a file: what a comparison must satisfy, written down before anybody looks."""

import tomllib
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from akm_harbor.ab.result import Options
from akm_harbor.ab.run import parse_options
from akm_harbor.errors import UsageError
from akm_harbor.json_toml import parse_toml

TABLE = "verdict"


def read_rules(path: Path) -> dict[str, Any]:
    """Read the `[verdict]` table of a TOML file.

    Args:
        path: the file; its keys are those of `akm-harbor report ab`, with underscores.

    Returns:
        Options for a report; keys that the file leaves out are absent.

    Raises:
        UsageError: not readable, an unknown key, or a value that cannot be meant.
    """
    try:
        data = parse_toml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read as TOML: {error}", path=path) from None
    unknown = sorted(set(data) - {TABLE})
    rules = data.get(TABLE)
    if unknown or not isinstance(rules, dict):
        what = f"has an unknown part {unknown[0]!r}" if unknown else "has no [verdict] table"
        raise UsageError(what, path=path, hint='Write [verdict], then e.g. rule = "non-inferior" and margin = 0.1.')
    known = {field.name: type(field.default) for field in fields(Options)}
    for key, value in rules.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            meant = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(known))}."
            raise UsageError(f"has no rule {key!r}", path=path, hint=meant)
        _right_kind(path, key, value, known[key])
    try:
        parse_options(rules)
    except UsageError as error:
        raise UsageError(error.message, path=path, hint=error.hint) from None
    return dict(rules)


def _right_kind(path: Path, key: str, value: Any, kind: type) -> None:
    wanted: tuple[type, ...] = (int, float) if kind is float else (list,) if kind is tuple else (kind,)
    if not isinstance(value, wanted) or (isinstance(value, bool) and kind is not bool):
        names = {float: "a number", bool: "true or false", tuple: "a list of names"}
        raise UsageError(f"{key} = {value!r} must be {names.get(kind, 'text')}", path=path)
    if isinstance(value, list) and not all(isinstance(name, str) for name in value):
        raise UsageError(f"{key} = {value!r} must be a list of names", path=path)
