"""The truth about arms/eight.yaml: what its policy makes of each attempt, worked out by hand, rule by rule.

Nothing here looks at a recorded trial. The chances are the policy's own draws; what follows from a rule
(reward, how far the funnel gets, the failure mode) is written down below, so that an analysis of the
trials can be held against it.
"""

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from akm_harbor.ab.behaviour import Behaviour
from akm_harbor.sandbox.model.conversation import Conversation, drawn
from akm_harbor.sandbox.model.policy_file import load_policy

ROOT = Path(__file__).parents[2]
POLICY = ROOT / "arms" / "eight-policy.yaml"
ARMS = (
    *("control", "akm", "empty-bundle", "irrelevant-bundle"),
    *("injection-only", "tools-only", "oracle-context", "akm-write-gate"),
)
TASKS = {
    "widen-pool": "drillbit--widen-pool",
    "keep-cores": "drillbit--keep-cores",
    "turn-key": "drillbit--turn-key",
    "lean-canary": "drillbit--lean-canary",
    "health-probe": "inkwell--health-probe",
    "request-limit": "inkwell--request-limit",
    "scale-by-cpu": "inkwell--scale-by-cpu",
    "feature-branch": "local--feature-branch",
    "push-image": "local--push-image",
    "publish-port": "workflow-compliance--publish-port",
    "resource-group": "az-cli--resource-group",
    "restart-policy": "docker-homelab--restart-policy",
}
_WITH_NOTES = {"akm", "tools-only", "akm-write-gate"}
_PLACEBOS = {"empty-bundle", "irrelevant-bundle"}
_TREATED = {*_WITH_NOTES, *_PLACEBOS, "injection-only"}


@dataclass(frozen=True, slots=True)
class Truth:
    """What one attempt must turn out to be."""

    reward: int
    mode: str
    called: bool
    found: bool | None
    opened: bool | None
    wrote: bool | None


SOLVED = Truth(1, "solved", called=True, found=True, opened=True, wrote=True)
IN_VAIN = Truth(0, "gold-absent", called=True, found=False, opened=False, wrote=False)
IDLE = Truth(0, "never-looked", called=False, found=False, opened=False, wrote=False)


class Scripted:
    """The policy's draws."""

    def __init__(self) -> None:
        self.policy = load_policy(POLICY)
        self.rules = {rule.name: rule for rule in self.policy.rules}

    def plays(self, rule: str, task: str, arm: str, attempt: int) -> bool:
        """Whether a rule applies in this attempt at all."""
        return drawn(self.policy.seed, self.rules[rule], Conversation("", task, arm, attempt))

    def truth(self, task: str, arm: str, attempt: int) -> Truth:
        """What this attempt must turn out to be."""
        if task in {"resource-group", "restart-policy"}:
            return self._public(task, arm, attempt)
        if arm == "control":
            return replace(IDLE, mode="no-treatment")
        if arm == "injection-only" and task not in {"widen-pool", "keep-cores"}:
            return IDLE
        if arm in _PLACEBOS:
            return IN_VAIN
        if arm == "oracle-context":
            read = self._having_read(task, arm, attempt)
            return replace(read, called=False, found=None, opened=None, wrote=None)
        return self._on_the_way(task, arm, attempt) or self._having_read(task, arm, attempt)

    def _public(self, task: str, arm: str, attempt: int) -> Truth:
        """Nobody looks; everybody knows, or slips in the same way."""
        solved = task == "resource-group" or self.plays("restart-policy", task, arm, attempt)
        none = None if arm == "oracle-context" else False
        mode = "never-looked" if arm in _TREATED else "followed-failed" if arm == "oracle-context" else "no-treatment"
        return Truth(int(solved), "solved" if solved else mode, called=False, found=none, opened=none, wrote=none)

    def _having_read(self, task: str, arm: str, attempt: int) -> Truth:
        """The gold asset is before the model: it follows it, or slips, or ignores it."""
        if self.plays(task, task, arm, attempt):
            return SOLVED
        slip = {"keep-cores": "followed-failed", "turn-key": "opened-ignored", "request-limit": "followed-failed"}
        return replace(SOLVED, reward=0, mode=slip[task])

    def _on_the_way(self, task: str, arm: str, attempt: int) -> Truth | None:
        """What keeps the model from opening the gold asset."""
        unopened = Truth(0, "", called=True, found=True, opened=False, wrote=False)
        ways = {
            "lean-canary": ("lean-canary-neighbour", replace(unopened, mode="opened-wrong")),
            "scale-by-cpu": ("scale-by-cpu-in-vain", IN_VAIN),
            "feature-branch": ("feature-branch-confident", IDLE),
            "push-image": ("push-image-list-only", replace(unopened, mode="found-not-opened")),
            "publish-port": ("publish-port-far-down", replace(unopened, mode="gold-low")),
        }
        rule, truth = ways.get(task, (None, IDLE))
        gated = arm == "akm-write-gate" and task in {"feature-branch", "push-image"}
        return truth if rule and arm in _WITH_NOTES and not gated and self.plays(rule, task, arm, attempt) else None

    def table(self, attempts: int = 3) -> dict[tuple[str, str], Counter[Truth]]:
        """(arm, task folder) -> what its attempts must be; which trial is which attempt is left open."""
        return {
            (arm, folder): Counter(self.truth(task, arm, n) for n in range(1, attempts + 1))
            for arm in ARMS
            for task, folder in TASKS.items()
        }


def observed(seen: Behaviour) -> dict[tuple[str, str], Counter[Truth]]:
    """The same table from an analysis of trials."""
    table: dict[tuple[str, str], Counter[Truth]] = {}
    for trial, mode in zip(seen.trials, seen.modes, strict=True):
        reward = -1 if trial.score is None else int(trial.score)
        told = Truth(reward, mode.mode, bool(trial.called), trial.found, trial.opened, trial.wrote)
        table.setdefault((trial.arm, trial.task.rpartition("/")[2]), Counter())[told] += 1
    return table
