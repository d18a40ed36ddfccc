"""The one place of this room that asks Harbor itself; importing it costs a second."""

import warnings
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from harbor.models.task.config import TaskConfig
from harbor.models.task.task import Task
from harbor.publisher.packager import Packager
from pydantic import BaseModel


def refusal(path: Path) -> str | None:
    """Why Harbor would not run a task folder (a dataset run skips it without a word); None if it would."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Task(path)
            valid = Task.is_valid_dir(path)
    except Exception as error:  # noqa: BLE001  (any refusal is the finding)
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        return f"{type(error).__name__}: {' '.join(lines[:3])}"
    return None if valid else "it lacks environment/ or tests/test.sh"


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The pydantic models an annotation may hold, through unions, lists and mappings."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    if get_origin(annotation) in (Union, UnionType, list, tuple, dict) or get_args(annotation):
        return [model for arg in get_args(annotation) for model in _models(arg)]
    return []


def _unknown(value: Any, models: list[type[BaseModel]], where: str) -> list[str]:
    if isinstance(value, list):
        return [line for number, item in enumerate(value) for line in _unknown(item, models, f"{where}[{number}]")]
    if not isinstance(value, dict) or not models:
        return []
    fields = {name: field for model in models for name, field in model.model_fields.items()}
    fields |= {str(field.alias): field for field in list(fields.values()) if field.alias}
    found: list[str] = []
    for key, item in value.items():
        place = f"{where}.{key}" if where else key
        if key in fields:
            found += _unknown(item, _models(fields[key].annotation), place)
        else:
            found.append(place)
    return found


def unknown_keys(config: dict[str, Any]) -> list[str]:
    """Keys of a task.toml that Harbor has no field for, and therefore ignores."""
    return _unknown({key: value for key, value in config.items() if key != "metadata"}, [TaskConfig], "")


def content_digest(path: Path) -> str:
    """The content digest that Harbor writes into a trial's lock as `task.digest`."""
    digest, _ = Packager.compute_content_hash(path)
    return f"sha256:{digest}"
