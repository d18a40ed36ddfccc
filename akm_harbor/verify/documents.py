"""Compare YAML, JSON and TOML documents, whole or in part, and say where they differ."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

from akm_harbor.verify.answers import WrongAnswerError, read_answer
from akm_harbor.verify.outcome import BrokenVerifierError


def _no_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"key {key!r} is given twice")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _parse_yaml(text: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise BrokenVerifierError("the image lacks PyYAML, which this verifier needs") from None

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc]
        """A safe loader that refuses a key given twice."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        plain = (key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge")
        keys = [loader.construct_object(key, deep=True) for key in plain]
        doubled = [key for key in keys if keys.count(key) > 1]
        if doubled:
            raise ValueError(f"key {doubled[0]!r} is given twice")
        loader.flatten_mapping(node)
        return {loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value}

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    try:
        return yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, TypeError) as error:
        raise ValueError(str(error)) from None


def _parse_toml(text: str) -> Any:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name).loads(text)
        except ImportError:
            continue
    raise BrokenVerifierError("the image lacks tomllib (Python 3.11) and tomli, which this verifier needs")


def parse_document(text: str, kind: str) -> Any:
    """Parse text as `yaml`, `json` or `toml`, refusing doubled keys.

    Raises:
        ValueError: it is not one document of that kind.
        BrokenVerifierError: the kind is unknown, or the image lacks its parser.
    """
    try:
        if kind == "json":
            return json.loads(text, object_pairs_hook=_no_double_keys, parse_constant=_no_constant)
        if kind in ("yaml", "yml"):
            return _parse_yaml(text)
        if kind == "toml":
            return _parse_toml(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    raise BrokenVerifierError(f"unknown kind of document: {kind!r}")


def load_document(path: str | Path, kind: str | None = None) -> Any:
    """Parse a file the agent wrote; the kind comes from its suffix unless given.

    Raises:
        WrongAnswerError: the file is missing or not one valid document.
    """
    text = read_answer(path)
    try:
        return parse_document(text, kind or Path(path).suffix.lstrip(".").lower())
    except ValueError as error:
        raise WrongAnswerError(f"{path} is not valid: {error}") from None


def _kind_name(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__


def _show(value: Any) -> str:
    text = json.dumps(value, default=str, sort_keys=True)
    return text if len(text) <= 80 else text[:77] + "..."


def compare(given: Any, wanted: Any, where: str = "$", *, partly: bool = False) -> list[str]:
    """Where two documents differ.

    Types count (`1` is neither `"1"` nor `true`); the order of keys does not, the order of lists does.

    Args:
        given: what the agent wrote.
        wanted: what the task asks.
        where: path of the value, for the message.
        partly: let mappings hold more keys than wanted; lists must still be equally long.

    Returns:
        One line per difference, at most 20.
    """
    if isinstance(wanted, dict) and isinstance(given, dict):
        lines = [f"{where}.{key} is missing" for key in wanted if key not in given]
        if not partly:
            lines += [f"{where}.{key} was not asked for" for key in given if key not in wanted]
        for key in wanted:
            if key in given:
                lines += compare(given[key], wanted[key], f"{where}.{key}", partly=partly)
    elif isinstance(wanted, list) and isinstance(given, list):
        lines = [] if len(wanted) == len(given) else [f"{where} has {len(given)} items, not {len(wanted)}"]
        for index in range(min(len(wanted), len(given))):
            lines += compare(given[index], wanted[index], f"{where}[{index}]", partly=partly)
    elif type(given) is not type(wanted):
        lines = [f"{where} is {_kind_name(given)} {_show(given)}, not {_kind_name(wanted)} {_show(wanted)}"]
    else:
        lines = [] if given == wanted else [f"{where} is {_show(given)}, not {_show(wanted)}"]
    return lines[:20]
