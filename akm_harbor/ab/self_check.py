"""Does the report keep its word on this user's own data: A/A halves, placebo labels, redrawn tasks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from akm_harbor.ab.analysis import by_task
from akm_harbor.ab.arms import arm_names, guess_baseline, load_trials, select_arm
from akm_harbor.ab.policies import policy
from akm_harbor.ab.result import Options
from akm_harbor.ab.run import parse_options, read_task_names
from akm_harbor.ab.self_check_draws import (
    Differences,
    dealt,
    exact_cost,
    exact_p,
    flipped,
    intervals,
    padded,
    redrawn,
)
from akm_harbor.errors import UsageError
from akm_harbor.stats.binomial import proportion
from akm_harbor.stats.results import Estimate, NotEstimable, Result

Groups = Sequence[Sequence[float]]
Grade = Literal["holds", "careful", "slightly", "errs", "silent"]
Progress = Callable[[int, int], None]
_CHUNK = 1_000
_EXACT_BUDGET = 1_500_000_000
_FEWEST = 200
TOLERATED, ALARMING = 1.1, 2.0
"""A promised 5% is kept up to a measured 5.5%, and broken from 10%, Monte-Carlo error allowed for. Between the
two lie what a few tasks with coarse rewards can do: then only some error rates are possible at all."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What one kind of random data set said.

    Attributes:
        n_tasks: tasks in each draw.
        n_left_out: tasks that this kind cannot use (one attempt only).
        draws: random data sets.
        truth: the true difference in them.
        without_interval: share of draws in which every task tied, so that the report gives no interval.
        interval_wrong: share of draws whose interval excludes the truth, with its Monte-Carlo interval.
        coverage: share of the draws that have an interval whose interval holds the truth.
        half_width: mean half width of the interval.
        exact_wrong: share of draws with an exact p at or below 1 - level.
        grade: holds; careful (errs less than half as often as it may); slightly (more often than promised) or errs
            (at least twice as often); silent (every draw ties).
    """

    n_tasks: int
    n_left_out: int
    draws: int
    truth: float
    without_interval: float
    interval_wrong: Estimate
    coverage: Result
    half_width: float | None
    exact_wrong: Result
    grade: Grade


@dataclass(frozen=True, slots=True)
class Check:
    """One kind of random data set: what it is, and what it said or why it could not be made."""

    name: str
    title: str
    what: str
    result: Measured | NotEstimable


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """Every check of one dataset."""

    baseline: str
    treatment: str | None
    options: Options
    draws: int
    seed: int
    checks: tuple[Check, ...]

    @property
    def measured(self) -> tuple[Measured, ...]:
        """The checks that could be made."""
        return tuple(c.result for c in self.checks if isinstance(c.result, Measured))

    @property
    def exit_code(self) -> int:
        """0 the methods hold, 3 one errs at least twice as often as it says, 4 nothing could be measured."""
        if all(m.grade == "silent" for m in self.measured):
            return 4
        return 3 if any(m.grade == "errs" for m in self.measured) else 0

    def text(self) -> str:
        """The result as lines for a terminal."""
        from akm_harbor.ab.self_check_page import lines

        return "\n".join(lines(self))


class _Ticks:
    """Counts draws of all checks for one progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def add(self, n: int) -> None:
        self._done += n
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)


@dataclass(frozen=True, slots=True)
class _Run:
    """What every check of a run shares, and its own stream of random numbers."""

    level: float
    draws: int
    ticks: _Ticks
    rng: np.random.Generator


def self_check(
    dataset: Path,
    baseline: str | None = None,
    treatment: str | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    task_names: Path | None = None,
    draws: int = 10_000,
    seed: int = 0,
    progress: Progress | None = None,
) -> SelfCheck:
    """Make data sets in which the truth is known out of a dataset's own attempts, and count the errors.

    Args:
        dataset: a dataset's folder.
        baseline: the arm to split; without it, the only arm, `control`, or the one without a treatment.
        treatment: a second arm; without it, the only other one, if there is just one.
        options: fields of `Options`; `by`, `policy`, `level` and `strip_prefix` are used.
        task_names: a JSON file of task name to the name to pair it by.
        draws: random data sets of each kind.
        seed: of all random numbers.
        progress: called with (draws done, draws planned).

    Raises:
        UsageError: an arm, policy or option that does not exist, or fewer than 100 draws.
        AkmHarborError: not a dataset, or one without trials.
    """
    if draws < 100:
        raise UsageError(f"{draws} draws cannot measure an error rate", hint="Use at least 100.")
    parsed = parse_options(options or {})
    rule = policy(parsed.policy)
    trials = load_trials(dataset, read_task_names(task_names), strip_prefix=parsed.strip_prefix)
    names = arm_names(trials, parsed.by) if parsed.by in trials else []
    base = baseline or guess_baseline(trials)
    others = [n for n in names if n != base]
    second = treatment or (others[0] if len(others) == 1 else None)
    if second == base:
        raise UsageError(f"baseline and treatment are both {base!r}", hint="Name two different arms.")
    scored = [by_task(select_arm(trials, n, parsed.by), rule) for n in (base, second) if n is not None]
    ticks = _Ticks(progress, draws * (2 * len(scored) + 1 if second else 1))
    runs = [_Run(parsed.level, draws, ticks, stream) for stream in np.random.default_rng(seed).spawn(5)]
    checks = [
        Check(
            f"halves-{place}",
            f"A/A halves of {name}",
            f"Each task's attempts of {name} are split at random into two halves, and the halves compared as if "
            "they were two arms. The truth is zero.",
            _halves(arm, run),
        )
        for place, name, arm, run in zip(("baseline", "treatment"), (base, second), scored, runs[:2], strict=False)
    ]
    both = _pair(scored)
    for (name, title, what, make), run in zip(_BOTH, runs[2:], strict=True):
        result = make(*both, run) if not isinstance(both, NotEstimable) else both
        checks.append(Check(name, title, what, result))
    return SelfCheck(base, second, parsed, draws, seed, tuple(checks))


def _pair(scored: Sequence[Mapping[str, list[float]]]) -> tuple[Groups, Groups] | NotEstimable:
    """Both arms' attempts on the tasks they share, or why they cannot be given placebo labels."""
    method, estimand = "placebo labels", "error rate"
    if len(scored) < 2:
        return NotEstimable("one-arm", "No second arm: name one as the treatment.", method, estimand, 0)
    shared = sorted(scored[0].keys() & scored[1].keys())
    if len(shared) < 2:
        detail = f"The arms share {len(shared)} tasks with a counting attempt; at least two are needed."
        return NotEstimable("few-tasks", detail, method, estimand, len(shared))
    return [scored[0][t] for t in shared], [scored[1][t] for t in shared]


def _halves(arm: Mapping[str, list[float]], run: _Run) -> Measured | NotEstimable:
    groups = [scores for _, scores in sorted(arm.items()) if len(scores) > 1]
    if len(groups) < 2:
        most = max(map(len, arm.values()), default=0)
        detail = f"{len(groups)} of {len(arm)} tasks have two counting attempts or more (the most is {most}); " + (
            "a single attempt cannot be split in halves." if most < 2 else "at least two such tasks are needed."
        )
        return NotEstimable("one-attempt", detail, "A/A halves", "error rate", len(groups))
    attempts = padded(groups)
    make = partial(dealt, run.rng, attempts, attempts.counts // 2, either_way=True)
    return _measure(make, run, left_out=len(arm) - len(groups))


def _swapped(a: Groups, b: Groups, run: _Run) -> Measured:
    return _measure(partial(flipped, run.rng, padded(a), padded(b)), run)


def _shuffled(a: Groups, b: Groups, run: _Run) -> Measured:
    pooled = padded([[*x, *y] for x, y in zip(a, b, strict=True)])
    first = np.array([len(y) for y in b], dtype=np.int64)
    return _measure(partial(dealt, run.rng, pooled, first, either_way=False), run)


def _redrawn(a: Groups, b: Groups, run: _Run) -> Measured:
    one, two = padded(a), padded(b)
    truth = float(np.mean(two.scores.sum(axis=1) / two.counts - one.scores.sum(axis=1) / one.counts))

    def make(draws: int) -> Differences:
        return Differences(redrawn(run.rng, one, two, draws), None)

    return _measure(make, run, truth=truth, exact=False)


_BOTH: tuple[tuple[str, str, str, Callable[[Groups, Groups, _Run], Measured]], ...] = (
    (
        "placebo-swap",
        "Placebo: arms swapped by task",
        "On a random half of the tasks the two arms change names, so that neither is better. The truth is zero.",
        _swapped,
    ),
    (
        "placebo-shuffle",
        "Placebo: attempts dealt anew",
        "Within each task the attempts of both arms are dealt at random to two placebo arms. The truth is zero.",
        _shuffled,
    ),
    (
        "redrawn",
        "Tasks and attempts redrawn",
        (
            "Tasks are drawn with replacement from these, attempts from each task's own: other tasks like these, "
            "on which the truth is the difference measured. The exact test has no null to test here."
        ),
        _redrawn,
    ),
)


def _measure(
    make: Callable[[int], Differences], run: _Run, *, truth: float = 0.0, left_out: int = 0, exact: bool = True
) -> Measured:
    """Count, over many draws, how often the interval excludes the truth and the exact test rejects."""
    wrong = known = rejected = tested = n_tasks = 0
    width = 0.0
    allowed = run.draws
    for begin in range(0, run.draws, _CHUNK):
        some = make(min(_CHUNK, run.draws - begin))
        n_tasks = some.values.shape[1]
        centres, half, has = intervals(some.values, run.level)
        wrong += int((has & (np.abs(centres - truth) > half)).sum())
        known += int(has.sum())
        width += float(half[has].sum())
        if exact and some.whole is not None:
            if not begin:
                allowed = min(run.draws, _EXACT_BUDGET // max(exact_cost(some.whole), 1))
            if allowed >= min(_FEWEST, run.draws) and tested < allowed:
                part = some.whole[: allowed - tested]
                rejected += int((exact_p(part) <= 1 - run.level).sum())
                tested += len(part)
        run.ticks.add(len(centres))
    share = _share(wrong, run.draws)
    rate = _exact_rate(rejected, tested, exact=exact, n=n_tasks)
    silent = NotEstimable("all-tied", "No draw has an interval: every task ties.", "coverage", "coverage", n_tasks)
    return Measured(
        n_tasks,
        left_out,
        run.draws,
        truth,
        1 - known / run.draws,
        share,
        _share(known - wrong, known) if known else silent,
        width / known if known else None,
        rate,
        _grade(1 - run.level, share, rate) if known else "silent",
    )


def _share(events: int, draws: int) -> Estimate:
    """A share of random data sets, with Wilson's interval for the Monte-Carlo error."""
    found = proportion(events, draws)
    if not isinstance(found, Estimate):
        raise TypeError("a share of no draws")
    return replace(found, method="Monte Carlo", estimand="share of random data sets")


def _exact_rate(rejected: int, tested: int, *, exact: bool, n: int) -> Result:
    method, estimand = "exact sign-flip test", "error rate"
    if not exact:
        return NotEstimable("no-null", "The truth is not zero here, so there is no null.", method, estimand, n)
    if not tested:
        detail = "These rewards have no common denominator small enough to test every draw exactly."
        return NotEstimable("too-fine", detail, method, estimand, n)
    return _share(rejected, tested)


def _grade(alpha: float, *rates: Result) -> Grade:
    limits = [r.interval for r in rates if isinstance(r, Estimate) and r.interval is not None]
    if any(i.low > TOLERATED * alpha for i in limits):
        return "errs" if any(i.low > ALARMING * alpha for i in limits) else "slightly"
    return "careful" if limits and limits[0].high < alpha / 2 else "holds"
