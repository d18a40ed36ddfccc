"""Harbor job directories to tables.

`collect` is the way in; it is loaded on first use and itself loads Arrow only when there is
something to write.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from akm_harbor.trials.collection import CollectResult, collect

__all__ = ["CollectResult", "collect"]


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    return getattr(import_module("akm_harbor.trials.collection"), name)
