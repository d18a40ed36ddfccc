"""opencode.json of an arm: our base, then Harbor's and the job's settings, then what the arm needs."""

import json
import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from akm_harbor.agent import layout
from akm_harbor.agent.errors import ConfigConflictError
from akm_harbor.resources import resource

_SECRET_KEY = re.compile(r"(api.?key|token|secret|password|credential|authorization)", re.IGNORECASE)
_REFERENCE = re.compile(r"^\{(env|file):[^}]+\}$")
_SHORTEST_SECRET = 16
"""Shorter literals are taken for the placeholders that keyless local servers want."""

Config = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ArmConfig:
    """What distinguishes one arm's opencode.json.

    Attributes:
        title: `off` disables opencode's title agent.
        context: whether the bundle's text goes into the system prompt.
        plugin: options of the akm shim; None on an arm without the plugin.
        probe: where the probe writes, inside the container.
    """

    title: str
    context: bool
    plugin: Mapping[str, str] | None
    probe: str


def base_config() -> Config:
    """The shipped agents/opencode/opencode.json."""
    loaded: Config = json.loads(resource("agents", "opencode", "opencode.json").read_text("utf-8"))
    return loaded


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, path)
    else:
        yield path, value


def check_job_config(config: Mapping[str, Any], *, title: str, treatment: bool) -> None:
    """Refuse a job's `opencode_config` that holds a secret or takes away what an arm needs.

    Raises:
        ConfigConflictError: names the setting and what to write instead.
    """
    for path, value in _leaves(dict(config)):
        parts = path.split(".")
        leaf = parts[-1]
        if (
            _SECRET_KEY.search(leaf)
            and isinstance(value, str)
            and len(value) >= _SHORTEST_SECRET
            and not _REFERENCE.match(value)
        ):
            raise ConfigConflictError(
                f"opencode_config.{path} looks like a secret, and Harbor writes kwargs into the job's files",
                hint='Write "{env:NAME}" there and put the value into the environment variable NAME.',
            )
        if value == "ask" and "permission" in parts:  # also under agent, and under mode, agent's old name
            raise ConfigConflictError(
                f"opencode_config.{path} = ask: nobody is there to answer", hint="Use allow or deny."
            )
        switched_off = value is False or value == "deny"
        if treatment and switched_off and re.search(r"(^|\.)(tools|permission)\.(\*|akm[_*].*)$", path):
            raise ConfigConflictError(
                f"opencode_config.{path} would switch off the plugin's tools",
                hint="To measure without them, use --ak tools=off: it is recorded as its own arm.",
            )
    fixed = {
        ("autoupdate",): False,
        ("share",): "disabled",
        ("agent", "title", "disable"): title == "off",
    }
    for keys, wanted in fixed.items():
        node: Any = config
        for key in keys:
            node = node.get(key) if isinstance(node, Mapping) else None
        if node is not None and node != wanted:
            setting = ".".join(keys)
            hint = (
                "Use --ak title=on or title=off." if keys[0] == "agent" else f"An arm runs with {setting} = {wanted!r}."
            )
            raise ConfigConflictError(f"opencode_config.{setting} = {node!r} contradicts the arm", hint=hint)


def finish_config(config: Mapping[str, Any], arm: ArmConfig) -> Config:
    """Add what the arm needs to a merged config; what a job added stays.

    Args:
        config: base, Harbor's and the job's settings, merged.
        arm: the arm's own settings.

    Returns:
        A new config. Plugins: our first probe, the akm shim (treatment), the job's
        own, our last probe.
    """
    done = deepcopy(dict(config))
    done["autoupdate"] = False
    done["share"] = "disabled"
    if arm.title == "off":
        done.setdefault("agent", {}).setdefault("title", {})["disable"] = True
    if arm.context:
        given = [item for item in done.get("instructions", []) if item != layout.CONTEXT]
        done["instructions"] = [layout.CONTEXT, *given]
    folder = f"file://{layout.TOOLCHAIN}"
    plugins: list[Any] = [f"{folder}/probe/first.js"]
    if arm.plugin is not None:
        plugins.append([f"{folder}/shim/akm.js", dict(arm.plugin)])
    plugins += list(done.get("plugin", []))
    options = {"file": arm.probe} | ({"context": layout.CONTEXT} if arm.context else {})
    plugins.append([f"{folder}/probe/probe.js", options])
    done["plugin"] = plugins
    return done
