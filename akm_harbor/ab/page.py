"""The offline HTML page of an A/B result."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.ab import figures, words
from akm_harbor.ab.result import AbResult, Attempt, UsageRow
from akm_harbor.report.page import render
from akm_harbor.report.text import DASH
from akm_harbor.stats.results import NotEstimable, Result

TEMPLATES = Path(__file__).resolve().parent / "templates"


def render_page(result: AbResult) -> str:
    """The whole report as one HTML file that loads nothing."""
    style, outcome = words.OUTCOMES[result.verdict.outcome]
    context: dict[str, Any] = {
        "title": f"A/B report: {result.title}",
        "version": akm_harbor.__version__,
        "r": result,
        "style": style,
        "outcome": outcome,
        "words": words,
        "policy_forest": figures.policy_forest(result),
        "task_forest": figures.task_forest(result),
        "phase_times": figures.phase_times(result),
        "cell": cell,
        "amount": amount,
        "ratio": ratio,
        "value": value,
        "manifest": json.dumps(result.manifest, indent=2, ensure_ascii=False),
        "level": f"{result.options.level:.0%}",
    }
    return render("ab_report.html.j2", context, TEMPLATES)


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


def ratio(result: Result) -> str:
    """A ratio with its interval, or that there is none."""
    if isinstance(result, NotEstimable):
        known = f"×{result.value:.2f}; " if result.value is not None else ""  # noqa: RUF001
        return f"{known}no interval: {result.reason}"
    inside = result.interval
    return f"×{result.value:.2f}" + (f" ({inside.low:.2f} to {inside.high:.2f})" if inside else "")  # noqa: RUF001


def value(result: Result, show: Callable[[float | None], str]) -> str:
    """A result's number through a formatter."""
    return show(result.value)


def coverage(row: UsageRow) -> str:
    """How many attempts report a quantity."""
    return f"{row.known_baseline}/{row.n_baseline}, {row.known_treatment}/{row.n_treatment}"
