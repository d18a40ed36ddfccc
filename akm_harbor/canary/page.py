"""The offline HTML page of a canary result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.canary import calibration_figures, figures
from akm_harbor.canary.alerts.model import Rule
from akm_harbor.canary.analysis import CanaryResult, Finding, StoreResult
from akm_harbor.canary.simulate.calibration import Measured
from akm_harbor.report.page import render

TEMPLATES = Path(__file__).resolve().parent / "templates"
SECTIONS = ("trend", "lost", "shape", "churn", "alerts", "calibration", "method", "provenance")
_STYLES = {"pass": "good", "warn": "bad", "unknown": "warn"}
_WORDS = {"pass": "No alert", "warn": "Alert", "unknown": "Not enough history"}
_MOST_ROWS = 40


def render_page(result: CanaryResult, measured: Sequence[Measured] = ()) -> str:
    """The whole report as one HTML file that loads nothing.

    Args:
        result: from `analyse`.
        measured: what `canary calibrate` measured; the calibration section is left out without it.
    """
    return render("canary_report.html.j2", _context(result, measured), TEMPLATES)


def render_section(result: CanaryResult, name: str, measured: Sequence[Measured] = ()) -> str:
    """One section as an HTML fragment with its own style, for a notebook cell."""
    return render("canary_section.html.j2", {**_context(result, measured), "section": name}, TEMPLATES)


def _context(result: CanaryResult, measured: Sequence[Measured]) -> dict[str, Any]:
    stores = ", ".join(store.label for store in result.stores)
    return {
        "title": f"Canary report: {stores}",
        "version": akm_harbor.__version__,
        "r": result,
        "measured": measured,
        "figures": figures,
        "calibration_figures": calibration_figures,
        "sections": SECTIONS,
        "styles": _STYLES,
        "said": _WORDS,
        "rules": list(Rule),
        "stretches": stretches,
        "latest": latest,
        "percent": lambda value: f"{100 * value:.3g}" + "\u202f%",
    }


def latest(store: StoreResult) -> list[Finding]:
    """The alerts of the newest cycle that has any."""
    if not store.findings:
        return []
    position = store.findings[0].position
    return [finding for finding in store.findings if finding.position == position]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Neighbouring cycles about which every rule says the same.

    Attributes:
        first, last: positions in the store.
        kinds: alerts by rule.
    """

    first: int
    last: int
    kinds: Mapping[Rule, tuple[str, ...]]


def stretches(store: StoreResult) -> tuple[list[Stretch], int]:
    """Where any rule raised an alert, newest first, and how many older stretches are left out."""
    found: list[Stretch] = []
    for position in range(len(store.rows)):
        kinds = {rule: tuple(a.kind.value for a in store.judged[rule].alerts[position]) for rule in Rule}
        if not any(kinds.values()):
            continue
        if found and found[-1].last == position - 1 and found[-1].kinds == kinds:
            found[-1] = Stretch(found[-1].first, position, kinds)
        else:
            found.append(Stretch(position, position, kinds))
    found.reverse()
    return found[:_MOST_ROWS], max(0, len(found) - _MOST_ROWS)
