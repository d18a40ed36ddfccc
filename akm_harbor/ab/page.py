"""The offline HTML page of an A/B result."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.ab import figures, words
from akm_harbor.ab.result import AbResult, Attempt, Stage
from akm_harbor.ab.verdict import level_text
from akm_harbor.report.page import render
from akm_harbor.report.text import DASH
from akm_harbor.stats.results import NotEstimable, Result

TEMPLATES = Path(__file__).resolve().parent / "templates"


SECTIONS = (
    "counting",
    "tasks",
    "comparability",
    "delivery",
    "engagement",
    "passk",
    "usage",
    "errors",
    "method",
    "provenance",
)


def render_page(result: AbResult) -> str:
    """The whole report as one HTML file that loads nothing."""
    return render("ab_report.html.j2", _context(result), TEMPLATES)


def render_section(result: AbResult, name: str) -> str:
    """One section as an HTML fragment with its own style, for a notebook cell.

    Args:
        result: from `analyse`.
        name: `headline` or one of `SECTIONS`.
    """
    return render("ab_section.html.j2", {**_context(result), "section": name}, TEMPLATES)


def _context(result: AbResult) -> dict[str, Any]:
    style, outcome = words.banner(result)
    return {
        "title": f"A/B report: {result.title}",
        "version": akm_harbor.__version__,
        "r": result,
        "style": style,
        "outcome": outcome,
        "words": words,
        "figures": figures,
        "sections": SECTIONS,
        "a": result.baseline.name,
        "b": result.treatment.name,
        "cell": cell,
        "amount": amount,
        "ratio": ratio,
        "moment": moment,
        "funnel": funnel,
        "manifest": json.dumps(result.manifest, indent=2, ensure_ascii=False),
        "level": level_text(result.options.level),
    }


def funnel(result: AbResult) -> list[tuple[str, str, list[Stage | None]]]:
    """The stages that either arm knows of, side by side."""
    known = [{s.name: s for s in e.stages} for e in result.engagement]
    titles = {s.name: s.title for e in result.engagement for s in e.stages}
    return [(name, title, [side.get(name) for side in known]) for name, title in titles.items()]


def moment(time: datetime | None) -> str:
    """A time to the second."""
    return DASH if time is None else f"{time:%Y-%m-%d %H:%M:%S}"


def cell(attempt: Attempt) -> tuple[str, str, str]:
    """Style, sign and spoken text of one attempt in the heat map; never told by colour alone."""
    marks = [attempt.exception_type or attempt.status] if attempt.errored else []
    if attempt.delivered is False:
        marks.append("treatment not delivered")
    if attempt.score is None:
        style, sign, text = "out", DASH, "left out"
    elif attempt.score >= 1:
        style, sign, text = "solved", "✓", "solved"
    elif attempt.score <= 0:
        style, sign, text = "failed", "×", "not solved"  # noqa: RUF001
    else:
        style, sign, text = "part", f"{attempt.score:.1f}".lstrip("0"), f"reward {attempt.score:g}"
    style += " errored" if attempt.errored else ""
    style += " undelivered" if attempt.delivered is False else ""
    return style, sign, "; ".join([text, *marks])


_BIG: tuple[tuple[float, str], ...] = ((1e6, "M"), (1e4, "k"))


def amount(number: float | None, unit: str) -> str:
    """An amount in its unit, short enough for a table."""
    if number is None:
        return DASH
    if unit == "US$":
        return f"${number:,.4f}" if abs(number) < 0.1 else f"${number:,.2f}"
    if unit == "s":
        return f"{number:,.1f} s" if abs(number) < 600 else f"{number / 60:,.1f} min"
    for size, letter in _BIG:
        if abs(number) >= size:
            return f"{number / (1e6 if letter == 'M' else 1e3):,.1f}{letter}"
    return f"{number:,.1f}".removesuffix(".0")


_WHY = {
    "constant-ratio": "the same ratio on every task",
    "zero-baseline": "the baseline is zero",
    "not-positive": "some amounts are zero",
    "one-task": "one task",
    "no-task": "no shared task reports it",
    "unbounded": "the baseline is too uncertain",
}


def ratio(result: Result) -> str:
    """A ratio with its interval, or that there is none."""
    if isinstance(result, NotEstimable):
        known = f"×{result.value:.2f}; " if result.value is not None else ""  # noqa: RUF001
        return f"{known}{_WHY.get(result.reason, result.reason)}"
    inside = result.interval
    return f"×{result.value:.2f}" + (f" ({inside.low:.2f} to {inside.high:.2f})" if inside else "")  # noqa: RUF001
