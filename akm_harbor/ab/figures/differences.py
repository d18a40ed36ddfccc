"""Figures of the difference: by error policy, by task, by family."""

import math
from collections.abc import Sequence

from markupsafe import Markup

from akm_harbor.ab.result import AbResult
from akm_harbor.ab.words import points
from akm_harbor.report.figures import BASELINE, INK, LINE, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.text import short
from akm_harbor.stats.results import Estimate, Interval, Result

_MOST_ROWS = 40


def _interval(result: Result | None) -> Interval | None:
    return result.interval if isinstance(result, Estimate) else None


def _limit(values: Sequence[float]) -> float:
    """A symmetric axis limit in points, a multiple of ten, at most 100."""
    reach = max((abs(v) for v in values), default=0.1)
    return min(max(math.ceil(reach * 11) * 10, 10), 100)


def policy_forest(r: AbResult) -> Markup:
    """The difference under every way of counting errors, with bounds, beside what the run could see."""
    rows: list[tuple[str, float | None, tuple[float, float] | None, str]] = []
    for row in r.policies:
        inside = _interval(row.difference)
        limits = (inside.low, inside.high) if inside else None
        rows.append((row.policy, row.difference.value, limits, "headline" if row.headline else "policy"))
    fixed = _interval(r.fixed_tasks)
    if fixed:
        rows.append(("exactly these tasks", r.fixed_tasks.value, (fixed.low, fixed.high), "policy"))
    for bound in r.bounds:
        if bound.bounds.n_missing:
            title = {"attempts without a valid reward": "no reward", "attempts with any error": "any error"}
            name = f"bounds: {title.get(bound.title, 'tasks missing')}"
            rows.append((name, None, (bound.bounds.worst, bound.bounds.best), "bounds"))
    seen = [v for _, value, limits, _ in rows for v in (value, *(limits or ())) if v is not None]
    limit = _limit(seen)
    with figure(5.6, 0.75 + 0.3 * len(rows)) as (drawn, axes):
        mde = r.planning.mde
        if isinstance(mde, Estimate):
            half = min(100 * mde.value, limit)
            axes.axvspan(-half, half, color="#eef1f4", zorder=0, lw=0)
        axes.axvline(0, color=SOFT, lw=1)
        for y, (_, value, limits, kind) in enumerate(reversed(rows)):
            colour = {"headline": TREATMENT, "policy": INK, "bounds": SOFT}[kind]
            if limits:
                low, high = (max(min(100 * v, limit), -limit) for v in limits)
                axes.plot(
                    [low, high],
                    [y, y],
                    color=colour,
                    lw=5 if kind == "bounds" else 2,
                    alpha=0.5 if kind == "bounds" else 1,
                )
            if value is not None:
                axes.plot(
                    100 * value, y, "D" if kind == "headline" else "o", color=colour, ms=8 if kind == "headline" else 5
                )
        axes.set_yticks(range(len(rows)), [name for name, *_ in reversed(rows)])
        axes.set_xlim(-limit, limit)
        axes.set_ylim(-0.6, len(rows) - 0.4)
        axes.set_xlabel("points (right: treatment better)")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        return to_svg(drawn, "Difference by error policy", "; ".join(f"{n}: {points(v)}" for n, v, *_ in rows))


def task_forest(r: AbResult) -> Markup | None:
    """The difference task by task; tied tasks are left out where there are many."""
    paired = [t for t in r.tasks if t.difference is not None]
    moved = [t for t in paired if abs(t.difference or 0.0) > 1e-12]
    shown = paired if len(paired) <= _MOST_ROWS else moved
    if len(shown) > 2 * _MOST_ROWS:
        shown = [*shown[:_MOST_ROWS], *shown[-_MOST_ROWS:]]
    if not shown:
        return None
    with figure(5.6, 0.95 + 0.22 * (len(shown) + 1)) as (drawn, axes):
        axes.axvline(0, color=SOFT, lw=1)
        for y, task in enumerate(reversed(shown), start=1):
            inside = _interval(task.interval)
            if inside:
                axes.plot([100 * inside.low, 100 * inside.high], [y, y], color=SOFT, lw=1)
            value = 100 * (task.difference or 0.0)
            up, down = value > 1e-9, value < -1e-9
            axes.plot(
                value,
                y,
                ">" if up else "<" if down else "o",
                color=TREATMENT if up else BASELINE if down else SOFT,
                ms=6,
            )
        _summary(axes, r)
        axes.set_yticks(range(len(shown) + 1), ["all tasks", *(short(t.task, 34) for t in reversed(shown))])
        axes.set_xlim(-104, 104)
        axes.set_ylim(-0.7, len(shown) + 0.7)
        axes.set_xlabel("points (right: treatment better)")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        return to_svg(drawn, "Difference by task", "; ".join(f"{t.task}: {points(t.difference)}" for t in shown[:60]))


def family_forest(r: AbResult) -> Markup:
    """The difference by corpus family."""
    rows = list(reversed(r.families))
    with figure(5.6, 0.9 + 0.28 * (len(rows) + 1)) as (drawn, axes):
        axes.axvline(0, color=SOFT, lw=1)
        for y, row in enumerate(rows, start=1):
            inside = _interval(row.difference)
            if inside:
                low, high = (max(min(100 * v, 100), -100) for v in (inside.low, inside.high))
                axes.plot([low, high], [y, y], color=INK, lw=1.6)
            axes.plot(100 * (row.difference.value or 0.0), y, "s", color=INK, ms=5)
        _summary(axes, r)
        labels = [f"{short(row.family, 34)} ({row.n_tasks})" for row in rows]
        axes.set_yticks(range(len(rows) + 1), ["all tasks", *labels])
        axes.set_xlim(-104, 104)
        axes.set_ylim(-0.7, len(rows) + 0.7)
        axes.set_xlabel("points (right: treatment better)")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        said = "; ".join(f"{row.family}: {points(row.difference.value)}" for row in r.families)
        return to_svg(drawn, "Difference by family", said)


def _summary(axes: object, r: AbResult) -> None:
    """The headline's diamond, as wide as its interval."""
    value, inside = r.headline.difference.value, _interval(r.headline.difference)
    if value is None:
        return
    low, high = (inside.low, inside.high) if inside else (value, value)
    xs = [100 * v for v in (max(low, -1.0), value, min(high, 1.0), value)]
    axes.fill(xs, [0, 0.32, 0, -0.32], color=TREATMENT, zorder=3)  # type: ignore[attr-defined]
