"""What the pages of two arms and of many arms show of the agents' behaviour."""

from collections.abc import Sequence
from typing import Any

from akm_harbor.ab.attribution import CAVEAT
from akm_harbor.ab.behaviour import Behaviour
from akm_harbor.ab.failure_mode import MODES, ModeCounts, TrialMode
from akm_harbor.ab.funnel import FirstLook, Funnel
from akm_harbor.ab.ledgers import MEANING
from akm_harbor.report.text import DASH

MOST_ASSETS, MOST_LINES = 60, 100
"""Rows of a table that a reader still looks through; the dataset holds them all."""


def behaviour_context(seen: Behaviour) -> dict[str, Any]:
    """The names that the behaviour templates use."""
    return {
        "seen": seen,
        "stage_names": stage_names,
        "first_look": first_look,
        "endings": endings,
        "MEANING": MEANING,
        "CAVEAT": CAVEAT,
        "MOST_ASSETS": MOST_ASSETS,
        "MOST_LINES": MOST_LINES,
    }


def shown_sections(seen: Behaviour) -> frozenset[str]:
    """The sections that there is something to show in."""
    there = {
        "endings": any(m.mode not in {"solved", "no-treatment", "unscored", "unknown"} for m in seen.modes),
        "assets": bool(seen.assets),
        "workflows": bool(seen.compliance.rows),
        "ledgers": any(ledger.n_compared for ledger in seen.ledgers),
    }
    return frozenset(name for name, has in there.items() if has)


def stage_names(funnels: Sequence[Funnel]) -> list[tuple[str, str]]:
    """Name and title of the stages that any arm knows of."""
    known = {s.name for f in funnels for s in f.stages if s.yes + s.no}
    return [(s.name, s.title) for s in funnels[0].stages if s.name in known] if funnels else []


def first_look(look: FirstLook) -> str:
    """The median gold rank at the first look into the bundle, in few characters."""
    if not look.n_looked:
        return DASH
    median = "absent" if look.median is None else f"{look.median:g}"
    return f"{median} ({look.absent} of {look.n_looked} without)"


def endings(counts: Sequence[ModeCounts]) -> list[tuple[str, str, list[int]]]:
    """Name, sentence and count by arm of each ending that occurs."""
    rows = [(mode, text, [c.counts.get(mode, 0) for c in counts]) for mode, text in MODES.items()]
    return [row for row in rows if any(row[2])]


def ending(mode: TrialMode) -> tuple[str, str]:
    """One trial's ending: the sentence, and why with the calls that decided it (counted from one)."""
    text = MODES[mode.mode]
    numbers = ", ".join(str(i + 1) for i in mode.calls[:12]) + (", …" if len(mode.calls) > 12 else "")
    where = f" Decided in call{'s' * (len(mode.calls) > 1)} {numbers}." if mode.calls else ""
    return f"{text[0].upper()}{text[1:]}.", f"{mode.why}{where}"
