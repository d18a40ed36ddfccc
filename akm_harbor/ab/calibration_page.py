"""A calibration for people: sentences, two figures, one offline page and its sections."""

import json
from pathlib import Path
from typing import Any

from markupsafe import Markup

import akm_harbor
from akm_harbor.ab import words
from akm_harbor.ab.calibration import CLASSES, Calibration, Class, Task, chance_to_miss
from akm_harbor.ab.composition import Composition
from akm_harbor.ab.verdict import level_text
from akm_harbor.report.figures import BASELINE, INK, LINE, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.page import render
from akm_harbor.report.text import short
from akm_harbor.stats.results import Estimate, Interval, Result

TEMPLATES = Path(__file__).resolve().parent / "templates"
SECTIONS = ("tasks", "groups", "composition", "method", "provenance")
GROUPING_TITLES = {
    "domain": "domain",
    "knowledge": "who can know the answer",
    "shape": "shape of the task",
    "slice": "slice",
    "family": "family (tasks that test the same rule)",
}
_LOOK: dict[Class, tuple[str, str]] = {
    "discriminating": ("D", TREATMENT),
    "guessable": ("^", "#8a4f9e"),
    "saturated": ("s", BASELINE),
    "unknown": ("o", SOFT),
}
_MOST_ROWS = 120
_Row = tuple[str, float | None, tuple[float, float] | None, str]


def render_calibration(result: Calibration) -> str:
    """The whole page as one HTML file that loads nothing."""
    return render("calibration.html.j2", _context(result), TEMPLATES)


def render_section(result: Calibration, name: str) -> str:
    """One section as an HTML fragment with its own style, for a notebook cell.

    Args:
        result: from `calibrate`.
        name: `headline` or one of `SECTIONS`.
    """
    return render("calibration_section.html.j2", {**_context(result), "section": name}, TEMPLATES)


def _context(result: Calibration) -> dict[str, Any]:
    return {
        "title": f"Corpus calibration: {result.baseline}",
        "version": akm_harbor.__version__,
        "r": result,
        "words": words,
        "sections": SECTIONS,
        "classes": CLASSES,
        "grouping_titles": GROUPING_TITLES,
        "style": "good" if result.verdicts["discriminating"] else "warn",
        "outcome": outcome(result),
        "reach": reach(result),
        "composition_sentence": composition_sentence(result),
        "level": level_text(result.options.level),
        "missed": chance_to_miss(result.lines.low, result.attempts[0]),
        "span": span,
        "labels": labels(result),
        "task_figure": task_figure(result),
        "composition_figure": composition_figure,
        "manifest": json.dumps(result.manifest, indent=2, ensure_ascii=False),
    }


def outcome(r: Calibration) -> str:
    """How many tasks are what."""
    n = len(r.tasks)
    parts = [f"{r.verdicts[c]} {c}" for c in CLASSES if r.verdicts[c]]
    return f"Of {words.plural(n, 'task')}: {', '.join(parts)}."


def reach(r: Calibration) -> str:
    """What the number of attempts could have told at all."""
    few, many = r.attempts
    k = f"{few}" if few == many else f"{few} to {many}"
    start = f"The control has {k} counting attempts a task; {words.plural(r.lines.to_clear, 'attempt')} without a pass "
    start += f"call a task discriminating, {r.lines.to_saturate} without a failure call it saturated."
    if many >= min(r.lines.to_clear, r.lines.to_saturate):
        return start
    return f"{start} With fewer, nothing can be cleared: every task that is not surely guessable stays unknown."


def composition_sentence(r: Calibration) -> str:
    """How far the headline moves with the mix of tasks."""
    if r.treatment is None or r.headline is None:
        return "No treatment arm was named, so there is no headline to take apart."
    if not r.compositions:
        return "The dataset says nothing of these tasks' kinds, so the headline cannot be taken apart."
    # a kind with one task differs by that task's luck: kinds of several tasks come first
    widest = max(r.compositions, key=lambda c: (min(p.n_tasks for p in c.parts) > 1, c.any_mix[1] - c.any_mix[0]))
    low, high = widest.any_mix
    return (
        f"{r.treatment} against {r.baseline}: {words.points(r.headline.value)} points on these tasks. By "
        f"{GROUPING_TITLES[widest.grouping]}, the kinds differ most: another mix of the same kinds gives anything "
        f"from {words.points(low)} to {words.points(high)} points, equal weights {words.points(widest.equal.value)}."
    )


def labels(r: Calibration) -> dict[str, str]:
    """Task -> its name without what stands before the last slash, where that is still unique."""
    ends = {t.task: t.task.rpartition("/")[2] for t in r.tasks}
    return ends if len(set(ends.values())) == len(ends) else {t: t for t in ends}


def summary(r: Calibration) -> str:
    """The result as a few lines for a terminal."""
    rows = [outcome(r), reach(r), composition_sentence(r)]
    for c in r.compositions:
        left = f"; leaving one out {_between(c.left_out)}" if c.left_out else ""
        rows.append(
            f"  by {c.grouping}: headline {words.points(c.headline.value)}, equal weights "
            f"{words.points(c.equal.value)}, any mix {_between(c.any_mix)}{left}"
        )
    return "\n".join(rows)


def _between(ends: tuple[float, float]) -> str:
    return f"{words.points(ends[0])} to {words.points(ends[1])}"


def span(result: Result) -> str:
    """An interval of a rate, in percent."""
    inside = _interval(result)
    if inside is None:
        return "not estimable"
    return f"{100 * max(inside.low, 0):.0f}–{100 * min(inside.high, 1):.0f}%"  # noqa: RUF001


def _interval(result: Result) -> Interval | None:
    return result.interval if isinstance(result, Estimate) else None


def task_figure(r: Calibration) -> Markup | None:
    """Every task's pass rate with its interval, between the two lines; marks tell the verdicts apart."""
    shown = [t for t in r.tasks if _interval(t.rate)]
    if len(shown) > _MOST_ROWS:
        shown = shown[:: len(shown) // _MOST_ROWS + 1]
    if not shown:
        return None
    with figure(5.6, 1.25 + 0.21 * len(shown)) as (drawn, axes):
        axes.axvspan(0, 100 * r.lines.low, color="#e6eff6", lw=0)
        axes.axvspan(100 * r.lines.high, 100, color="#f8eee3", lw=0)
        for y, task in enumerate(reversed(shown)):
            _draw(axes, y, task)
        for verdict, (mark, colour) in _LOOK.items():
            if any(t.verdict == verdict for t in shown):
                axes.plot([], [], mark, color=colour, ms=6, label=verdict)
        names = labels(r)
        axes.set_yticks(range(len(shown)), [short(names[t.task], 34) for t in reversed(shown)], fontsize=9)
        axes.set_ylim(-0.7, len(shown) - 0.3)
        axes.set_xlim(-2, 102)
        axes.set_xlabel(f"pass rate of {short(r.baseline, 30)}, percent", color=INK)
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        drawn.legend(loc="outside upper right", ncols=4, fontsize=9, columnspacing=1, handlelength=1, borderaxespad=0.2)
        said = "; ".join(f"{t.task}: {t.verdict}, {span(t.rate)}" for t in shown)
        return to_svg(drawn, "Pass rate of the control by task", said)


def _draw(axes: Any, y: int, task: Task) -> None:
    inside, (mark, colour) = _interval(task.rate), _LOOK[task.verdict]
    if inside is not None:
        axes.plot([100 * inside.low, 100 * inside.high], [y, y], color=colour, lw=1.4)
    axes.plot(100 * (task.rate.value or 0.0), y, mark, color=colour, ms=5.5, clip_on=False)


def composition_figure(r: Calibration, c: Composition) -> Markup:
    """The difference by kind, beside the headline and its reweightings."""
    rows: list[_Row] = [
        (f"{short(p.name, 26)} ({p.n_tasks})", p.difference.value, _ends(p.difference), "part") for p in c.parts
    ]
    rows.append(("headline: by number of tasks", c.headline.value, _ends(c.headline), "whole"))
    rows.append(("equal weight for every kind", c.equal.value, _ends(c.equal), "whole"))
    rows.append(("any mix of these kinds", None, c.any_mix, "range"))
    if c.left_out:
        rows.append(("one kind left out", None, c.left_out, "range"))
    with figure(5.6, 0.85 + 0.28 * len(rows)) as (drawn, axes):
        axes.axvline(0, color=SOFT, lw=1)
        for y, (_, value, ends, kind) in enumerate(reversed(rows)):
            colour, width, size = {"part": (INK, 1.3, 5), "whole": (TREATMENT, 2, 6), "range": (SOFT, 5, 0)}[kind]
            if ends is not None:
                shown = [100 * max(ends[0], -1.0), 100 * min(ends[1], 1.0)]
                alpha = 0.5 if kind == "range" else 1
                axes.plot(shown, [y, y], color=colour, lw=width, alpha=alpha, solid_capstyle="butt")
            if value is not None:
                axes.plot(100 * value, y, "D" if kind == "whole" else "o", color=colour, ms=size)
        axes.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlim(-102, 102)
        axes.set_xlabel("difference, percentage points (right: treatment better)")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        said = "; ".join(f"{n}: {words.points(v) if v is not None else _between(e or (0, 0))}" for n, v, e, _ in rows)
        return to_svg(drawn, f"Headline of {short(str(r.treatment), 40)} by {c.grouping}", said)


def _ends(result: Result) -> tuple[float, float] | None:
    inside = _interval(result)
    return None if inside is None else (inside.low, inside.high)
