"""Figures of many arms: contrasts, and the effects of a 2 x 2 design."""

from collections.abc import Sequence

from markupsafe import Markup

from akm_harbor.ab.many import ManyArms
from akm_harbor.ab.words import points
from akm_harbor.report.figures import INK, LINE, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.text import short
from akm_harbor.stats.results import Estimate, Result

_SHAPES = {"main": "D", "interaction": "X", "simple": "o"}


def contrast_plot(r: ManyArms) -> Markup:
    """Each contrast's difference with its interval, the largest on top; planned ones keep their order."""
    rows = [c for c in r.contrasts if c.n_tasks]
    if not any(c.question for c in rows):
        rows.sort(key=lambda c: -(c.difference.value or 0.0))
    labels = [short(f"{c.arm} against {c.versus}" if c.question else c.arm, 38) for c in rows]
    clear = [c.p_holm is not None and c.p_holm <= 0.05 for c in rows]
    marks = [("D" if sure else "o", TREATMENT if sure else INK) for sure in clear]
    return _forest([c.difference for c in rows], labels, marks, "Contrasts of arms")


def factorial_plot(r: ManyArms) -> Markup:
    """The effects of a 2 x 2 design: main effects, interaction, and each factor at each level of the other."""
    rows = r.factorial
    marks = [(_SHAPES[e.kind], TREATMENT if e.kind == "main" else INK) for e in rows]
    return _forest([e.result for e in rows], [short(e.name, 44) for e in rows], marks, "Effects of two factors")


def _forest(results: Sequence[Result], labels: Sequence[str], marks: Sequence[tuple[str, str]], title: str) -> Markup:
    """One row a result, the first on top."""
    with figure(5.6, 0.9 + 0.28 * len(results)) as (drawn, axes):
        axes.axvline(0, color=SOFT, lw=1)
        for y, (result, (shape, colour)) in enumerate(zip(results, marks, strict=True)):
            if isinstance(result, Estimate) and result.interval:
                limits = (result.interval.low, result.interval.high)
                low, high = (max(min(100 * v, 100), -100) for v in limits)
                axes.plot([low, high], [y, y], color=colour, lw=1.6)
            axes.plot(100 * (result.value or 0.0), y, shape, color=colour, ms=6)
        axes.set_yticks(range(len(results)), labels)
        axes.set_ylim(len(results) - 0.3, -0.7)
        axes.set_xlabel("points")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        said = "; ".join(f"{label}: {points(r.value)}" for label, r in zip(labels, results, strict=True))
        return to_svg(drawn, title, said)
