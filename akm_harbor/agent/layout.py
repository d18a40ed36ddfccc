"""Where things lie inside a container, the same on every arm."""

from dataclasses import dataclass

ROOT = "/opt/akm-harbor"
TOOLCHAIN = f"{ROOT}/toolchain"
BIN = f"{ROOT}/bin"
BUNDLE = f"{ROOT}/bundle"
STAGE = f"{ROOT}/stage"
CONFIG = f"{ROOT}/config"
DATA = f"{ROOT}/data"
CACHE = f"{ROOT}/cache"
STATE = f"{ROOT}/state"
TMP = f"{ROOT}/tmp"  # noqa: S108 (not the system's)
CONTEXT = f"{CONFIG}/context.md"
OPENCODE_CONFIG = f"{CONFIG}/opencode.json"

AKM_DIRS = {"config": f"{CONFIG}/akm", "data": DATA, "cache": CACHE, "state": STATE}
PLUGIN_PACKAGE = f"{TOOLCHAIN}/plugin/node_modules/akm-opencode"


@dataclass(frozen=True, slots=True)
class Logs:
    """Paths below the agent's log folder, which Harbor brings to the host.

    Attributes:
        agent: the agent's log folder inside the environment, e.g. `/logs/agent`.
    """

    agent: str

    @property
    def evidence(self) -> str:
        """The evidence folder, `<trial>/agent/akm` on the host."""
        return f"{self.agent}/akm"

    @property
    def probe(self) -> str:
        """One line per model request, written by the probe plugin."""
        return f"{self.evidence}/probe.jsonl"

    @property
    def plugin_load(self) -> str:
        """What became of importing the akm plugin, written by the shim."""
        return f"{self.evidence}/plugin-load.json"

    @property
    def opencode_log(self) -> str:
        """The log folder of opencode itself (Harbor sets XDG_DATA_HOME so)."""
        return f"{self.agent}/opencode/xdg-data/opencode/log"

    @property
    def ledger(self) -> str:
        """The plugin's ledger (Harbor sets XDG_STATE_HOME so)."""
        return f"{self.agent}/opencode/xdg-state/akm-opencode/events.jsonl"
