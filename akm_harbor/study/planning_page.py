"""The planning page: curves and tables, one offline HTML file and JSON."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

import akm_harbor
from akm_harbor.report.figures import SERIES, SOFT, figure, to_svg
from akm_harbor.report.page import render
from akm_harbor.report.verdict import to_plain, write_json, write_output
from akm_harbor.stats.power import Components
from akm_harbor.study.planning import ATTEMPTS, TASKS, Design, Goal, curves, table

TEMPLATES = Path(__file__).resolve().parent / "templates"
SCHEMA = "akm_harbor.plan/1"


def draw(designs: Sequence[Design], marked: Sequence[Design] = ()) -> Markup:
    """Smallest difference over tasks, one curve a number of attempts; asked-for designs as crosses."""
    with figure(6.4, 3.8) as (drawn, axes):
        last = designs[-1].tasks if designs else 1
        for number, attempts in enumerate(dict.fromkeys(d.attempts for d in designs)):
            points = [(d.tasks, 100 * d.student) for d in designs if d.attempts == attempts and d.student is not None]
            xs, ys = zip(*points, strict=True)
            style = ("-", "--", "-.", ":")[number % 4]
            label = f"{attempts} attempt{'s' * (attempts > 1)}"
            axes.plot(xs, ys, style, color=SERIES[number % len(SERIES)], label=label, linewidth=1.6)
        for one in marked:
            if one.student is not None:
                axes.plot(one.tasks, 100 * one.student, "x", color="black", markersize=8, markeredgewidth=2)
                axes.annotate(
                    f"{one.tasks} x {one.attempts}", (one.tasks, 100 * one.student), (6, 6), textcoords="offset points"
                )
        axes.set_xscale("log")
        axes.set_xlim(5, last)
        axes.set_ylim(0, min(100, max(40.0, 1.15 * max((100 * (d.student or 0) for d in marked), default=0))))
        ticks = (5, 10, 20, 50, 100, 200, 500, 1000)
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
        axes.minorticks_off()
        axes.grid(color=SOFT, alpha=0.25, linewidth=0.6)
        axes.set_xlabel("tasks (log scale)")
        axes.set_ylabel("smallest detectable difference, points")
        axes.legend(title="of each task by each arm", loc="upper right")
        return to_svg(
            drawn, "Smallest detectable difference", "Curves over the number of tasks, one a number of attempts."
        )


def document(components: Components, goal: Goal, marked: Sequence[Design] = ()) -> dict[str, Any]:
    """The plan as plain data: variance, table, curves, and the designs asked for."""
    return {
        "schema": SCHEMA,
        "package_version": akm_harbor.__version__,
        "goal": to_plain(goal),
        "components": to_plain(components),
        "asked": _rows(marked),
        "table": _rows(table(components, goal)),
        "curves": _rows(curves(components, goal)),
    }


def _rows(designs: Sequence[Design]) -> list[dict[str, Any]]:
    return [{**to_plain(one), "trials": one.trials} for one in designs]


def write_plan(
    out: Path, components: Components, goal: Goal, lines: Sequence[str], marked: Sequence[Design] = ()
) -> Path:
    """Write `plan.html` and `plan.json`; returns the page.

    Args:
        out: the folder.
        components: variance components.
        goal: level and power.
        lines: the answers, as the terminal shows them.
        marked: designs to mark on the curves.

    Raises:
        AkmHarborError: the place cannot be written.
    """
    cells = {(d.tasks, d.attempts): d for d in table(components, goal)}
    context = {
        "title": "Planning an A/B study",
        "version": akm_harbor.__version__,
        "lines": lines,
        "components": components,
        "goal": goal,
        "tasks": TASKS,
        "attempts": ATTEMPTS,
        "cells": cells,
        "drawn": draw(curves(components, goal), marked),
    }
    page = out / "plan.html"
    write_output(page, render("plan.html.j2", context, TEMPLATES))
    write_json(out / "plan.json", document(components, goal, marked))
    return page
