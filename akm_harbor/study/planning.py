"""How many tasks and attempts an effect needs, and which effect a budget can see."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.ab.analysis import by_task
from akm_harbor.ab.arms import arm_names, guess_baseline, load_trials, select_arm
from akm_harbor.ab.policies import policy
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.stats.power import Components, difference_components, minimum_detectable, sample_size
from akm_harbor.stats.results import NotEstimable

TASKS = (19, 27, 46, 89, 500)
ATTEMPTS = (1, 3, 5, 10)
_MOST_TASKS = 1_000_000
_LEAST = 1e-9  # a level, a miss or a difference below it leaves what floating point can tell
_MOST_ATTEMPTS = 1_000
_CURVE = (5, 7, 10, 14, 19, 27, 36, 46, 65, 89, 130, 180, 250, 350, 500, 700, 1000)


@dataclass(frozen=True, slots=True)
class Goal:
    """The test that is to see the difference.

    Attributes:
        alpha: its two-sided level.
        power: how often it is to see a true difference.
    """

    alpha: float = 0.05
    power: float = 0.8

    def __post_init__(self) -> None:
        if not (_LEAST <= self.alpha < 0.5 and self.alpha < self.power <= 1 - _LEAST):
            raise UsageError(
                f"a level of {self.alpha:g} with {self.power:g} power makes no sense",
                hint="E.g. --alpha 0.05 --power 0.8.",
            )


@dataclass(frozen=True, slots=True)
class Design:
    """So many tasks, so many attempts, and the smallest difference they see.

    Attributes:
        normal: by the normal formula, as power tables print it; reward points from 0 to 1.
        student: by the t distribution, which the report's test uses; None below two tasks.
        trials: of two arms together.
    """

    tasks: int
    attempts: int
    normal: float | None
    student: float | None

    @property
    def trials(self) -> int:
        """Trials of two arms together."""
        return 2 * self.tasks * self.attempts


@dataclass(frozen=True, slots=True)
class Needed:
    """Tasks that a difference needs at so many attempts."""

    attempts: int
    normal: int
    student: int


def design(tasks: int, attempts: int, components: Components, goal: Goal) -> Design:
    """What a design sees.

    Args:
        tasks: shared tasks.
        attempts: attempts of each task by each arm.
        components: variance components.
        goal: level and power.
    """
    found = [
        minimum_detectable(tasks, components, attempts, attempts, alpha=goal.alpha, power=goal.power, student=student)
        for student in (False, True)
    ]
    normal, student = (None if isinstance(one, NotEstimable) else one.value for one in found)
    return Design(tasks, attempts, normal, student)


def table(
    components: Components, goal: Goal, tasks: Sequence[int] = TASKS, attempts: Sequence[int] = ATTEMPTS
) -> list[Design]:
    """Designs for every pair of tasks and attempts, by tasks."""
    return [design(n, k, components, goal) for n in tasks for k in attempts]


def curves(components: Components, goal: Goal, attempts: Sequence[int] = ATTEMPTS) -> list[Design]:
    """Designs along the curves of a figure, by attempts."""
    return [design(n, k, components, goal) for k in attempts for n in _CURVE]


def tasks_needed(difference: float, attempts: int, components: Components, goal: Goal) -> Needed:
    """Tasks that a difference needs.

    Raises:
        UsageError: no number of tasks shows a difference of zero.
    """
    if not _LEAST <= difference <= 1:
        raise UsageError(f"a difference of {difference:g} makes no sense", hint="0.1 is ten points of solved tasks.")
    exact = sample_size(difference, components, attempts, attempts, alpha=goal.alpha, power=goal.power).value
    normal = max(2, math.ceil(exact - 1e-9))
    if normal > _MOST_TASKS:
        raise UsageError(f"a difference of {difference:g} needs more than {_MOST_TASKS:,} tasks")
    low, high = max(2, normal - 1), normal + 8
    while _short(high, difference, attempts, components, goal):
        low, high = high, high * 2
    while low < high:
        middle = (low + high) // 2
        if _short(middle, difference, attempts, components, goal):
            low = middle + 1
        else:
            high = middle
    return Needed(attempts, normal, high)


def _short(tasks: int, difference: float, attempts: int, components: Components, goal: Goal) -> bool:
    seen = design(tasks, attempts, components, goal).student
    return seen is not None and seen > difference


def attempts_needed(difference: float, tasks: int, components: Components, goal: Goal) -> int | None:
    """Attempts that a difference needs on so many tasks; None where no number of attempts is enough.

    More attempts only wear down the spread inside tasks; what tasks differ by stays.
    """
    for attempts in range(1, _MOST_ATTEMPTS + 1):
        if not _short(tasks, difference, attempts, components, goal):
            return attempts
    return None


def affordable(
    budget: float,
    trial_dollars: float,
    components: Components,
    goal: Goal,
    *,
    attempts: Sequence[int] = ATTEMPTS,
    most_tasks: int | None = None,
) -> list[Design]:
    """Designs of two arms that a budget pays for, one for each number of attempts.

    Args:
        budget: dollars.
        trial_dollars: price of one trial.
        components: variance components.
        goal: level and power.
        attempts: numbers of attempts to look at.
        most_tasks: how many tasks there are.

    Raises:
        UsageError: a price that cannot be meant, or a budget that pays for nothing.
    """
    if not (budget > 0 and trial_dollars > 0):
        raise UsageError("budget and price of a trial must be above zero")
    if not budget / trial_dollars / 2 <= _MOST_TASKS:
        raise UsageError(f"${budget:g} at ${trial_dollars:g} a trial pays for more than {_MOST_TASKS:,} tasks")
    found = []
    for k in attempts:
        tasks = int(budget / trial_dollars / (2 * k) + 1e-9)
        tasks = min(tasks, most_tasks) if most_tasks is not None else tasks
        if tasks >= 2:
            found.append(design(tasks, k, components, goal))
    if not found:
        raise UsageError(f"${budget:g} does not pay for two tasks at ${trial_dollars:g} a trial")
    return found


def best(designs: Sequence[Design]) -> Design:
    """The design that sees the smallest difference; of equals the one with fewer trials."""
    return min(designs, key=lambda d: (d.student if d.student is not None else math.inf, d.trials))


def components_of_pilot(dataset: Path, baseline: str | None = None, treatment: str | None = None) -> Components:
    """Variance components from the reader's own pilot.

    Args:
        dataset: a dataset made by `akm-harbor collect`.
        baseline: name of the baseline arm; default as the reports guess it.
        treatment: name of the treatment arm; needed where there is more than one other arm.

    Raises:
        UsageError: the arms are not clear.
        AkmHarborError: the pilot cannot tell: fewer than two shared tasks, or no spread at all.
    """
    trials = load_trials(dataset)
    first = baseline or guess_baseline(trials)
    others = [name for name in arm_names(trials) if name != first]
    if treatment is None and len(others) != 1:
        raise UsageError(
            f"which arm is the treatment: {', '.join(others) or 'there is only ' + first}?",
            hint="Name it: --treatment ARM.",
        )
    second = treatment or others[0]
    rule = policy("keep-reward")
    scored = [by_task(select_arm(trials, name), rule) for name in (first, second)]
    common = sorted(scored[0].keys() & scored[1].keys())
    found = difference_components([scored[0][t] for t in common], [scored[1][t] for t in common])
    if isinstance(found, NotEstimable):
        raise AkmHarborError(f"this pilot tells no variance: {found.detail}", path=dataset,
                             hint="Leave --pilot out to plan with values from public runs.")  # fmt: skip
    n_trials = sum(len(side[t]) for side in scored for t in common)
    source = f"the pilot: {first} and {second}, {len(common)} tasks, {n_trials} trials"
    few = ("So few tasks tell the variance badly: plan with a margin.",) if len(common) < 20 else ()
    return Components(found.between, found.within_baseline, found.within_treatment, source, (*found.notes, *few))
