"""What differs between Harbor 0.22 and 0.25 or newer, in one place.

From 0.25 on an agent declares its kwargs as a pydantic model and Harbor refuses
unknown ones before any trial. 0.22 has no such model and swallows unknown kwargs,
so there the same model is checked here.
"""

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError

try:
    from harbor.agents.installed.opencode import OpenCodeOptions as _HarborOptions

    HARBOR_VALIDATES = True
except ImportError:  # Harbor 0.22 to 0.24
    HARBOR_VALIDATES = False

    class _HarborOptions(BaseModel):  # type: ignore[no-redef]
        """The kwargs of Harbor 0.22's OpenCode, declared as 0.25 does."""

        model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

        version: str | None = None
        prompt_template_path: str | None = None
        opencode_config: dict[str, Any] | None = None
        variant: str | None = None


if TYPE_CHECKING:

    class BaseOptions(BaseModel):
        """Common ground of both, for the type checker."""

        version: str | None = None
        prompt_template_path: str | None = None
        opencode_config: dict[str, Any] | None = None
else:
    BaseOptions = _HarborOptions


def framework_names(agent: type) -> frozenset[str]:
    """Constructor parameters that Harbor itself passes to an agent of this class."""
    names = {"override_setup_timeout_sec"}
    for cls in agent.__mro__:
        if "__init__" in vars(cls):
            parameters = inspect.signature(vars(cls)["__init__"]).parameters.values()
            names |= {p.name for p in parameters if p.kind in {p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD}}
    return frozenset(names - {"self"})


def check_options[Options: BaseOptions](agent: type, model: type[Options], kwargs: Mapping[str, Any]) -> Options:
    """Check an agent's kwargs against its model, as Harbor 0.25 does.

    Args:
        agent: the agent's class, for the message and for what Harbor itself passes.
        model: the kwargs the agent has.
        kwargs: everything the constructor was given.

    Raises:
        ValueError: an unknown kwarg, or a value that doesn't fit; all of them are listed.
    """
    framework = framework_names(agent) - set(model.model_fields)
    given = {name: value for name, value in kwargs.items() if name not in framework}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        lines = []
        for problem in error.errors(include_url=False, include_input=False):
            option = ".".join(str(part) for part in problem["loc"]) or "kwargs"
            near = get_close_matches(option, model.model_fields)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            unknown = problem["type"] == "extra_forbidden"
            lines.append(f"  Unknown option {option!r}.{meant}" if unknown else f"  {option}: {problem['msg']}")
        details = "\n".join(lines)
        raise ValueError(f"Invalid kwargs for agent {agent.__name__!r}:\n{details}") from None
