"""akm inside the container: its config, its environment, its preparation."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from akm_harbor.agent import layout
from akm_harbor.agent.errors import SelfCheckError

BUNDLE_ID = "bench"


def akm_config() -> str:
    """The config.json of akm: offline, keyword search only, one bundle.

    Written by hand: `akm setup` would add network registries and a dozen assets of its own.
    """
    config = {
        "configVersion": "0.9.0",
        "semanticSearchMode": "off",
        "registries": [],
        "bundles": {BUNDLE_ID: {"path": layout.BUNDLE, "writable": True}},
        "defaultBundle": BUNDLE_ID,
        "output": {"format": "json", "detail": "brief"},
    }
    return json.dumps(config, indent=2) + "\n"


def akm_environment(write_gate: str) -> dict[str, str]:
    """Variables that every command of a treatment arm gets.

    AKM_EVENT_SOURCE is absent on purpose: the agent's own akm traffic is `user`.
    """
    environment = {f"AKM_{name.upper()}_DIR": path for name, path in layout.AKM_DIRS.items()}
    environment["AKM_OPENCODE_CLI"] = f"{layout.TOOLCHAIN}/bin/akm"
    environment["BUN"] = f"{layout.TOOLCHAIN}/bin/bun"
    if write_gate != "default":
        environment["AKM_WRITE_GATE"] = write_gate
    return environment


def prepare_spec(*, index: bool, evidence: str) -> str:
    """The task of scripts/prepare.js: index once, then check on a copy."""
    spec = {
        "akm": f"{layout.TOOLCHAIN}/bin/akm",
        "plugin": layout.PLUGIN_PACKAGE,
        "index": index,
        "out": evidence,
        "dirs": layout.AKM_DIRS,
        "scratch": f"{layout.TMP}/selfcheck",
    }
    return json.dumps(spec)


@dataclass(frozen=True, slots=True)
class Prepared:
    """What preparing akm gave.

    Attributes:
        index: `{ok, total_entries, detail}`, None where the harness did not index.
        selfcheck: `{ok, detail}`, and `empty` where all that is wrong is that akm holds nothing.
        timings: seconds per step.
    """

    index: Mapping[str, Any] | None
    selfcheck: Mapping[str, Any]
    timings: Mapping[str, float]

    def require_healthy(self, *, files: int) -> None:
        """Raise unless akm answers and holds something.

        Args:
            files: how many files the bundle has; an empty one is meant to be empty.

        Raises:
            SelfCheckError: the treatment would be broken.
        """
        if self.index is not None and not self.index["ok"]:
            raise SelfCheckError(f"akm index failed: {self.index['detail']}", hint=_HINT)
        if files and self.index is not None and self.index["total_entries"] == 0:
            raise SelfCheckError(f"akm index answered, but indexed nothing of {files} files", hint=_HINT)
        if not self.selfcheck["ok"] and not (files == 0 and self.selfcheck.get("empty")):
            raise SelfCheckError(str(self.selfcheck["detail"]), hint=_HINT)


_HINT = "See agent/akm/selfcheck.json and index.json in the trial. --ak selfcheck=record goes on and writes it down."


def read_prepared(stdout: str | None, stderr: str | None, return_code: int) -> Prepared:
    """Read the last line that scripts/prepare.js printed; a script that died is a failed self-check."""
    lines = (stdout or "").strip().splitlines()
    try:
        found = json.loads(lines[-1])
        return Prepared(found["index"], found["selfcheck"], found["timings"])
    except (IndexError, ValueError, KeyError, TypeError):
        detail = f"preparing akm failed (exit {return_code}): {(stderr or stdout or '').strip()[-300:]}"
        return Prepared(None, {"ok": False, "detail": detail}, {})
