"""Figures of what an attempt takes: cost against reward, time by phase."""

import math
from typing import Any

from markupsafe import Markup

from akm_harbor.ab.result import AbResult, Attempt, TaskRow, UsageRow
from akm_harbor.ab.words import points
from akm_harbor.report.figures import BASELINE, INK, LINE, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.text import short
from akm_harbor.stats.results import Estimate

_AMOUNTS = (("cost_usd", "cost"), ("input_tokens", "input tokens"), ("agent_seconds", "agent time"))
_USAGE = {"cost_usd": "cost_usd", "input_tokens": "n_input_tokens", "agent_seconds": "agent_seconds"}
"""An attempt's amount -> the row of the usage table that holds its ratio."""


def cost_and_reward(r: AbResult) -> Markup | None:
    """What each task's change in reward cost; tokens or time where no cost is known."""
    for name, label in _AMOUNTS:
        pairs = [(x, t) for t in r.tasks if t.difference is not None and (x := _ratio(t, name)) is not None]
        if len(pairs) >= 3:
            return _cost_and_reward(r, pairs, label, next((u for u in r.usage if u.name == _USAGE[name]), None))
    return None


def _ratio(task: TaskRow, name: str) -> float | None:
    """Treatment's mean amount over the baseline's on one task."""
    means = [_mean_known(list(side), name) for side in (task.baseline, task.treatment)]
    return means[1] / means[0] if min(means) > 0 else None


def _all_tasks(axes: Any, r: AbResult, bill: UsageRow | None) -> None:
    """The whole comparison as a diamond with both intervals."""
    y, x = r.headline.difference, bill.ratio if bill else None
    if x is None or x.value is None or y.value is None or x.value <= 0:
        return
    if isinstance(y, Estimate) and y.interval:
        ends = [100 * max(y.interval.low, -1.0), 100 * min(y.interval.high, 1.0)]
        axes.plot([x.value] * 2, ends, color=INK, lw=1.4)
    if isinstance(x, Estimate) and x.interval and x.interval.low > 0:
        axes.plot([x.interval.low, x.interval.high], [100 * y.value] * 2, color=INK, lw=1.4)
    axes.plot(x.value, 100 * y.value, "D", color=INK, ms=7, mec="white", mew=0.8)


def _cost_and_reward(r: AbResult, pairs: list[tuple[float, TaskRow]], label: str, bill: UsageRow | None) -> Markup:
    with figure(5.6, 3.4) as (drawn, axes):
        axes.axhline(0, color=SOFT, lw=1)
        axes.axvline(1, color=SOFT, lw=1)
        for x, task in pairs:
            y = 100 * (task.difference or 0.0)
            mark, colour = ("^", TREATMENT) if y > 1e-9 else ("v", BASELINE) if y < -1e-9 else ("o", SOFT)
            axes.plot(x, y, mark, color=colour, ms=7, alpha=0.7, mec="white", mew=0.5)
        _all_tasks(axes, r, bill)
        axes.set_xscale("log")
        reach = max(1.25, *(max(x, 1 / x) for x, _ in pairs)) * 1.1
        axes.set_xlim(1 / reach, reach)
        near = (0.8, 1, 1.25) if reach < 3 else (1,)
        ticks = [t for t in (0.1, 0.2, 0.5, *near, 2, 5, 10) if 1 / reach <= t <= reach]
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.set_xticks([], minor=True)
        axes.set_ylim(-108, 108)
        axes.set_xlabel(f"{label}, treatment to baseline")
        axes.set_ylabel("difference in reward, points")
        axes.grid(color=LINE, lw=0.6)
        said = "; ".join(f"{t.task}: {x:.2f} times, {points(t.difference)}" for x, t in pairs[:60])
        return to_svg(drawn, f"Reward against {label}", said)


_PHASES = (
    ("environment_seconds", "environment set-up", "#c8d3dc", ""),
    ("setup_seconds", "agent set-up", "#7fa7c4", "//"),
    ("agent_seconds", "agent", "#005b94", ""),
    ("verifier_seconds", "verifier", "#e0a458", ".."),
)


def _groups(r: AbResult) -> list[tuple[str, list[Attempt]]]:
    """Attempts by arm and by whether they were solved."""
    out = []
    for name, side in ((r.baseline.name, "baseline"), (r.treatment.name, "treatment")):
        attempts = [a for t in r.tasks for a in _side(t, side)]
        for label, keep in (("solved", True), ("not solved", False)):
            chosen = [a for a in attempts if a.score is not None and (a.score >= 1) is keep]
            if chosen:
                out.append((f"{short(name, 22)}, {label} ({len(chosen)})", chosen))
    return out


def _side(task: TaskRow, side: str) -> tuple[Attempt, ...]:
    return task.baseline if side == "baseline" else task.treatment


def phase_times(r: AbResult) -> Markup | None:
    """Mean seconds by phase, for solved and unsolved attempts of both arms."""
    groups = _groups(r)
    means = [[_mean_known(attempts, phase) for phase, *_ in _PHASES] for _, attempts in groups]
    if not any(m for row in means for m in row):
        return None
    with figure(5.6, 1.1 + 0.4 * len(groups)) as (drawn, axes):
        for index, (_, label, colour, hatch) in enumerate(_PHASES):
            lefts = [sum(row[:index]) for row in means]
            widths = [row[index] for row in means]
            axes.barh(
                range(len(groups)),
                widths,
                left=lefts,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                label=label,
                height=0.62,
            )
        axes.set_yticks(range(len(groups)), [label for label, _ in groups])
        axes.invert_yaxis()
        axes.set_xlabel("mean seconds an attempt")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        axes.legend(ncols=2, loc="upper center", bbox_to_anchor=(0.4, -0.28 - 0.1 / max(len(groups), 1)), fontsize=8.5)
        described = "; ".join(f"{n}: {sum(m):.1f} s" for (n, _), m in zip(groups, means, strict=True))
        return to_svg(drawn, "Time by phase and reward", described)


def _mean_known(attempts: list[Attempt], phase: str) -> float:
    known = [v for a in attempts if (v := getattr(a, phase)) is not None]
    return math.fsum(known) / len(known) if known else 0.0
