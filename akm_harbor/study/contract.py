"""A job file against Harbor's own JobConfig, with the unknown keys refused that Harbor lets pass."""

import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from difflib import get_close_matches
from types import UnionType
from typing import Any, Union, get_args, get_origin, is_typeddict

from pydantic import BaseModel, ValidationError

from akm_harbor.study.yaml_lines import KeyPath, dotted

NEWER_KEYS: Mapping[str, str] = {
    "agents[].skip_model_parsing": "0.25",
    "agents[].base_url": "0.25",
    "agents[].model_api_key_name": "0.25",
    "agents[].model_api_format": "0.25",
}
"""Keys that older Harbor versions in our range ignore without harm, with the version that knows them."""

_IGNORED = {
    "plugins": "Harbor takes plugins on the command line only: `--plugin akm`.",
    "orchestrator": "Write its n_concurrent_trials, quiet and retry at the top.",
}
_LEGACY = {"mounts_json", "suppress_override_warnings"}
"""Keys that Harbor takes in a validator of its own."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Something Harbor would refuse, or would ignore without a word."""

    path: KeyPath
    message: str
    hint: str = ""


def mismatches(data: Any) -> list[Mismatch]:
    """What is wrong with a job, by the installed Harbor's own model.

    Args:
        data: the job as plain values.
    """
    from harbor.models.job.config import JobConfig

    if not isinstance(data, dict):
        return [Mismatch((), "a job file is a mapping of keys")]
    found = list(_unknown(JobConfig, data, ()))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # an outdated key is unknown, and reported as such
            JobConfig.model_validate(deepcopy(data))
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_context=False, include_input=False):
            message = str(problem["msg"]).removeprefix("Value error, ")
            found.append(Mismatch(tuple(problem["loc"]), message))
    except (ValueError, TypeError) as error:
        found.append(Mismatch((), str(error)))
    return found


def _unknown(model: type[BaseModel], data: Mapping[str, Any], path: KeyPath) -> Iterator[Mismatch]:
    known = {name: field.annotation for name, field in model.model_fields.items()}
    for key, value in data.items():
        where = (*path, str(key))
        if key in known:
            yield from _inside(known[key], value, where)
        elif key not in _LEGACY and _generic(where) not in NEWER_KEYS:
            yield Mismatch(where, f"Harbor has no key `{dotted(where)}` and would ignore it", _meant(str(key), known))


def _inside(annotation: Any, value: Any, path: KeyPath) -> Iterator[Mismatch]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _inside(_item(annotation), item, (*path, number))
    elif isinstance(value, dict):
        models = [kind for kind in _alternatives(annotation) if isinstance(kind, type) and issubclass(kind, BaseModel)]
        typed = [kind for kind in _alternatives(annotation) if is_typeddict(kind)]
        if models:
            yield from min((list(_unknown(model, value, path)) for model in models), key=len)
        elif typed:
            known = {name: None for kind in typed for name in kind.__annotations__}
            for key in value:
                if key not in known:
                    where = (*path, str(key))
                    yield Mismatch(where, f"Harbor has no key `{dotted(where)}`", _meant(str(key), known))


def _alternatives(annotation: Any) -> list[Any]:
    if get_origin(annotation) in {Union, UnionType}:
        return [inner for choice in get_args(annotation) for inner in _alternatives(choice)]
    return [annotation]


def _item(annotation: Any) -> Any:
    """The annotation of a list's items."""
    kinds = [get_args(kind)[0] for kind in _alternatives(annotation) if get_origin(kind) is list and get_args(kind)]
    return Union[tuple(kinds)] if kinds else None  # noqa: UP007 - made at run time


def _meant(key: str, known: Mapping[str, Any]) -> str:
    if key in _IGNORED:
        return _IGNORED[key]
    near = get_close_matches(key, known, n=1)
    return f"Did you mean `{near[0]}`?" if near else f"There are {', '.join(sorted(known))}."


def _generic(path: KeyPath) -> str:
    return dotted(path).replace("[", "[\0").translate({ord(digit): None for digit in "0123456789\0"})
