"""What differs between two JSON documents, by the name of each number."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CLOSE, CLOSE_FIT = 1e-9, 1e-4
"""Relative difference that other machines may make: in arithmetic, and in fits that iterate to a tolerance."""
_FITTED = ("other_methods",)
ABSENT = "(absent)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One published value that its evidence does not give.

    Attributes:
        where: the file, with the section where it has some.
        name: the value's name, e.g. `headline.difference.interval.low`.
        published: as published.
        derived: as made again from the rows.
    """

    where: str
    name: str
    published: str
    derived: str


def leaves(value: Any) -> int:
    """How many numbers a document holds."""
    if isinstance(value, Mapping):
        return sum(map(leaves, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(leaves, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def differences(where: str, published: Any, derived: Any, name: str = "") -> Iterator[Difference]:
    """Walk two documents side by side and name every leaf that differs.

    List entries are named by their position, and by what they call themselves (`name`, `policy`, `task` …).
    """
    if isinstance(published, Mapping) and isinstance(derived, Mapping):
        for key in [*derived, *(k for k in published if k not in derived)]:
            inner = f"{name}.{key}" if name else str(key)
            yield from differences(where, published.get(key, _GONE), derived.get(key, _GONE), inner)
    elif isinstance(published, list) and isinstance(derived, list):
        for index in range(max(len(published), len(derived))):
            one, two = (side[index] if index < len(side) else _GONE for side in (published, derived))
            yield from differences(where, one, two, f"{name}[{_label(index, two)}]")
    elif not same(published, derived, name):
        yield Difference(where, name, _shown(published), _shown(derived))


class _Gone:
    """In the place of a value that one side lacks."""


_GONE = _Gone()
_CALLED = ("name", "policy", "task", "arm", "family", "title", "cause", "kind")


def _label(index: int, entry: Any) -> str:
    if isinstance(entry, Mapping):
        for key in _CALLED:
            if isinstance(entry.get(key), str):
                return f"{index}: {entry[key][:60]}"
    return str(index)


def same(published: Any, derived: Any, name: str = "") -> bool:
    """Equal, or for real numbers as equal as two machines can be expected to be."""
    if isinstance(published, bool) or isinstance(derived, bool):
        return published is derived
    if isinstance(published, int | float) and isinstance(derived, int | float):
        close = CLOSE_FIT if name.startswith(_FITTED) else CLOSE
        return math.isclose(published, derived, rel_tol=close, abs_tol=close / 1000)
    return type(published) is type(derived) and bool(published == derived)


def _shown(value: Any) -> str:
    if isinstance(value, _Gone):
        return ABSENT
    if isinstance(value, float):
        return f"{value:.10g}"
    text = str(value)
    return text if len(text) <= 120 else f"{text[:119]}…"
