"""Four arms read as a 2 x 2 design: what each factor does, and what it does beside the other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from akm_harbor.errors import UsageError
from akm_harbor.stats.paired import paired_t
from akm_harbor.stats.results import Result
from akm_harbor.stats.signflip import sign_flip

Cells = tuple[str, str, str, str]
"""Arms with both factors, the first only, the second only, neither."""

INJECTION_BY_TOOLS: Cells = ("akm", "injection-only", "tools-only", "control")
"""The plugin's two halves. The control stands for neither: it lacks the plugin too, which by itself
should change nothing."""

FACTORS = {INJECTION_BY_TOOLS: ("injection", "tools")}
"""What the factors of a known design are called."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect of a 2 x 2 design, over the tasks that all four arms share.

    Attributes:
        name: as one reads it.
        kind: `main` (averaged over the other factor), `interaction`, or `simple` (at one level of the other).
        result: mean over tasks of each task's contrast, Student's t.
        sign_flip: the exact test of the same contrasts.
    """

    name: str
    kind: Literal["main", "interaction", "simple"]
    result: Result
    sign_flip: Result


def factorial_effects(
    scored: Sequence[Mapping[str, Sequence[float]]], names: Cells, level: float
) -> tuple[Effect, ...]:
    """Main effects, their interaction and the simple effects, each from one number a task.

    Args:
        scored: scores by task of the four arms, in the order of `names`.
        names: the arms.
        level: coverage of the intervals.

    Raises:
        UsageError: an arm named twice.
    """
    if len(set(names)) != len(names):
        raise UsageError(f"a factorial needs four different arms, not {', '.join(names)}")
    one, two = FACTORS.get(names, (f"first factor ({names[1]})", f"second factor ({names[2]})"))
    common = sorted(set.intersection(*(set(s) for s in scored)))
    both, first, second, neither = ([_mean(s[t]) for t in common] for s in scored)
    cells = list(zip(both, first, second, neither, strict=True))
    contrasts: tuple[tuple[str, Literal["main", "interaction", "simple"], list[Fraction]], ...] = (
        (one, "main", [(b + f - s - n) / 2 for b, f, s, n in cells]),
        (two, "main", [(b + s - f - n) / 2 for b, f, s, n in cells]),
        ("interaction", "interaction", [b - f - s + n for b, f, s, n in cells]),
        (f"{one} alone", "simple", [f - n for _, f, _, n in cells]),
        (f"{two} alone", "simple", [s - n for _, _, s, n in cells]),
        (f"{one}, given {two}", "simple", [b - s for b, _, s, _ in cells]),
        (f"{two}, given {one}", "simple", [b - f for b, f, _, _ in cells]),
    )
    return tuple(
        Effect(name, kind, paired_t([float(c) for c in values], level), sign_flip(values))
        for name, kind, values in contrasts
    )


def _mean(scores: Sequence[float]) -> Fraction:
    """Exact for rewards of 0 and 1, so that the sign-flip test stays exact."""
    return sum((Fraction(score).limit_denominator(10_000) for score in scores), Fraction(0)) / len(scores)
