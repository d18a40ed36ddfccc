"""`akm-harbor plan`: tasks and attempts for an effect, or the effect that a budget can see."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from akm_harbor.cli.say import say

if TYPE_CHECKING:
    from akm_harbor.stats.power import Components
    from akm_harbor.study.planning import Design, Goal


def plan(
    difference: Annotated[
        float | None, typer.Option("--difference", "-d", help="A difference to see, 0.1 is ten points.")
    ] = None,
    tasks: Annotated[int | None, typer.Option("--tasks", "-n", min=2, max=1_000_000, help="Tasks there are.")] = None,
    attempts: Annotated[
        list[int] | None, typer.Option("--attempts", "-k", min=1, help="Attempts of each task by each arm; may repeat.")
    ] = None,
    study: Annotated[str | None, typer.Option("--study", help="Take tasks and attempts of a declared study.")] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Dollars, together with --trial-cost.")] = None,
    trial_cost: Annotated[
        float | None, typer.Option("--trial-cost", help="Dollars of one trial; `arms cost` tells it.")
    ] = None,
    pilot: Annotated[
        Path | None, typer.Option("--pilot", help="A pilot's dataset, for its variance; default: that of public runs.")
    ] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", "-b", help="The pilot's baseline arm.")] = None,
    treatment: Annotated[str | None, typer.Option("--treatment", "-t", help="The pilot's treatment arm.")] = None,
    power: Annotated[float, typer.Option(help="How often a true difference is to be seen.")] = 0.8,
    alpha: Annotated[float, typer.Option(help="Two-sided level of the test.")] = 0.05,
    out: Annotated[
        Path | None, typer.Option("--output", "--out", "-o", help="Folder for plan.html with curves, and plan.json.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Plan the size of a study before it runs.

    Without options: a table of the smallest detectable difference by tasks and attempts.

    Example: `akm-harbor plan --difference 0.1 --attempts 3`
    """
    import json

    from akm_harbor.errors import UsageError
    from akm_harbor.stats.power import REFERENCE
    from akm_harbor.study.planning import ATTEMPTS, Goal, components_of_pilot
    from akm_harbor.study.planning_page import document, write_plan

    if pilot is None and (baseline or treatment):
        raise UsageError("--baseline and --treatment name arms of a pilot", hint="Give --pilot DATASET.")
    if (budget is None) != (trial_cost is None):
        raise UsageError("--budget and --trial-cost go together")
    goal = Goal(alpha, power)
    components = components_of_pilot(pilot, baseline, treatment) if pilot is not None else REFERENCE
    if study is not None:
        tasks, attempts = _of_study(study, tasks, attempts)
    ks = tuple(attempts or ATTEMPTS)
    money = (budget, trial_cost) if budget is not None and trial_cost is not None else None
    lines, marked = _answers(components, goal, difference, tasks, ks, money)
    if as_json:
        say(json.dumps(document(components, goal, marked), indent=2, allow_nan=False))
    else:
        say("\n".join([*_variance(components, goal), *(lines or _tables(components, goal, ks))]))
    if out is not None:
        page = write_plan(out, components, goal, lines, marked)
        say(f"page: {page}", err=True)


def _of_study(name: str, tasks: int | None, attempts: list[int] | None) -> tuple[int, list[int]]:
    from akm_harbor.errors import UsageError
    from akm_harbor.study.declaration import find_study
    from akm_harbor.study.render import count_tasks

    declared = find_study(name)
    n = tasks or count_tasks(declared)
    if n is None:
        raise UsageError(f"nothing tells how many tasks {declared.dataset} has", hint="Give --tasks N.")
    return n, attempts or [declared.attempts]


def _variance(components: "Components", goal: "Goal") -> list[str]:
    inside = f"{components.within_baseline:.4f} and {components.within_treatment:.4f}"
    return [
        f"A paired two-sided test at {goal.alpha:g}, to see a true difference {goal.power:.0%} of the time.",
        f"Variance: between tasks {components.between:.4f}; of one attempt inside a task {inside}.",
        f"  from {components.source}",
        *(f"  {note}" for note in components.notes),
        "",
    ]


def _points(value: float | None) -> str:
    return "no number of" if value is None else f"{100 * value:.1f}"


def _attempts(k: int) -> str:
    return f"{k} attempt{'s' * (k > 1)}"


def _sees(one: "Design") -> str:
    return f"sees {_points(one.student)} points (normal formula {_points(one.normal)})"


def _answers(
    components: "Components",
    goal: "Goal",
    difference: float | None,
    tasks: int | None,
    ks: Sequence[int],
    money: tuple[float, float] | None,
) -> tuple[list[str], list["Design"]]:
    """The question's answer as lines, and the designs it names; nothing for no question."""
    from akm_harbor.study.planning import affordable, best, design, tasks_needed

    if money is not None:
        bought = affordable(*money, components, goal, attempts=ks, most_tasks=tasks)
        found = best(bought)
        head = f"${money[0]:g} at ${money[1]:g} a trial"
        lines = [f"{head}: {one.tasks} tasks x {one.attempts} x 2 arms {_sees(one)}" for one in bought]
        return [*lines, f"Best of these: {found.tasks} tasks with {_attempts(found.attempts)}."], [found]
    if difference is not None and tasks is not None:
        return _attempts_for(difference, tasks, components, goal)
    if difference is not None:
        needs = [tasks_needed(difference, k, components, goal) for k in ks]
        designs = [design(need.student, need.attempts, components, goal) for need in needs]
        return [
            f"{100 * difference:g} points with {_attempts(need.attempts)}: {need.student:,} tasks, "
            f"{one.trials:,} trials (normal formula {need.normal:,} tasks)"
            for need, one in zip(needs, designs, strict=True)
        ], designs
    if tasks is not None:
        designs = [design(tasks, k, components, goal) for k in ks]
        return [
            f"{d.tasks} tasks with {_attempts(d.attempts)}, {d.trials:,} trials: {_sees(d)}" for d in designs
        ], designs
    return [], []


def _attempts_for(
    difference: float, tasks: int, components: "Components", goal: "Goal"
) -> tuple[list[str], list["Design"]]:
    from akm_harbor.study.planning import attempts_needed, design

    aim = f"{100 * difference:g} points on {tasks} tasks"
    k = attempts_needed(difference, tasks, components, goal)
    if k is None:
        endless = _points(design(tasks, 10**6, components, goal).student)
        return [f"{aim}: no number of attempts is enough; endless ones would see {endless} points."], []
    found = design(tasks, k, components, goal)
    return [f"{aim}: {_attempts(k)} by each arm, {found.trials:,} trials"], [found]


def _tables(components: "Components", goal: "Goal", ks: Sequence[int]) -> list[str]:
    """The smallest differences by tasks and attempts, by both formulas."""
    from akm_harbor.study.planning import TASKS, design

    lines: list[str] = []
    for name, title in (("normal", "normal formula"), ("student", "t distribution, as the report tests")):
        lines += [
            f"Smallest detectable difference, {title}:",
            "tasks".rjust(7) + "".join(f"k={k}".rjust(8) for k in ks),
        ]
        for n in TASKS:
            values = [getattr(design(n, k, components, goal), name) for k in ks]
            lines.append(f"{n:>7}" + "".join((f"{v:.3f}"[1:] if v < 1 else f"{v:.2f}").rjust(8) for v in values))
        lines.append("")
    return lines[:-1]
