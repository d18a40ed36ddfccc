"""The page of many arms: ranking under every policy, contrasts, factorial read-out."""

from pathlib import Path

from markupsafe import Markup

import akm_harbor
from akm_harbor.ab import words
from akm_harbor.ab.many import ManyArms
from akm_harbor.ab.policies import POLICIES
from akm_harbor.ab.verdict import level_text
from akm_harbor.report.figures import INK, LINE, SOFT, TREATMENT, figure, to_svg
from akm_harbor.report.page import render
from akm_harbor.report.text import short
from akm_harbor.report.verdict import to_plain, write_json, write_output
from akm_harbor.stats.results import Estimate

TEMPLATES = Path(__file__).resolve().parent / "templates"


def write_many(result: ManyArms, out: Path) -> Path:
    """Write `arms.html` and `arms.json`; returns the page.

    Raises:
        AkmHarborError: the place cannot be written.
    """
    page = out / "arms.html"
    write_output(page, render_many(result))
    write_json(out / "arms.json", {"schema": "akm_harbor.ab.arms/1", **to_plain(result)})
    return page


def render_many(result: ManyArms) -> str:
    """The whole page as one HTML file that loads nothing."""
    context = {
        "title": f"{len(result.arms)} arms",
        "version": akm_harbor.__version__,
        "r": result,
        "words": words,
        "policies": POLICIES,
        "level": level_text(result.options.level),
        "drawn": contrast_plot(result) if result.contrasts else None,
    }
    return render("ab_arms.html.j2", context, TEMPLATES)


def contrast_plot(result: ManyArms) -> Markup:
    """Each arm's difference from the baseline with its interval."""
    rows = sorted((c for c in result.contrasts if c.n_tasks), key=lambda c: c.difference.value or 0.0)
    with figure(5.6, 0.9 + 0.28 * len(rows)) as (drawn, axes):
        axes.axvline(0, color=SOFT, lw=1)
        for y, row in enumerate(rows):
            clear = row.p_holm is not None and row.p_holm <= 0.05
            colour = TREATMENT if clear else INK
            if isinstance(row.difference, Estimate) and row.difference.interval:
                low, high = (max(min(100 * v, 100), -100) for v in limits(row.difference))
                axes.plot([low, high], [y, y], color=colour, lw=1.6)
            axes.plot(100 * (row.difference.value or 0.0), y, "D" if clear else "o", color=colour, ms=6)
        axes.set_yticks(range(len(rows)), [short(row.arm, 36) for row in rows])
        axes.set_ylim(-0.7, len(rows) - 0.3)
        axes.set_xlabel(f"difference from {short(str(result.baseline), 40)}, percentage points")
        axes.grid(axis="x", color=LINE, lw=0.6)
        axes.tick_params(axis="y", length=0)
        said = "; ".join(f"{row.arm}: {words.points(row.difference.value)}" for row in reversed(rows))
        return to_svg(drawn, "Contrasts with the baseline", said)


def limits(estimate: Estimate) -> tuple[float, float]:
    """Both limits of an estimate's interval."""
    if estimate.interval is None:
        raise AssertionError("the estimate has an interval")
    return estimate.interval.low, estimate.interval.high
