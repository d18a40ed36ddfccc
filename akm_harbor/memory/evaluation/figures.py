"""The figures of a memory report; floor and ceiling stand on every chart of scores."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from akm_harbor.memory.evaluation.accuracy import ALL, CEILING, FLOOR, Score
from akm_harbor.memory.evaluation.analysis import MemoryResult, PanelResult
from akm_harbor.memory.evaluation.simulate import CHOSEN, CR1, NAIVE, Coverage
from akm_harbor.report.figures import INK, LINE, SERIES, SOFT, figure, to_svg
from akm_harbor.report.text import short
from akm_harbor.stats.results import Estimate, Result

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDTH = 5.6
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")


def _style(arms: Sequence[str], arm: str) -> dict[str, Any]:
    place = list(arms).index(arm)
    return {"color": SERIES[place % len(SERIES)], "marker": _MARKERS[place % len(_MARKERS)]}


def _compared(panel: PanelResult) -> list[str]:
    return [arm for arm in panel.arms if arm not in (FLOOR, CEILING)]


def _interval(result: Result) -> tuple[float, float] | None:
    if isinstance(result, Estimate) and result.interval is not None:
        return result.interval.low, result.interval.high
    return None


def _ends(
    axes: "Axes", floor: float | None, ceiling: float | None, *, vertical: bool = False, named: bool = True
) -> None:
    """Dashed line of the ceiling, dotted line of the floor."""
    draw = axes.axvline if vertical else axes.axhline
    for value, dashes, name in ((ceiling, (0, (6, 3)), "oracle"), (floor, (0, (1, 2)), "no memory")):
        if value is None:
            continue
        draw(value, color=SOFT, lw=1.1, ls=dashes, zorder=1)
        if named:
            place = (value, 1.0) if vertical else (1.01, value)
            coordinates = ("data", "axes fraction") if vertical else ("axes fraction", "data")
            axes.annotate(
                f"{name}{' ' if vertical else chr(10)}{value:.2f}", place, xycoords=coordinates, fontsize=8, color=SOFT,
                xytext=(0, 2 if vertical else 0), textcoords="offset points", ha="center" if vertical else "left",
                va="bottom" if vertical else "center", linespacing=1.1,
            )  # fmt: skip


def overall(panel: PanelResult) -> Markup:
    """Accuracy of every arm with its interval, floor and ceiling as lines."""
    rows = [s for s in panel.overall() if s.value.value is not None]
    with figure(_WIDTH, 0.9 + 0.34 * len(rows)) as (drawn, axes):
        for place, row in enumerate(reversed(rows)):
            assert row.value.value is not None
            inside = _interval(row.value)
            if inside:
                axes.plot(inside, (place, place), color=INK, lw=1.4, solid_capstyle="butt")
            axes.plot(row.value.value, place, ms=6, ls="", **_style(panel.palette, row.arm))
        axes.set_yticks(range(len(rows)), [_named(r, panel) for r in reversed(rows)])
        _ends(axes, panel.floor, panel.ceiling, vertical=True)
        if panel.audit is not None:
            axes.axvline(panel.audit.ceiling, color="#9c2a00", lw=1.1, ls=(0, (3, 1, 1, 1)))
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.6, len(rows) - 0.2)
        axes.set_xlabel("mean score")
        said = "; ".join(f"{_named(r, panel)} {r.value.value:.3f}" for r in rows)
        return to_svg(drawn, f"Accuracy, panel {panel.panel.number}", said)


def _named(score: Score, panel: PanelResult) -> str:
    budget = "" if len(panel.budgets) == 1 else ", as is" if score.budget is None else f", {score.budget:,} tokens"
    return f"{short(score.arm, 38)}{budget}"


def by_type(panel: PanelResult, budget: int | None) -> Markup:
    """Accuracy by question type; floor and ceiling of each type as marks."""
    types = panel.types
    arms = _compared(panel)
    table = {(s.arm, s.group): s for s in panel.scores if s.budget == budget}
    with figure(_WIDTH, 0.8 + (0.2 + 0.17 * max(len(arms), 1)) * len(types)) as (drawn, axes):
        step = 0.8 / max(len(arms), 1)
        for place, name in enumerate(reversed(types)):
            for value, dashes in (
                (panel.reference(CEILING, name), (0, (6, 3))),
                (panel.reference(FLOOR, name), (0, (1, 2))),
            ):
                if value is not None:
                    axes.plot((value, value), (place - 0.45, place + 0.45), color=SOFT, lw=1.2, ls=dashes)
            for i, arm in enumerate(arms):
                score = table.get((arm, name))
                if score is None or score.value.value is None:
                    continue
                at = place + 0.4 - step * (i + 0.5)
                inside = _interval(score.value)
                style = _style(panel.palette, arm)
                if inside:
                    low, high = max(inside[0], 0), min(inside[1], 1)
                    axes.plot((low, high), (at, at), color=style["color"], lw=1.1)
                axes.plot(score.value.value, at, ls="", ms=4.5, label=short(arm, 30) if place == 0 else None, **style)
        counts = {s.group: s.n for s in panel.scores if s.arm == arms[0] and s.budget == budget} if arms else {}
        axes.set_yticks(range(len(types)), [f"{short(t, 28)} ({counts.get(t, 0)})" for t in reversed(types)])
        axes.set_xlim(-0.02, 1.02)
        axes.set_ylim(-0.6, len(types) - 0.4)
        axes.set_xlabel("mean score")
        if axes.get_legend_handles_labels()[0]:
            drawn.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(
            f"{arm}, {group}: {s.value.value:.3f}"
            for (arm, group), s in table.items()
            if group != ALL and s.value.value is not None
        )
        return to_svg(drawn, f"Accuracy by type, panel {panel.panel.number}, {budget or 'as is'}", said)


def against(panel: PanelResult, what: str) -> Markup | None:
    """Accuracy against `ctx_tokens` or `usd`, one line an arm over its budgets; None where nothing is known."""
    unit = 1000.0 if what == "usd" else 1.0
    points = [
        (s, float(getattr(s, what)) * unit)
        for s in panel.overall()
        if getattr(s, what) is not None and s.value.value is not None and s.arm not in (FLOOR, CEILING)
    ]
    if not points:
        return None
    with figure(_WIDTH, 3.4) as (drawn, axes):
        for arm in _compared(panel):
            mine = sorted(((x, s) for s, x in points if s.arm == arm), key=lambda pair: pair[0])
            if not mine:
                continue
            style = _style(panel.palette, arm)
            axes.plot(
                [x for x, _ in mine],
                [s.value.value or 0.0 for _, s in mine],
                ls="-",
                lw=1,
                ms=6,
                label=short(arm, 30),
                **style,
            )
            for x, score in mine:
                inside = _interval(score.value)
                if inside:
                    axes.plot((x, x), inside, color=style["color"], lw=1, alpha=0.7)
        values = [x for _, x in points]
        if min(values) > 0 and max(values) / min(values) > 8:
            axes.set_xscale("log")
            _plain_log(axes, values)
        else:
            axes.set_xlim(0, 1.05 * max(values) or 1)
        _ends(axes, panel.floor, panel.ceiling)
        axes.set_ylim(-0.02, 1.05)
        axes.set_ylabel("mean score")
        axes.set_xlabel("tokens of context, mean" if what == "ctx_tokens" else "US$ for 1,000 questions, reader only")
        axes.grid(visible=True, axis="y", color=LINE, lw=0.6)
        drawn.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(f"{s.arm}: {x:g} and {s.value.value:.3f}" for s, x in points)
        return to_svg(drawn, f"Accuracy against {what}, panel {panel.panel.number}", said)


def _plain_log(axes: "Axes", values: Sequence[float]) -> None:
    """Labels at 1, 2 and 5 times powers of ten, as plain numbers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    steps = (1, 2, 5) if high - low <= 2 else (1,)
    ticks = [digit * 10.0**power for power in range(low, high + 1) for digit in steps]
    axes.xaxis.set_major_locator(FixedLocator([t for t in ticks if min(values) / 1.5 <= t <= max(values) * 1.5]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def differences(panel: PanelResult) -> Markup | None:
    """Paired differences from the baseline; where floor and ceiling lie is drawn too."""
    rows = [d for d in panel.differences if d.group == ALL and d.value.value is not None]
    if not rows:
        return None
    with figure(_WIDTH, 0.9 + 0.34 * len(rows)) as (drawn, axes):
        for place, row in enumerate(reversed(rows)):
            assert row.value.value is not None
            inside = _interval(row.value)
            if inside:
                axes.plot(inside, (place, place), color=INK, lw=1.4)
            axes.plot(row.value.value, place, ls="", ms=6, **_style(panel.palette, row.arm))
        labels = [
            short(r.arm, 34)
            + ("" if len(panel.budgets) == 1 else ", as is" if r.budget is None else f", {r.budget:,} tokens")
            for r in reversed(rows)
        ]
        axes.set_yticks(range(len(rows)), labels)
        axes.axvline(0, color=INK, lw=0.9)
        base = panel.reference(panel.baseline)
        ends = [None if v is None or base is None else v - base for v in (panel.floor, panel.ceiling)]
        _ends(axes, *ends, vertical=True, named=False)
        axes.set_ylim(-0.6, len(rows) - 0.2)
        axes.set_xlabel(f"difference from {short(panel.baseline, 30)}")
        said = "; ".join(f"{r.arm}: {r.value.value:+.3f}" for r in rows)
        return to_svg(drawn, f"Paired differences, panel {panel.panel.number}", said)


def retrieval(result: MemoryResult, benchmark: str, granularity: str) -> Markup:
    """Share of questions whose whole evidence is among the first k, by arm."""
    mine = [c for c in result.curves if (c.benchmark, c.granularity) == (benchmark, granularity)]
    palette = result.panels[0].palette
    with figure(_WIDTH, 3.2) as (drawn, axes):
        for curve in mine:
            ks, values = [p[0] for p in curve.points], [p[1] for p in curve.points]
            end = curve.arm in (FLOOR, CEILING)
            style = (
                {"color": SOFT, "ls": (0, (6, 3)) if curve.arm == CEILING else (0, (1, 2))}
                if end
                else _style(palette, curve.arm)
            )
            axes.plot(ks, values, lw=1.2, ms=5, label=short(curve.arm, 30), **style)
        ks = sorted({p[0] for c in mine for p in c.points})
        if len(ks) > 1 and ks[-1] / ks[0] > 8:
            axes.set_xscale("log")
        axes.set_xticks(ks, [str(k) for k in ks])
        axes.minorticks_off()
        axes.set_ylim(-0.02, 1.05)
        axes.set_xlabel("k, documents")
        axes.set_ylabel("recall_all")
        drawn.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(f"{c.arm}: {', '.join(f'{v:.3f} at {k}' for k, v, *_ in c.points)}" for c in mine)
        return to_svg(drawn, f"Retrieval at k, {benchmark}, {granularity}", said)


def coverage(result: MemoryResult) -> Markup:
    """Measured coverage by scenario, with the band that is asked for."""
    rows: list[Coverage] = [*result.coverage, *result.hard]
    level = result.options.level
    with figure(_WIDTH, 0.9 + 0.3 * len(rows)) as (drawn, axes):
        axes.axvspan(level - 0.01, level + 0.01, color="#e3efe9", lw=0)
        axes.axvline(level, color=SOFT, lw=0.9)
        for method, marker, colour in ((NAIVE, "x", SERIES[1]), (CR1, "s", SERIES[3]), (CHOSEN, "o", SERIES[0])):
            places = range(len(rows) - 1, -1, -1)
            axes.plot([r.covered[method] for r in rows], places, ls="", marker=marker, color=colour, ms=5, label=method)
        axes.axhline(len(result.hard) - 0.5, color=LINE, lw=0.8)
        axes.set_yticks(range(len(rows)), [r.scenario.name for r in reversed(rows)])
        axes.set_xlabel("share of intervals that hold the truth")
        drawn.legend(loc="outside lower center", ncols=3, fontsize=8)
        said = "; ".join(f"{r.scenario.name}: {r.covered[CHOSEN]:.3f}" for r in rows)
        return to_svg(drawn, "Coverage of the interval", said)
