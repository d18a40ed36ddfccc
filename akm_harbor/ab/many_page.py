"""The page of many arms: ranking under every policy, contrasts, factorial read-out."""

from pathlib import Path

import akm_harbor
from akm_harbor.ab import words
from akm_harbor.ab.behaviour_view import behaviour_context, shown_sections
from akm_harbor.ab.figures.arms import contrast_plot, factorial_plot
from akm_harbor.ab.many import ManyArms
from akm_harbor.ab.policies import POLICIES
from akm_harbor.ab.verdict import level_text
from akm_harbor.report.page import render
from akm_harbor.report.verdict import to_plain, write_json, write_output

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
        "contrasts_drawn": contrast_plot(result) if any(c.n_tasks for c in result.contrasts) else None,
        "factorial_drawn": factorial_plot(result) if result.factorial else None,
        "planned": any(c.question for c in result.contrasts),
        "shown": shown_sections(result.behaviour) if result.behaviour else frozenset(),
        **(behaviour_context(result.behaviour) if result.behaviour else {}),
    }
    return render("ab_arms.html.j2", context, TEMPLATES)
