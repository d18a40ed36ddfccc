"""What the corpus can show: which tasks leave a treatment room, and how much of a headline is the choice of tasks.

A task is judged by the interval of the control's pass rate, never by the rate alone: three attempts without a
pass are what a task with a true rate of 20% gives every second time.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from scipy import stats

from akm_harbor.ab.analysis import by_task
from akm_harbor.ab.arms import Arm, arm_names, guess_baseline, load_trials, select_arm
from akm_harbor.ab.composition import Composition, compositions
from akm_harbor.ab.policies import errored, policy
from akm_harbor.ab.result import Options
from akm_harbor.errors import UsageError
from akm_harbor.stats.binomial import proportion
from akm_harbor.stats.means import arm_mean
from akm_harbor.stats.paired import paired_difference
from akm_harbor.stats.results import NotEstimable, Result
from akm_harbor.stats.signflip import sign_flip_attempts
from akm_harbor.tables import read_manifest, read_table
from akm_harbor.trials.columns import TASKS

Class = Literal["discriminating", "guessable", "saturated", "unknown"]
CLASSES: tuple[Class, ...] = ("discriminating", "guessable", "saturated", "unknown")
GROUPINGS = ("domain", "knowledge", "shape", "slice", "family")
"""What the corpus says of a task: where it comes from, who can know the answer, how it is set, what it is for."""
_MOST_ATTEMPTS = 10_000


@dataclass(frozen=True, slots=True)
class Lines:
    """The stated rule.

    Attributes:
        low: the guessing line. A control that surely passes more rarely leaves room.
        high: the saturation line. A control that surely passes more often leaves none.
        level: coverage of a task's interval (Clopper-Pearson).
        to_clear: attempts without a pass that it takes to call a task discriminating.
        to_saturate: attempts without a failure that it takes to call it saturated.
    """

    low: float
    high: float
    level: float
    to_clear: int
    to_saturate: int


@dataclass(frozen=True, slots=True)
class Task:
    """One task under the control.

    Attributes:
        passes: attempts with a full reward; None where a reward is neither 0 nor 1.
        n: attempts that count under the policy.
        n_errors: attempts that ended with an error, counting or not.
        rate: pass rate with its exact interval.
        verdict: by the interval; `unknown` where it reaches across a line.
        leans: what the rate alone would say; not evidence.
        groups: grouping -> the task's group, where the tasks table knows it.
        difference: treatment minus control of the mean rewards, with a treatment.
    """

    task: str
    passes: int | None
    n: int
    n_errors: int
    rate: Result
    verdict: Class
    leans: Class
    groups: dict[str, str]
    difference: float | None


@dataclass(frozen=True, slots=True)
class Group:
    """The control on the tasks of one group."""

    name: str
    n_tasks: int
    n_attempts: int
    mean: Result
    verdicts: dict[Class, int]


@dataclass(frozen=True, slots=True)
class Split:
    """The corpus by one grouping."""

    grouping: str
    groups: tuple[Group, ...]
    n_unknown: int


@dataclass(frozen=True, slots=True)
class Calibration:
    """A corpus under its control, and a headline under its corpus.

    Attributes:
        verdicts: tasks by verdict.
        leans: tasks by what their rates alone would say.
        attempts: fewest and most counting attempts of a task.
        splits: the corpus by each grouping that has at least two groups.
        headline: the paired difference on all shared tasks; None without a treatment.
        compositions: the headline taken apart by each grouping.
    """

    baseline: str
    treatment: str | None
    options: Options
    lines: Lines
    tasks: tuple[Task, ...]
    verdicts: dict[Class, int]
    leans: dict[Class, int]
    attempts: tuple[int, int]
    mean: Result
    splits: tuple[Split, ...]
    headline: Result | None
    sign_flip: Result | None
    compositions: tuple[Composition, ...]
    manifest: dict[str, Any]


def calibrate(
    dataset: Path,
    baseline: str | None = None,
    treatment: str | None = None,
    *,
    options: Options | None = None,
    task_names: Mapping[str, str] | None = None,
    low: float = 0.2,
    high: float = 0.8,
) -> Calibration:
    """Judge every task by its control, and take a headline apart by kind of task.

    Args:
        dataset: a dataset's folder.
        baseline: the control arm; without it, the only arm, `control`, or the one without a treatment.
        treatment: an arm whose paired difference is taken apart; without it, the only other one, if just one.
        options: `by`, `policy`, `level` and `strip_prefix` are used.
        task_names: task name -> the name to pair it by.
        low: the guessing line.
        high: the saturation line.

    Raises:
        UsageError: an arm, policy or line that cannot be meant.
        NotComparableError: the control has no attempt.
        AkmHarborError: not a dataset.
    """
    options = options or Options()
    rule = policy(options.policy)
    lines = stated_rule(low, high, options.level)
    trials = load_trials(dataset, task_names, strip_prefix=options.strip_prefix)
    names = arm_names(trials, options.by) if options.by in trials else []
    control = baseline or guess_baseline(trials)
    others = [n for n in names if n != control]
    second = treatment or (others[0] if len(others) == 1 else None)
    if second == control:
        raise UsageError(f"baseline and treatment are both {control!r}", hint="Name two different arms.")
    arm = select_arm(trials, control, options.by)
    scored = by_task(arm, rule)
    treated = by_task(select_arm(trials, second, options.by), rule) if second else {}
    tasks = _tasks(arm, scored, treated, _kinds(dataset, arm), lines)
    shared = [t.task for t in tasks if t.difference is not None]
    pair = [scored[t] for t in shared], [treated[t] for t in shared]
    counts = [t.n for t in tasks]
    return Calibration(
        control,
        second,
        options,
        lines,
        tasks,
        {c: sum(t.verdict == c for t in tasks) for c in CLASSES},
        {c: sum(t.leans == c for t in tasks) for c in CLASSES},
        (min(counts), max(counts)),
        arm_mean(list(scored.values()), options.level),
        _splits(tasks, scored, options.level),
        paired_difference(*pair, options.level) if second else None,
        sign_flip_attempts(*pair) if second else None,
        compositions([(t.difference, t.groups) for t in tasks if t.difference is not None], GROUPINGS, options.level),
        read_manifest(dataset),
    )


def stated_rule(low: float, high: float, level: float) -> Lines:
    """The rule with what it asks for.

    Raises:
        UsageError: lines that do not lie between 0 and 1 in this order.
    """
    if not 0 < low < high < 1:
        raise UsageError(
            f"the lines {low:g} and {high:g} cannot both hold", hint="Use 0 < low < high < 1, e.g. 0.2 and 0.8."
        )
    return Lines(low, high, level, _attempts_below(low, level), _attempts_below(1 - high, level))


def _attempts_below(limit: float, level: float) -> int:
    """Attempts without an event after which the exact interval lies below a limit: 1 - a^(1/n) <= limit."""
    return min(math.ceil(math.log((1 - level) / 2) / math.log1p(-limit) - 1e-9), _MOST_ATTEMPTS)


def chance_to_miss(rate: float, n: int) -> float:
    """How often a task with this true pass rate shows no pass in n attempts."""
    return float(stats.binom.pmf(0, n, rate))


def verdict_of(rate: Result, lines: Lines) -> Class:
    """Where a task's interval lies: below the guessing line, above it, above the saturation line, or across."""
    if isinstance(rate, NotEstimable) or rate.interval is None:
        return "unknown"
    if rate.interval.high <= lines.low:
        return "discriminating"
    if rate.interval.low >= lines.high:
        return "saturated"
    return "guessable" if rate.interval.low > lines.low else "unknown"


def leaning(rate: Result, lines: Lines) -> Class:
    """Where the rate alone lies; what a rule without an interval would have said."""
    if rate.value is None:
        return "unknown"
    return "discriminating" if rate.value <= lines.low else "saturated" if rate.value >= lines.high else "guessable"


def _kinds(dataset: Path, arm: Arm) -> dict[str, dict[str, str]]:
    """Task, as paired -> grouping -> group, from the tasks table."""
    known = {}
    for row in read_table(dataset, TASKS).to_pylist():
        found = {**_metadata(row["metadata_json"]), **row}
        known[row["task_name"]] = {g: str(found[g]) for g in GROUPINGS if found.get(g)}
    names = dict(zip(arm.attempts["task"], arm.attempts["task_name"], strict=True))
    return {task: known.get(name, {}) for task, name in names.items()}


def _metadata(text: str | None) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _tasks(
    arm: Arm,
    scored: Mapping[str, Sequence[float]],
    treated: Mapping[str, Sequence[float]],
    kinds: Mapping[str, dict[str, str]],
    lines: Lines,
) -> tuple[Task, ...]:
    """Every task of the control, the lowest pass rates first, those without a rate last."""
    errors = arm.attempts["task"][errored(arm.attempts)].value_counts()
    rows = []
    for task in arm.tasks:
        own, other = scored.get(task, []), treated.get(task)
        whole = all(s in {0.0, 1.0} for s in own)
        passes = int(sum(own)) if whole else None
        rate = _rate(own, passes, lines.level)
        difference = math.fsum(other) / len(other) - math.fsum(own) / len(own) if own and other else None
        verdict, leans = verdict_of(rate, lines), leaning(rate, lines)
        rows.append(
            Task(task, passes, len(own), int(errors.get(task, 0)), rate, verdict, leans, kinds[task], difference)
        )
    return tuple(sorted(rows, key=lambda t: (t.rate.value is None, t.rate.value or 0.0, t.task)))


def _rate(own: Sequence[float], passes: int | None, level: float) -> Result:
    if passes is None:
        detail = "Rewards other than 0 and 1 have no pass rate."
        mean = math.fsum(own) / len(own)
        return NotEstimable("part-reward", detail, "clopper-pearson", "pass rate", len(own), mean)
    return proportion(passes, len(own), "clopper-pearson", level)


def _splits(tasks: Sequence[Task], scored: Mapping[str, Sequence[float]], level: float) -> tuple[Split, ...]:
    splits = []
    for grouping in GROUPINGS:
        groups: dict[str, list[Task]] = {}
        for task in tasks:
            if grouping in task.groups:
                groups.setdefault(task.groups[grouping], []).append(task)
        if len(groups) >= 2:
            made = tuple(_group(name, rows, scored, level) for name, rows in sorted(groups.items()))
            splits.append(Split(grouping, made, sum(grouping not in t.groups for t in tasks)))
    return tuple(splits)


def _group(name: str, tasks: Sequence[Task], scored: Mapping[str, Sequence[float]], level: float) -> Group:
    own = [scored[t.task] for t in tasks if t.task in scored]
    verdicts = {c: sum(t.verdict == c for t in tasks) for c in CLASSES}
    return Group(name, len(tasks), sum(t.n for t in tasks), arm_mean(own, level), verdicts)
