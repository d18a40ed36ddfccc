"""What a rule says: an alert, and how rules are set."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Rule(StrEnum):
    """The three alert rules."""

    CALIBRATED = "calibrated"
    AS_DESIGNED = "as-designed"
    AS_AKM = "as-akm"


class Kind(StrEnum):
    """What an alert is about, in the order they are reported."""

    MERGE_FLOOR = "merge-floor"
    RECALL = "collapse-recall"
    DECLINE = "collapse-decline"
    ENTROPY = "collapse-entropy"
    SHRINK = "collapse-shrink"
    CHURN = "churn"

    @property
    def is_collapse(self) -> bool:
        """Whether it speaks of lost information; churn speaks of wasted budget."""
        return self.value.startswith("collapse-")


@dataclass(frozen=True, slots=True)
class Alert:
    """One alert in one cycle.

    Attributes:
        kind: what it is about.
        detail: one sentence with the numbers.
        metrics: the numbers by name.
        p: probability of the like in a healthy store, already shared out over the tests of the
            kind; None where the rule has no such thing.
        lost: ids of the canaries behind it, the most lost first.
    """

    kind: Kind
    detail: str
    metrics: Mapping[str, float]
    p: float | None = None
    lost: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Settings:
    """How the rules are set. The defaults are the design's where the design has one.

    Attributes:
        window: cycles a rule looks back.
        recall_drop: drop against the window's median (as-designed, as-akm).
        entropy_drop: drop of the distinct-content ratio (as-designed, as-akm).
        shrink_to: share of the window's largest store (as-designed, as-akm).
        churn_actions: accepted changes in the window before churn is considered.
        flat: movement that counts as none (as-designed churn).
        floor_min: merges below the floor in one cycle (calibrated; akm has 3, the design 1).
        rate: false alarms a cycle that the calibrated rule is held to.
        spared: canaries that may go for good without an alert of the calibrated rule.
        entropy_floor: smallest rise of the duplicates' share worth an alert (calibrated).
        shrink_floor: smallest loss of size worth an alert (calibrated).
    """

    window: int = 5
    recall_drop: float = 0.15
    entropy_drop: float = 0.05
    shrink_to: float = 0.8
    churn_actions: int = 25
    flat: float = 0.02
    floor_min: int = 3
    rate: float = 0.02
    spared: int = 2
    entropy_floor: float = 0.01
    shrink_floor: float = 0.05

    def __post_init__(self) -> None:
        if not 2 <= self.window <= 50:
            raise ValueError("the window must be 2 to 50 cycles")
        if not 0 < self.rate < 0.5:
            raise ValueError("the false-alarm rate must lie between 0 and 0.5")


DEFAULTS = Settings()
"""The design's numbers, and 2 % a cycle."""


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One rule over a series of cycles.

    Attributes:
        rule: which rule.
        alerts: one tuple a cycle, in the order of the cycles; empty where nothing fired.
        judged: whether the rule had enough history to judge a collapse in that cycle.
        p: the canary family's p value in each cycle; None where not judged (calibrated only).
    """

    rule: Rule
    alerts: tuple[tuple[Alert, ...], ...]
    judged: tuple[bool, ...]
    p: tuple[float | None, ...] = field(default=())
