"""Everything that can be said about what the agents did with the treatment, in one value."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.attribution import AssetRow, AssetUse, asset_rows, asset_uses
from akm_harbor.ab.failure_mode import ModeCounts, TrialMode, failure_modes, mode_counts
from akm_harbor.ab.funnel import Funnel, UseSplit, funnels, use_splits
from akm_harbor.ab.ledgers import Reconciliation, reconcile_ledgers
from akm_harbor.ab.policies import Policy
from akm_harbor.ab.use import TrialUse, read_uses
from akm_harbor.ab.workflows import Compliance, compliance


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What the agents of some arms did with the treatment.

    Attributes:
        trials: every attempt with its uses of the bundle, arm by arm.
        funnels: by arm, and by family of each arm.
        splits: used against unused, observational.
        ledgers: whether the evidence agrees with itself, by arm.
        modes: how each attempt ended and which steps decided it, in the order of `trials`.
        asset_uses: which asset was in play in which attempt.
        assets: success with and without each asset, descriptive.
        compliance: declared workflows as the verifiers scored them.
    """

    trials: tuple[TrialUse, ...]
    funnels: tuple[Funnel, ...]
    splits: tuple[UseSplit, ...]
    ledgers: tuple[Reconciliation, ...]
    modes: tuple[TrialMode, ...]
    mode_counts: tuple[ModeCounts, ...]
    asset_uses: tuple[AssetUse, ...]
    assets: tuple[AssetRow, ...]
    compliance: Compliance


def behaviour(dataset: Path, arms: Sequence[Arm], rule: Policy, level: float = 0.95) -> Behaviour:
    """Read and judge the attempts of these arms.

    Args:
        dataset: a dataset's folder.
        arms: the arms, in the order of the result.
        rule: the error policy that scores the attempts.
        level: coverage of the intervals.
    """
    trials = read_uses(dataset, arms, rule)
    modes = failure_modes(trials)
    uses = asset_uses(dataset, trials)
    return Behaviour(
        trials,
        funnels(trials),
        use_splits(trials, level),
        reconcile_ledgers(dataset, trials),
        modes,
        mode_counts(trials, modes),
        uses,
        asset_rows(trials, uses, level),
        compliance(arms),
    )
