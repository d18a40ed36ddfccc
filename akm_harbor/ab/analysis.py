"""The A/B comparison: one call from a dataset to a frozen result, for every view alike."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
from scipy import stats

from akm_harbor.ab.arms import Arm, load_trials, select_arm
from akm_harbor.ab.behaviour import behaviour
from akm_harbor.ab.comparability import alike, comparability
from akm_harbor.ab.delivery import delivery, verdict_of
from akm_harbor.ab.engagement import engagement
from akm_harbor.ab.errors_by_arm import bounds_rows, error_summary
from akm_harbor.ab.instrument import complier_effects
from akm_harbor.ab.leaderboard import leaderboard
from akm_harbor.ab.policies import NOT_ATTEMPTS, POLICIES, Policy, policy, scores
from akm_harbor.ab.reconcile import reconcile
from akm_harbor.ab.result import AbResult, ArmSummary, Options, PassRow, Placebo, Planning, PolicyRow
from akm_harbor.ab.sensitivity import equivalent, other_methods
from akm_harbor.ab.tasks import family_rows, task_rows
from akm_harbor.ab.trace import with_traces
from akm_harbor.ab.usage import PHASES, USAGE, usage_rows
from akm_harbor.ab.verdict import rule_text, verdict
from akm_harbor.errors import NotComparableError, UsageError
from akm_harbor.stats.means import arm_mean, fixed_task_mean, variance_components
from akm_harbor.stats.paired import fixed_task_difference, paired_difference, pairing_gain
from akm_harbor.stats.passk import arm_pass_k, paired_pass_k, usable_k
from akm_harbor.stats.power import REFERENCE, difference_components, mde_from_spread, minimum_detectable, sample_size
from akm_harbor.stats.results import Estimate, NotEstimable, Result
from akm_harbor.stats.signflip import sign_flip_attempts
from akm_harbor.tables import PROBLEMS, read_manifest, read_table
from akm_harbor.trials.columns import TASKS, TRIALS

ScoresByTask = dict[str, list[float]]
_WANTED = (0.05, 0.10, 0.20)
EMPTY, IRRELEVANT = "empty-bundle", "irrelevant-bundle"
"""Names of placebo arms: everything but the notes, and notes about something else."""


def analyse(
    dataset: Path,
    baseline: str,
    treatment: str,
    options: Options | None = None,
    task_names: Mapping[str, str] | None = None,
) -> AbResult:
    """Compare two arms of a dataset.

    Args:
        dataset: a dataset's folder, made by `akm-harbor collect`.
        baseline: the baseline's name.
        treatment: the treatment's name.
        options: how to compare; the defaults are the documented ones.
        task_names: what to call a task, for names that differ between arms but mean the same task.

    Returns:
        Everything a report shows. Arms that differ in what they should share give a result whose
        verdict says "not comparable", not an error.

    Raises:
        UsageError: an arm, policy, check or rule that does not exist.
        NotComparableError: an arm without attempts, or arms that share no task.
        AkmHarborError: not a dataset.
    """
    options = at_look(options or Options())
    rule, _ = policy(options.policy), rule_text(options)
    if baseline == treatment:
        raise UsageError(f"baseline and treatment are both {baseline!r}", hint="Name two different arms.")
    trials = load_trials(dataset, task_names, (options.by, (baseline, treatment)), strip_prefix=options.strip_prefix)
    a, b = select_arm(trials, baseline, options.by), select_arm(trials, treatment, options.by)
    shared = sorted(set(a.tasks) & set(b.tasks))
    if not shared:
        raise _nothing_shared(a, b)
    checks = comparability(a, b, strict=options.strict, accept=options.accept)
    rows = {p.name: policy_row(a, b, p, options.level, headline=p is rule) for p in POLICIES}
    headline = rows[rule.name]
    scored = by_task(a, rule), by_task(b, rule)
    common = [t for t in shared if t in scored[0] and t in scored[1]]
    paired = [scored[0][t] for t in common], [scored[1][t] for t in common]
    tasks = task_rows(a, b, rule, _families(dataset), options.level)
    deliveries = (delivery(a), delivery(b))
    summaries = summarise(a, rule, options.level), summarise(b, rule, options.level)
    errors = error_summary(a, b)
    seen = behaviour(dataset, (a, b), rule, options.level)
    placebos = _placebos(dataset, (baseline, treatment), options, task_names)
    inside = [arm.attempts[arm.attempts["task"].isin(shared)] for arm in (a, b)]
    return AbResult(
        title=f"{treatment} against {baseline}",
        options=options,
        baseline=summaries[0],
        treatment=summaries[1],
        shared_tasks=tuple(shared),
        only_baseline=tuple(sorted(set(a.tasks) - set(b.tasks))),
        only_treatment=tuple(sorted(set(b.tasks) - set(a.tasks))),
        headline=headline,
        fixed_tasks=fixed_task_difference(*paired, options.level),
        pairing=pairing_gain(*paired),
        planning=planning(*paired, options.level),
        policies=tuple(rows.values()),
        bounds=bounds_rows(a, b),
        delivered_only=_delivered_only(a, b, rule, options.level, deliveries[1].undelivered),
        delivery=deliveries,
        checks=checks,
        pass_k=pass_rows(*paired, options.level),
        usage=usage_rows(USAGE, inside[0], inside[1], options.level),
        phases=usage_rows(PHASES, inside[0], inside[1], options.level),
        errors=errors,
        other_methods=other_methods(*paired, options.level),
        equivalence=equivalent(*paired, options.margin, options.level),
        engagement=(engagement(baseline, seen.trials), engagement(treatment, seen.trials)),
        behaviour=seen,
        complier=complier_effects(
            seen.trials, baseline, treatment, options.level, _without_notes(a, placebos.get(EMPTY), rule, options.level)
        ),
        placebos=tuple(Placebo(name, policy_row(arm, b, rule, options.level)) for name, arm in placebos.items()),
        reconciled=tuple(
            line for arm, own in zip((a, b), summaries, strict=True) for line in reconcile(dataset, arm, own.mean.value)
        ),
        leaderboard=(leaderboard(a), leaderboard(b)),
        families=family_rows(tasks, options.level),
        tasks=with_traces(
            dataset, tasks, pd.concat([a.attempts, b.attempts]), {m.trial_path: m.calls for m in seen.modes}
        ),
        verdict=verdict(
            options,
            headline,
            checks,
            deliveries,
            (errors.baseline / len(a.attempts), errors.treatment / len(b.attempts)),
        ),
        manifest=read_manifest(dataset),
        problems=_problems(dataset, (a, b)),
    )


def _placebos(
    dataset: Path, named: tuple[str, str], options: Options, task_names: Mapping[str, str] | None
) -> dict[str, Arm]:
    """The dataset's placebo arms besides the two that are compared."""
    wanted = [name for name in (EMPTY, IRRELEVANT) if options.by == "arm" and name not in named]
    there = set(read_table(dataset, TRIALS, ["arm"])["arm"].unique().to_pylist())
    wanted = [name for name in wanted if name in there]
    arms = {}
    for name in wanted:
        trials = load_trials(dataset, task_names, ("arm", (name,)), strip_prefix=options.strip_prefix)
        if ((trials["arm"] == name) & ~trials["status"].isin(NOT_ATTEMPTS)).any():
            arms[name] = select_arm(trials, name)
    return arms


def _without_notes(a: Arm, empty: Arm | None, rule: Policy, level: float) -> tuple[str, Result] | None:
    """What the treatment does without its notes: a check of the complier effect's exclusion restriction."""
    return None if empty is None else (f"{empty.name} against {a.name}", policy_row(a, empty, rule, level).difference)


def at_look(options: Options) -> Options:
    """Raise the level of the intervals where this is one of several planned looks (O'Brien-Fleming).

    Raises:
        UsageError: `look` is not like `2/5`.
    """
    if not options.look:
        return options
    now, _, planned = options.look.partition("/")
    if not (now.isdigit() and planned.isdigit() and 1 <= int(now) <= int(planned) <= 50):
        raise UsageError(
            f"a look is written like 2/5, not {options.look!r}", hint="That is the second of five planned looks."
        )
    from akm_harbor.stats.sequential import boundaries

    limit = boundaries(int(planned), "obrien-fleming", 1 - options.level)[int(now) - 1]
    return replace(options, level=float(1 - 2 * stats.norm.sf(limit)))


def _nothing_shared(a: Arm, b: Arm) -> NotComparableError:
    names = "; ".join(f"{arm.name} has {', '.join(arm.tasks[:3])}{', …' * (len(arm.tasks) > 3)}" for arm in (a, b))
    hint = "If these are names for the same tasks, say so with `--task-names FILE`"
    if alike(a.tasks, b.tasks):
        hint += "; these differ only by what stands before a slash: `--strip-prefix`"
    return NotComparableError(f"the arms share no task: {names}", hint=f"{hint}.")


def by_task(arm: Arm, rule: Policy, *, delivered: bool = False) -> ScoresByTask:
    """Scores of an arm's counting attempts by task; tasks without any are absent."""
    attempts = arm.attempts
    if delivered:
        attempts = attempts[[verdict_of(v) is not False for v in attempts["treatment_delivered"]]]
    found: ScoresByTask = {}
    for task, score in zip(attempts["task"].to_numpy(), scores(attempts, rule).to_numpy(), strict=True):
        if score == score:  # noqa: PLR0124  (a policy leaves out by NaN)
            found.setdefault(str(task), []).append(float(score))
    return dict(sorted(found.items()))


def policy_row(
    a: Arm, b: Arm, rule: Policy, level: float, *, headline: bool = False, delivered_only: bool = False
) -> PolicyRow:
    """The paired difference under one error policy."""
    left, right = by_task(a, rule), by_task(b, rule, delivered=delivered_only)
    shared = set(a.tasks) & set(b.tasks)
    common = sorted(shared & left.keys() & right.keys())
    paired = [left[t] for t in common], [right[t] for t in common]
    return PolicyRow(
        "delivered-only" if delivered_only else rule.name,
        rule.title,
        headline,
        _mean_of_means(paired[0]),
        _mean_of_means(paired[1]),
        paired_difference(*paired, level),
        sign_flip_attempts(*paired),
        len(common),
        sum(map(len, paired[0])),
        sum(map(len, paired[1])),
        tuple(sorted(shared - set(common))),
    )


def _mean_of_means(groups: list[list[float]]) -> float | None:
    return sum(sum(g) / len(g) for g in groups) / len(groups) if groups else None


def _delivered_only(a: Arm, b: Arm, rule: Policy, level: float, undelivered: int) -> PolicyRow | None:
    """The comparison without undelivered attempts: observational, since delivery was not drawn by lot."""
    return policy_row(a, b, rule, level, delivered_only=True) if undelivered else None


def summarise(arm: Arm, rule: Policy, level: float) -> ArmSummary:
    """What an arm consists of and how it did on all of its own tasks."""
    attempts = arm.attempts
    counts = attempts.groupby("task").size()
    groups = list(by_task(arm, rule).values())
    times = attempts["started_at"].min(), attempts["finished_at"].max()
    first, last = (None if pd.isna(t) else t.to_pydatetime() for t in times)

    def names(column: str) -> tuple[str, ...]:
        return tuple(sorted(str(v) for v in attempts[column].dropna().unique()))

    return ArmSummary(
        arm.name,
        len(attempts),
        len(counts),
        arm.n_set_aside,
        int(counts.min()),
        int(counts.max()),
        {str(s): int(n) for s, n in attempts["status"].value_counts().items()},
        names("agent_name"),
        names("model_name"),
        names("job_name"),
        first,
        last,
        arm_mean(groups, level),
        fixed_task_mean(groups, level),
        variance_components(groups),
    )


def planning(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], level: float) -> Planning:
    """What the design could see: from the run's own spread, else from planning values."""
    estimated = difference_components(a, b)
    components = REFERENCE if isinstance(estimated, NotEstimable) else estimated
    k_a, k_b = (_harmonic(arm) for arm in (a, b))
    spread = paired_difference(a, b, level)
    if isinstance(spread, Estimate) and spread.se is not None:
        mde: Result = mde_from_spread(spread.se, spread.n, 1 - level)
    else:
        mde = minimum_detectable(len(a), REFERENCE, k_a, k_b, alpha=1 - level)
    needed = ((d, sample_size(d, components, k_a, k_b, alpha=1 - level).value) for d in _WANTED)
    return Planning(mde, components, tuple(needed))


def _harmonic(arm: Sequence[Sequence[float]]) -> float:
    """Attempts a task as they enter the variance of a mean of task means."""
    return len(arm) / sum(1 / len(task) for task in arm) if len(arm) else 1.0


def pass_rows(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]], level: float) -> tuple[PassRow, ...]:
    """pass@k and pass^k at every k that all shared tasks allow; the two are one thing at k=1."""
    rows = []
    for k in usable_k(a, b):
        for kind in ("pass@k", "pass^k") if k > 1 else ("pass@k",):
            left, right = arm_pass_k(a, k, kind), arm_pass_k(b, k, kind)
            rows.append(PassRow(kind, k, left, right, paired_pass_k(a, b, k, kind, level)))
    return tuple(rows)


def _families(dataset: Path) -> dict[str, str]:
    table = read_table(dataset, TASKS, ["task_name", "family"])
    names, families = table["task_name"].to_pylist(), table["family"].to_pylist()
    return {n: f for n, f in zip(names, families, strict=True) if n and f}


def _problems(dataset: Path, arms: tuple[Arm, ...]) -> tuple[dict[str, Any], ...]:
    """Problems of these arms' trials and jobs, with paths relative to what was collected."""
    places: dict[str, set[str]] = {}
    for arm in arms:
        for root, path in zip(arm.attempts["root"], arm.attempts["trial_path"], strict=True):
            places.setdefault(root or "", set()).update((path, str(PurePosixPath(path).parent)))
    found = []
    for problem in read_table(dataset, PROBLEMS).to_pylist():
        for root, names in places.items():
            inside = str(problem["path"]).removeprefix(root).lstrip("/")
            steps = {inside, *map(str, PurePosixPath(inside).parents)}
            if steps & names:
                found.append({**problem, "path": inside})
                break
    return tuple(found)
