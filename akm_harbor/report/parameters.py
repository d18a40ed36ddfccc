"""Notebook parameters: from plain Python values or command-line strings to what a kernel can take."""

import difflib
import math
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

import nbformat

from akm_harbor.errors import UsageError
from akm_harbor.surrogates import HALF

TAG = "parameters"


def encode(value: Any, where: str = "parameter") -> Any:
    """Turn a value into one that survives the way into the kernel unchanged.

    papermill refuses paths, sets, NumPy scalars and dates with a message from `json`, and turns tuples
    and bytes silently into other things; here paths become text, tuples lists, NumPy scalars numbers, dates
    ISO text, and what has no faithful form is refused by name.

    Raises:
        UsageError: a value without a faithful form.
    """
    if isinstance(value, PurePath):
        value = str(value)
    if isinstance(value, str) and HALF.search(value):
        raise UsageError(f"{where} is not UTF-8, which no notebook can hold", hint="Give the folder another name.")
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UsageError(f"{where} is {value}, which is not valid JSON", hint="Use null, or leave it out.")
        return float(value)
    if isinstance(value, (list, tuple)):
        return [encode(v, f"{where}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, Mapping):
        if not all(isinstance(k, str) for k in value):
            raise UsageError(f"{where} has a key that is not text", hint="Notebook parameters are JSON: use text keys.")
        return {k: encode(v, f"{where}[{k!r}]") for k, v in value.items()}
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return encode(value.item(), where)
    raise UsageError(
        f"{where} is a {type(value).__name__}, which a notebook cannot be given",
        hint="Use text, a number, true or false, null, a list, or an object with text keys.",
    )


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `name=value` texts of a command line; a value that reads as a number, bool or null is one.

    Raises:
        UsageError: no `=`, or an empty name.
    """
    out: dict[str, Any] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{text!r} is not NAME=VALUE", hint="Example: -p policy=fail")
        out[name] = _literal(value)
    return out


def _literal(text: str) -> Any:
    constants = {"true": True, "false": False, "null": None, "none": None}
    if text.lower() in constants:
        return constants[text.lower()]
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else text
    return text


def declared(notebook: nbformat.NotebookNode) -> dict[str, str]:
    """Names and source of the literals in the one cell tagged `parameters`.

    Raises:
        UsageError: no such cell, or more than one.
    """
    import ast

    tagged = [c for c in notebook.cells if TAG in c.metadata.get("tags", [])]
    if len(tagged) != 1:
        raise UsageError(f"the notebook has {len(tagged)} cells tagged `parameters`; it must have exactly one")
    tree = ast.parse(tagged[0].source)
    out = {}
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and node.value is not None:
                out[target.id] = ast.unparse(node.value)
    return out


def check_names(given: Iterable[str], known: Iterable[str]) -> None:
    """Refuse a parameter the notebook does not have; papermill would only log a warning.

    Raises:
        UsageError: the message lists near matches.
    """
    names = sorted(known)
    for name in given:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
            like = f"Did you mean {' or '.join(close)}? " if close else ""
            raise UsageError(f"the notebook has no parameter {name!r}", hint=f"{like}It has {', '.join(names)}.")
