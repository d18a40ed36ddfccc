"""The kwargs of the arms' agents, typed; the same on every Harbor version.

`--ak k=v` gives strings or JSON, a YAML job file turns a bare `on` or `off` into a
boolean: both are accepted.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from akm_harbor.agent.compat import BaseOptions


def _switch(value: Any) -> Any:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else value


def _none(value: Any) -> Any:
    return "none" if value is None else value


Switch = Annotated[Literal["on", "off"], BeforeValidator(_switch)]
WriteGate = Annotated[Literal["default", "off", "observe", "enforce"], BeforeValidator(_switch)]


class ControlOptions(BaseOptions):
    """Kwargs of every arm."""

    arm: str | None = Field(default=None, min_length=1, max_length=80, description="The study arm's label.")
    toolchain: str | None = Field(default=None, description="A built toolchain archive; default: the pinned one.")
    install: Literal["toolchain", "npm"] = Field(
        default="toolchain", description="Bring the toolchain, or install by npm inside the container."
    )
    title: Switch = Field(default="off", description="opencode's title request; on, it takes the plugin's injection.")
    context: Annotated[Literal["none", "bundle"], BeforeValidator(_none)] = Field(
        default="none", description="`bundle` puts the bundle's text into the system prompt (oracle context)."
    )
    bundle: str = Field(
        default="task", min_length=1, description="`task`: the task's own; `empty`; or a bundle's name (a placebo)."
    )
    bundles_dir: str | None = Field(default=None, description="Folder that holds the bundles.")


class AkmOptions(ControlOptions):
    """Kwargs of the treatment arms."""

    inject: Switch = Field(default="on", description="off: the plugin adds nothing to the system prompt.")
    tools: Switch = Field(default="on", description="off: the plugin's tools are not offered.")
    write_gate: WriteGate = Field(default="default", description="AKM_WRITE_GATE, where the plugin has one.")
    index: Switch = Field(default="on", description="off: akm builds its index itself, inside the measured time.")
    selfcheck: Literal["strict", "record"] = Field(
        default="strict", description="record: go on after a failed self-check and write it down."
    )
