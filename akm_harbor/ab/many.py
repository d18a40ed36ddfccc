"""Many arms at once: ranked under every error policy, contrasted with a baseline, read as a factorial."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from akm_harbor.ab.analysis import by_task
from akm_harbor.ab.arms import Arm, arm_names, load_trials, select_arm
from akm_harbor.ab.comparability import comparability
from akm_harbor.ab.delivery import delivery
from akm_harbor.ab.policies import NOT_ATTEMPTS, POLICIES, Policy, errored, has_reward, policy
from akm_harbor.ab.result import Options
from akm_harbor.errors import UsageError
from akm_harbor.stats.means import arm_mean
from akm_harbor.stats.multiplicity import adjusted
from akm_harbor.stats.paired import paired_difference, paired_t
from akm_harbor.stats.results import Estimate, Result
from akm_harbor.stats.signflip import sign_flip_attempts


@dataclass(frozen=True, slots=True)
class RankedArm:
    """One arm on its own tasks.

    Attributes:
        means: mean of task means by policy; None where nothing counts.
        ranks: its place by policy, 1 is best; ties share the better place.
        mean: the headline policy's mean with its interval.
        delivered: delivered share of the attempts with a verdict.
    """

    name: str
    n_attempts: int
    n_tasks: int
    n_errors: int
    n_unscored: int
    means: dict[str, float | None]
    ranks: dict[str, int]
    mean: Result
    delivered: float | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """One arm against the baseline, paired by task.

    Attributes:
        p_holm: the exact test's p, adjusted for all contrasts of the page.
        fatal: settings that differ although they must not.
    """

    arm: str
    n_tasks: int
    difference: Result
    sign_flip: Result
    p_holm: float | None
    delivered: float | None
    fatal: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of a 2 x 2 design, over the tasks that all four arms share."""

    name: str
    result: Result


@dataclass(frozen=True, slots=True)
class ManyArms:
    """Every arm of a dataset."""

    options: Options
    baseline: str | None
    arms: tuple[RankedArm, ...]
    contrasts: tuple[Contrast, ...]
    factorial: tuple[Effect, ...]
    empty: tuple[str, ...]


def compare_arms(
    dataset: Path,
    options: Options | None = None,
    *,
    baseline: str | None = None,
    only: Collection[str] = (),
    factorial: tuple[str, str, str, str] | None = None,
) -> ManyArms:
    """Rank all arms, or some, and contrast them with a baseline.

    Args:
        dataset: a dataset's folder.
        options: as for `analyse`; the rule and the margin are not used.
        baseline: contrast every other arm with this one.
        only: names of the arms to take; empty means all.
        factorial: arms with both factors, the first only, the second only, neither.

    Raises:
        UsageError: an arm, policy or column that does not exist.
    """
    options = options or Options()
    rule = policy(options.policy)
    trials = load_trials(dataset, strip_prefix=options.strip_prefix)
    wanted = {*only, *([baseline] if baseline and only else []), *(factorial or ())}
    for name in (*wanted, *([baseline] if baseline else [])):
        if name not in arm_names(trials, options.by):
            select_arm(trials, name, options.by)  # raises, with the near matches
    names = sorted(wanted) if only else arm_names(trials, options.by)
    attempted = set(trials.loc[~trials["status"].isin(NOT_ATTEMPTS), options.by].dropna())
    arms = {name: select_arm(trials, name, options.by) for name in names if name in attempted}
    if not arms:
        raise UsageError(f"no {options.by} has an attempt at a task", hint="Choose another column with --by.")
    return ManyArms(
        options,
        baseline,
        _ranked(arms, rule, options.level),
        _contrasts(arms, baseline, rule, options) if baseline else (),
        _factorial(arms, factorial, rule, options.level) if factorial else (),
        tuple(n for n in names if n not in attempted),
    )


def _ranked(arms: dict[str, Arm], rule: Policy, level: float) -> tuple[RankedArm, ...]:
    scored = {name: {p.name: by_task(arm, p) for p in POLICIES} for name, arm in arms.items()}
    means = {
        name: {p: float(np.mean([np.mean(t) for t in tasks.values()])) if tasks else None for p, tasks in each.items()}
        for name, each in scored.items()
    }
    rows = []
    for name, arm in arms.items():
        ranks = {p.name: _place(means, name, p.name) for p in POLICIES if means[name][p.name] is not None}
        rows.append(
            RankedArm(
                name,
                len(arm.attempts),
                len(arm.tasks),
                int(errored(arm.attempts).sum()),
                int((~has_reward(arm.attempts)).sum()),
                means[name],
                ranks,
                arm_mean(list(scored[name][rule.name].values()), level),
                delivery(arm).share,
            )
        )
    return tuple(sorted(rows, key=lambda r: (r.ranks.get(rule.name, len(rows) + 1), r.name)))


def _place(means: dict[str, dict[str, float | None]], name: str, rule: str) -> int:
    mine = means[name][rule] or 0.0
    return 1 + sum(1 for other in means.values() if (value := other[rule]) is not None and value > mine + 1e-12)


def _contrasts(arms: dict[str, Arm], baseline: str, rule: Policy, options: Options) -> tuple[Contrast, ...]:
    base = arms.get(baseline)
    if base is None:
        raise UsageError(f"arm {baseline!r} has no attempt at a task")
    left = by_task(base, rule)
    found = []
    for name, arm in arms.items():
        if name == baseline:
            continue
        right = by_task(arm, rule)
        common = sorted(left.keys() & right.keys())
        pair = [left[t] for t in common], [right[t] for t in common]
        checks = comparability(base, arm, strict=options.strict, accept=options.accept) if common else ()
        fatal = tuple(c.title for c in checks if c.grade == "fatal")
        found.append((arm, len(common), paired_difference(*pair, options.level), sign_flip_attempts(*pair), fatal))
    tested = [exact.p for _, _, _, exact, _ in found if isinstance(exact, Estimate) and exact.p is not None]
    corrected = iter(adjusted(tested, "holm"))
    return tuple(
        Contrast(
            arm.name,
            n,
            difference,
            exact,
            next(corrected) if isinstance(exact, Estimate) else None,
            delivery(arm).share,
            fatal,
        )
        for arm, n, difference, exact, fatal in found
    )


def _factorial(
    arms: dict[str, Arm], names: tuple[str, str, str, str], rule: Policy, level: float
) -> tuple[Effect, ...]:
    """Main effects and interaction by task contrasts, on the tasks that all four arms share."""
    missing = [n for n in names if n not in arms]
    if missing:
        raise UsageError(f"arm {missing[0]!r} has no attempt at a task")
    scored = [by_task(arms[n], rule) for n in names]
    common = sorted(set.intersection(*(set(s) for s in scored)))
    both, first, second, neither = (np.array([np.mean(s[t]) for t in common]) for s in scored)
    effects = (
        (f"first factor ({names[1]})", ((both + first) - (second + neither)) / 2),
        (f"second factor ({names[2]})", ((both + second) - (first + neither)) / 2),
        ("interaction", both - first - second + neither),
    )
    return tuple(Effect(name, paired_t(d, level)) for name, d in effects)
