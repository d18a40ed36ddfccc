"""The offline HTML page of a memory result."""

from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.memory.evaluation import figures
from akm_harbor.memory.evaluation.accuracy import ALL, CEILING, FLOOR, Difference, Score
from akm_harbor.memory.evaluation.analysis import MemoryResult
from akm_harbor.memory.evaluation.simulate import CHOSEN, METHODS
from akm_harbor.report.page import render
from akm_harbor.report.text import DASH, MINUS
from akm_harbor.stats.results import Estimate, NotEstimable, Result

TEMPLATES = Path(__file__).resolve().parent / "templates"
SECTIONS = (
    "accuracy", "types", "differences", "tokens", "retrieval", "variance", "audit", "protocol", "simulation", "method",
)  # fmt: skip
_SHORT = {
    "one-history": "one history", "all-tied": "no variation", "no-question": "no score", "not-binary": "not 0 or 1",
}  # fmt: skip


def render_page(result: MemoryResult) -> str:
    """The whole report as one HTML file that loads nothing."""
    return render("memory_report.html.j2", _context(result), TEMPLATES)


def render_section(result: MemoryResult, name: str) -> str:
    """One section as an HTML fragment with its own style, for a notebook cell.

    Args:
        result: from `analyse`.
        name: `headline` or one of `SECTIONS`.
    """
    return render("memory_section.html.j2", {**_context(result), "section": name}, TEMPLATES)


def _context(result: MemoryResult) -> dict[str, Any]:
    return {
        "title": "Memory evaluation",
        "version": akm_harbor.__version__,
        "r": result,
        "figures": figures,
        "sections": SECTIONS,
        "ALL": ALL,
        "CHOSEN": CHOSEN,
        "METHODS": METHODS,
        "share": share,
        "signed": signed,
        "p_text": p_text,
        "count": count,
        "money": money,
        "bounds": bounds,
        "budget": lambda value: "as is" if value is None else f"{value:,}",
        "level": f"{100 * result.options.level:g}" + "\u202f%",
        "leader": leader,
        "number": lambda value, digits=3: DASH if value is None else f"{value:.{digits}f}",
        "kinds": lambda: list(dict.fromkeys((c.benchmark, c.granularity) for c in result.curves)),
        "shown": shown,
    }


def share(result: Result) -> str:
    """A mean with its interval, or why there is none."""
    if isinstance(result, NotEstimable):
        return DASH if result.value is None else f"{result.value:.3f} ({_SHORT.get(result.reason, result.reason)})"
    inside = result.interval
    return f"{result.value:.3f}" + (f" [{max(inside.low, 0):.3f}, {min(inside.high, 1):.3f}]" if inside else "")


def signed(result: Result) -> str:
    """A difference with its interval, or why there is none."""
    if result.value is None:
        return DASH
    value = f"{result.value:+.3f}"
    if isinstance(result, NotEstimable):
        return f"{value} ({_SHORT.get(result.reason, result.reason)})".replace("-", MINUS)
    inside = result.interval
    return (value + (f" [{inside.low:+.3f}, {inside.high:+.3f}]" if inside else "")).replace("-", MINUS)


def p_text(p: float | None) -> str:
    """A p value, never 0."""
    if p is None:
        return DASH
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(value: float | None) -> str:
    """A mean count, whole."""
    return DASH if value is None else f"{value:,.0f}"


def money(value: float | None) -> str:
    """A price for 1,000 questions."""
    return DASH if value is None else f"${1000 * value:.3f}"


def bounds(score: Score) -> str:
    """The mean if every missing score were wrong, and right; a dash where none is missing."""
    missing = score.undecided + score.failed
    return DASH if not missing or score.low is None or score.high is None else f"{score.low:.3f} to {score.high:.3f}"


def shown(value: Any) -> str:
    """A protocol value in words."""
    if value is None:
        return "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{k} {v}" for k, v in sorted(value.items())) or "none"
    return str(value)


def leader(differences: tuple[Difference, ...]) -> tuple[str, str]:
    """Banner style and sentence: what the paired differences over all questions show."""
    mine = [d for d in differences if d.group == ALL and d.arm not in (FLOOR, CEILING)]
    clear = [d for d in mine if isinstance(d.value, Estimate) and d.p_holm is not None and d.p_holm < 0.05]
    if not mine:
        return "warn", "Nothing to compare: no other arm but floor and ceiling shares a budget with the baseline."
    if not clear:
        return "warn", f"No arm differs clearly from {mine[0].baseline} ({_holm(mine)})."
    parts = [
        f"{d.arm}{'' if d.budget is None else f' at {d.budget:,} tokens'} {signed(d.value)}"
        for d in sorted(clear, key=lambda d: -(d.value.value or 0))
    ]
    return "", f"Differ from {mine[0].baseline}, {_holm(mine)}: {'; '.join(parts)}."


def _holm(contrasts: list[Difference]) -> str:
    return f"Holm over {len(contrasts)} contrasts" if len(contrasts) != 1 else "the only contrast"
