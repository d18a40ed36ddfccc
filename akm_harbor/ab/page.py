"""The offline HTML page of an A/B result."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.ab import figures, words
from akm_harbor.ab.behaviour_view import behaviour_context, ending, shown_sections
from akm_harbor.ab.drilldown import printed, stretches
from akm_harbor.ab.result import AbResult, Attempt
from akm_harbor.ab.verdict import level_text
from akm_harbor.report.page import render
from akm_harbor.report.text import DASH
from akm_harbor.stats.results import NotEstimable, Result

TEMPLATES = Path(__file__).resolve().parent / "templates"


SECTIONS = {
    "counting": "Ways of counting",
    "tasks": "Tasks and attempts",
    "engagement": "Use",
    "endings": "Endings",
    "assets": "Assets",
    "workflows": "Workflows",
    "comparability": "Comparability",
    "delivery": "Delivery",
    "ledgers": "Ledgers",
    "passk": "pass@k",
    "usage": "Cost, tokens, time",
    "errors": "Errors",
    "method": "Method",
    "provenance": "Provenance",
}
"""The sections of the page in their order, with what the contents call them."""
_WHERE_SEEN = ("endings", "assets", "workflows", "ledgers")


def render_page(result: AbResult) -> str:
    """The whole report as one HTML file that loads nothing."""
    return render("ab_report.html.j2", _context(result), TEMPLATES)


def render_section(result: AbResult, name: str) -> str:
    """One section as an HTML fragment with its own style, for a notebook cell.

    Args:
        result: from `analyse`.
        name: `headline` or a key of `SECTIONS`.
    """
    return render("ab_section.html.j2", {**_context(result), "section": name}, TEMPLATES)


def _context(result: AbResult) -> dict[str, Any]:
    style, outcome = words.banner(result)
    there = shown_sections(result.behaviour)
    return {
        "title": f"A/B report: {result.title}",
        "version": akm_harbor.__version__,
        "r": result,
        "style": style,
        "outcome": outcome,
        "words": words,
        "figures": figures,
        "sections": {n: title for n, title in SECTIONS.items() if n not in _WHERE_SEEN or n in there},
        "a": result.baseline.name,
        "b": result.treatment.name,
        **behaviour_context(result.behaviour),
        "modes": {m.trial_path: m for m in result.behaviour.modes} if "endings" in there else {},
        "ending": ending,
        "stretches": stretches,
        "printed": printed(result.tasks),
        "facts": facts,
        "cell": cell,
        "amount": amount,
        "ratio": ratio,
        "moment": moment,
        "manifest": json.dumps(result.manifest, indent=2, ensure_ascii=False),
        "level": level_text(result.options.level),
    }


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


def facts(attempt: Attempt) -> list[str]:
    """What is known of one attempt, in few words; what is not known is left out."""
    calls = None if attempt.n_tool_calls is None else words.plural(attempt.n_tool_calls, "call")
    tokens = (amount(attempt.input_tokens, ""), amount(attempt.output_tokens, ""))
    found = (
        attempt.status.replace("_", " ") + ("" if attempt.reward is None else f", reward {attempt.reward:g}"),
        {True: "delivered", False: "not delivered", None: ""}[attempt.delivered]
        + (f" ({', '.join(attempt.delivery_reasons)})" if attempt.delivery_reasons else ""),
        f"{calls}, {attempt.n_akm_calls} to akm" if calls and attempt.n_akm_calls is not None else calls,
        f"{tokens[0]} tokens in, {tokens[1]} out" if attempt.input_tokens is not None else None,
        None if attempt.cost_usd is None else amount(attempt.cost_usd, "US$"),
        None if attempt.agent_seconds is None else f"agent {amount(attempt.agent_seconds, 's')}",
    )
    return [fact.strip() for fact in found if fact]


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
