"""Figure of the funnel: how far the treatment got in each arm."""

from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from akm_harbor.ab.funnel import Funnel
from akm_harbor.ab.result import Stage
from akm_harbor.report.figures import BASELINE, INK, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.text import short

_STYLES = ({"color": BASELINE, "hatch": "//"}, {"color": TREATMENT})
"""Baseline and treatment: told apart by hatching and by name, not by colour alone."""


def funnel(arms: Sequence[Funnel]) -> Markup | None:
    """Attempts that reached each stage, one bar an arm; None where no stage is known of.

    Filled: reached; hatched grey: not known; empty: not reached.

    Args:
        arms: two arms, baseline first.
    """
    stages = [s.name for s in arms[0].stages if any(_known(_of(arm, s.name)) for arm in arms)] if arms else []
    if not stages:
        return None
    step = len(arms) + 1.05
    with figure(5.6, 0.2 + 0.235 * step * len(stages)) as (drawn, axes):
        ticks: list[tuple[float, str]] = []
        for row, name in enumerate(stages):
            top = row * step
            axes.text(0, top, _of(arms[0], name).title, ha="left", va="center", fontsize=10, color=INK)
            for place, (arm, style) in enumerate(zip(arms, _STYLES, strict=False), start=1):
                y, stage = top + place, _of(arm, name)
                _bar(axes, y, stage, arm.n, style)
                ticks.append((y, short(arm.arm, 18)))
        axes.set_yticks([y for y, _ in ticks], [label for _, label in ticks], fontsize=8.5)
        axes.set_xlim(0, 1.34)
        axes.set_ylim(step * len(stages) - 0.6, -0.6)
        axes.set_xticks([])
        for side in ("bottom", "left"):
            axes.spines[side].set_visible(False)
        axes.tick_params(axis="y", length=0)
        said = "; ".join(f"{a.arm}, {s.title}: {_words(s, a.n)}" for a in arms for s in a.stages if s.name in stages)
        return to_svg(drawn, "How far the treatment got", said)


def _of(arm: Funnel, name: str) -> Stage:
    return next(s for s in arm.stages if s.name == name)


def _known(stage: Stage) -> int:
    return stage.yes + stage.no


def _words(stage: Stage, n: int) -> str:
    if not _known(stage):
        return "not known"
    return f"{stage.yes} of {_known(stage)}" + (f", {stage.unknown} unknown" if stage.unknown and n else "")


def _bar(axes: Any, y: float, stage: Stage, n: int, style: dict[str, str]) -> None:
    yes, unknown = (count / n if n else 0.0 for count in (stage.yes, stage.unknown))
    axes.barh(y, 1, color="white", edgecolor=SOFT, lw=0.6, height=0.72)
    axes.barh(y, unknown, left=1 - unknown, color="#eceff2", hatch="....", edgecolor="#b9c0c8", lw=0, height=0.72)
    axes.barh(y, yes, edgecolor="white", lw=0, height=0.72, **style)
    axes.text(1.02, y, _words(stage, n), ha="left", va="center", fontsize=8.5, color=INK)
