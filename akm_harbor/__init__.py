"""Evidence about agent memory: A/B trials under Harbor, memory benchmarks, store health.

The few public names are loaded on first use, so that `import akm_harbor` costs
nothing and analysis never pays for Harbor's import.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from akm_harbor.ab.plugin import ReportPlugin
    from akm_harbor.agent.arms import AkmOpenCode, ControlOpenCode
    from akm_harbor.sandbox.environment import SandboxEnvironment

__version__ = "0.1.0"
__all__ = ["AkmOpenCode", "ControlOpenCode", "ReportPlugin", "SandboxEnvironment"]

_HOME = {
    "AkmOpenCode": "akm_harbor.agent.arms",
    "ControlOpenCode": "akm_harbor.agent.arms",
    "ReportPlugin": "akm_harbor.ab.plugin",
    "SandboxEnvironment": "akm_harbor.sandbox.environment",
}


def __getattr__(name: str) -> object:
    """Load a public name from its home module on first use (PEP 562)."""
    try:
        home = _HOME[name]
    except KeyError:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg) from None
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
