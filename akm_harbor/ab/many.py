"""Many arms at once: ranked under every error policy, planned contrasts, a factorial read-out, behaviour."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from akm_harbor.ab.analysis import by_task
from akm_harbor.ab.arms import Arm, arm_names, load_trials, select_arm
from akm_harbor.ab.behaviour import Behaviour, behaviour
from akm_harbor.ab.comparability import comparability
from akm_harbor.ab.delivery import delivery
from akm_harbor.ab.factorial import INJECTION_BY_TOOLS, Cells, Effect, factorial_effects
from akm_harbor.ab.instrument import ComplierEffect, complier_effects
from akm_harbor.ab.policies import NOT_ATTEMPTS, POLICIES, Policy, errored, has_reward, policy
from akm_harbor.ab.result import Options
from akm_harbor.errors import UsageError
from akm_harbor.stats.means import arm_mean
from akm_harbor.stats.multiplicity import adjusted
from akm_harbor.stats.paired import paired_difference
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
class Planned:
    """A contrast that was declared before looking, and the question it answers."""

    arm: str
    versus: str
    question: str = ""


PLAN = (
    Planned("akm", "control", "Does the treatment help?"),
    Planned("akm", "empty-bundle", "Is it the notes, and not just having the plugin?"),
    Planned("akm", "irrelevant-bundle", "Is it these notes, and not just having notes?"),
    Planned("tools-only", "control", "What do the tools do without the plugin's text?"),
    Planned("injection-only", "control", "What does the plugin's text do without the tools?"),
    Planned("akm-write-gate", "akm", "Does the write gate help?"),
    Planned("oracle-context", "akm", "How much would perfect retrieval add?"),
)
"""The contrasts of arms/eight.yaml."""


def planned_contrasts(names: Iterable[str]) -> tuple[Planned, ...]:
    """The contrasts of `PLAN` whose arms are there."""
    there = set(names)
    return tuple(p for p in PLAN if {p.arm, p.versus} <= there)


def parse_contrast(text: str) -> Planned:
    """A contrast as one types it, `ARM:VERSUS`.

    Raises:
        UsageError: not two different names.
    """
    arm, _, versus = (part.strip() for part in text.partition(":"))
    if not arm or not versus or arm == versus:
        raise UsageError(f"a contrast is written ARM:VERSUS, not {text!r}", hint="For example --contrast akm:control.")
    return next((p for p in PLAN if (p.arm, p.versus) == (arm, versus)), Planned(arm, versus))


def plan_of(dataset: Path, only: Collection[str] = ()) -> tuple[tuple[Planned, ...], Cells | None]:
    """The part of `PLAN`, and the 2 x 2 design, whose arms the dataset has attempts of.

    Raises:
        UsageError: not even one contrast can be made.
    """
    trials = load_trials(dataset)
    there = set(arm_names(trials[~trials["status"].isin(NOT_ATTEMPTS)]))
    there &= set(only) or there
    plan = planned_contrasts(there)
    if not plan:
        wanted = sorted({name for p in PLAN for name in (p.arm, p.versus)})
        raise UsageError("none of the planned contrasts has both its arms", hint=f"They name {', '.join(wanted)}.")
    return plan, INJECTION_BY_TOOLS if set(INJECTION_BY_TOOLS) <= there else None


@dataclass(frozen=True, slots=True)
class Contrast:
    """One arm against another, paired by task.

    Attributes:
        arm: the arm.
        n_tasks: tasks that both have a counting attempt on.
        p_holm: the exact test's p, adjusted for all contrasts of the page.
        delivered: delivered share of the arm.
        fatal: settings that differ although they must not.
        versus: the arm it is compared with.
        question: what a planned contrast asks; empty for one of every arm against a baseline.
    """

    arm: str
    n_tasks: int
    difference: Result
    sign_flip: Result
    p_holm: float | None
    delivered: float | None
    fatal: tuple[str, ...]
    versus: str
    question: str = ""


@dataclass(frozen=True, slots=True)
class ManyArms:
    """Every arm of a dataset.

    Attributes:
        baseline: None where contrasts were planned or none were asked for.
        empty: arms without an attempt.
        behaviour: what the agents did with the treatment; None where no arm had one.
        complier: complier effects of `akm` against `control`, where both are there.
    """

    options: Options
    baseline: str | None
    arms: tuple[RankedArm, ...]
    contrasts: tuple[Contrast, ...]
    factorial: tuple[Effect, ...]
    empty: tuple[str, ...]
    behaviour: Behaviour | None = None
    complier: tuple[ComplierEffect, ...] = ()


def compare_arms(
    dataset: Path,
    options: Options | None = None,
    *,
    baseline: str | None = None,
    only: Sequence[str] = (),
    contrasts: Sequence[Planned] = (),
    factorial: Cells | None = None,
) -> ManyArms:
    """Rank all arms, or some, and contrast them.

    Args:
        dataset: a dataset's folder.
        options: as for `analyse`; the rule and the margin are not used.
        baseline: contrast every other arm with this one.
        only: names of the arms to take; empty means all.
        contrasts: planned contrasts instead: these and no others, corrected among themselves.
        factorial: arms of a 2 x 2 design: both factors, the first only, the second only, neither.

    Raises:
        UsageError: an arm, policy or column that does not exist, or both a baseline and planned contrasts.
    """
    options = options or Options()
    rule = policy(options.policy)
    if baseline and contrasts:
        raise UsageError("a baseline and planned contrasts exclude each other", hint="Give one of them.")
    if twice := {name for name in only if only.count(name) > 1}:
        raise UsageError(f"arm {min(twice)!r} is named twice", hint="Name each arm once.")
    trials = load_trials(dataset, strip_prefix=options.strip_prefix)
    named = {*([baseline] if baseline else []), *(factorial or ()), *(n for p in contrasts for n in (p.arm, p.versus))}
    for name in (*only, *named):
        if name not in arm_names(trials, options.by):
            select_arm(trials, name, options.by)  # raises, with the near matches
    names = sorted({*only, *named}) if only else arm_names(trials, options.by)
    attempted = set(trials.loc[~trials["status"].isin(NOT_ATTEMPTS), options.by].dropna())
    arms = {name: select_arm(trials, name, options.by) for name in names if name in attempted}
    if not arms:
        raise UsageError(f"no {options.by} has an attempt at a task", hint="Choose another column with --by.")
    for name in sorted(named - arms.keys()):
        raise UsageError(f"arm {name!r} has no attempt at a task")
    pairs = contrasts or tuple(Planned(name, baseline) for name in arms if baseline and name != baseline)
    seen = behaviour(dataset, list(arms.values()), rule, options.level) if _treated(arms) else None
    drawn = _contrasts(arms, pairs, rule, options)
    return ManyArms(
        options,
        baseline,
        _ranked(arms, rule, options.level),
        drawn,
        factorial_effects([by_task(arms[n], rule) for n in factorial], factorial, options.level) if factorial else (),
        tuple(n for n in names if n not in attempted),
        seen,
        _complier(arms, seen, rule, options.level),
    )


def _treated(arms: dict[str, Arm]) -> bool:
    """Whether there is anything to say about what the agents did with a treatment."""
    frames = [arm.attempts for arm in arms.values()]
    return any(f["treatment_delivered"].notna().any() or (f["n_akm_calls"] > 0).any() for f in frames)


def _complier(arms: dict[str, Arm], seen: Behaviour | None, rule: Policy, level: float) -> tuple[ComplierEffect, ...]:
    """The treatment's complier effects, with the empty bundle as a check of what it does without its notes."""
    if seen is None or not {"akm", "control"} <= arms.keys():
        return ()
    direct = None
    if "empty-bundle" in arms:
        pair = _paired(arms["control"], arms["empty-bundle"], rule)
        direct = "Empty bundle against control", paired_difference(*pair, level)
    return complier_effects(seen.trials, "control", "akm", level, direct)


def _paired(base: Arm, arm: Arm, rule: Policy) -> tuple[list[list[float]], list[list[float]]]:
    """Scores of both arms on the tasks they share."""
    left, right = by_task(base, rule), by_task(arm, rule)
    common = sorted(left.keys() & right.keys())
    return [left[t] for t in common], [right[t] for t in common]


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


def _contrasts(arms: dict[str, Arm], pairs: Sequence[Planned], rule: Policy, options: Options) -> tuple[Contrast, ...]:
    found = []
    for planned in pairs:
        base, arm = arms[planned.versus], arms[planned.arm]
        pair = _paired(base, arm, rule)
        checks = comparability(base, arm, strict=options.strict, accept=options.accept) if pair[0] else ()
        fatal = tuple(c.title for c in checks if c.grade == "fatal")
        found.append((planned, pair, sign_flip_attempts(*pair), fatal))
    tested = [exact.p for _, _, exact, _ in found if isinstance(exact, Estimate) and exact.p is not None]
    corrected = iter(adjusted(tested, "holm"))
    return tuple(
        Contrast(
            planned.arm,
            len(pair[0]),
            paired_difference(*pair, options.level),
            exact,
            next(corrected) if isinstance(exact, Estimate) else None,
            delivery(arms[planned.arm]).share,
            fatal,
            planned.versus,
            planned.question,
        )
        for planned, pair, exact, fatal in found
    )
