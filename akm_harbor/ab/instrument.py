"""The complier effect of a treatment: intention to treat, divided by the uptake that assignment caused."""

from collections.abc import Sequence
from dataclasses import dataclass

from akm_harbor.ab.use import TrialUse
from akm_harbor.stats.instrument import FirstStage, complier_effect, first_stage
from akm_harbor.stats.paired import paired_difference
from akm_harbor.stats.results import NotEstimable, Result

UPTAKES = (
    ("called", "called akm, or read the bundle"),
    ("opened", "opened the gold asset"),
)
"""What counts as having taken the treatment up, and its title."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing the complier effect rests on.

    Attributes:
        holds: True where the data show it, False where they speak against it, None where they cannot tell.
        evidence: what was looked at.
    """

    name: str
    statement: str
    holds: bool | None
    evidence: str


@dataclass(frozen=True, slots=True)
class ComplierEffect:
    """The effect on attempts that take the treatment up because they were given it.

    Attributes:
        uptake: a name of `UPTAKES`.
        uptake_baseline: share of the baseline's attempts that took it up, mean of task means; None if unknown.
        first_stage_f: the instrument's strength; None where it cannot be told or uptake differs equally everywhere.
        itt: intention to treat on the same attempts: the numerator.
        effect: the ratio with its Anderson-Rubin interval, or why there is none.
    """

    uptake: str
    title: str
    baseline: str
    treatment: str
    n_tasks: int
    uptake_baseline: float | None
    uptake_treatment: float | None
    first_stage_f: float | None
    itt: Result
    effect: Result
    assumptions: tuple[Assumption, ...]


def complier_effects(
    trials: Sequence[TrialUse],
    baseline: str,
    treatment: str,
    level: float = 0.95,
    direct: tuple[str, Result] | None = None,
) -> tuple[ComplierEffect, ...]:
    """One effect for each reading of "took it up".

    Args:
        trials: from `read_uses`.
        baseline: the arm without the treatment.
        treatment: the arm with it.
        level: coverage of the intervals.
        direct: title and result of a contrast that shows what the treatment does without its content, e.g. an
            empty bundle against the baseline: a check of the exclusion restriction.
    """
    sides = [[t for t in trials if t.arm == arm] for arm in (baseline, treatment)]
    return tuple(
        _effect(name, title, sides, (baseline, treatment), level=level, direct=direct) for name, title in UPTAKES
    )


def _effect(
    name: str,
    title: str,
    sides: list[list[TrialUse]],
    arms: tuple[str, str],
    *,
    level: float,
    direct: tuple[str, Result] | None,
) -> ComplierEffect:
    took = [{t.key: _took_up(name, t) for t in side} for side in sides]
    # an attempt whose uptake or score is unknown tells nothing about either stage
    known = [
        [t for t in side if t.score is not None and up[t.key] is not None] for side, up in zip(sides, took, strict=True)
    ]
    tasks = sorted({t.task for t in known[0]} & {t.task for t in known[1]})
    scores, uptakes = [], []
    for side, up in zip(known, took, strict=True):
        scores.append([[float(t.score or 0.0) for t in side if t.task == task] for task in tasks])
        uptakes.append([[float(bool(up[t.key])) for t in side if t.task == task] for task in tasks])
    stage = first_stage(uptakes[0], uptakes[1])
    itt = paired_difference(scores[0], scores[1], level)
    effect = complier_effect(scores[0], scores[1], uptakes[0], uptakes[1], level=level)
    known_stage = None if isinstance(stage, NotEstimable) else stage
    return ComplierEffect(
        name,
        title,
        arms[0],
        arms[1],
        len(tasks),
        known_stage.baseline if known_stage else None,
        known_stage.treatment if known_stage else None,
        known_stage.f if known_stage else None,
        itt,
        effect,
        _assumptions(name, known, known_stage, direct),
    )


def _took_up(name: str, trial: TrialUse) -> bool | None:
    """Whether an attempt took the treatment up; a task without a gold asset says nothing about opening it."""
    return trial.called if name == "called" else trial.opened


def _assumptions(
    name: str, sides: list[list[TrialUse]], stage: FirstStage | None, direct: tuple[str, Result] | None
) -> tuple[Assumption, ...]:
    control, treated = sides
    users = sum(bool(_took_up(name, t)) for t in control)
    counts = [{task: sum(t.task == task for t in side) for task in {t.task for t in side}} for side in sides]
    uneven = sum(counts[0].get(task) != n for task, n in counts[1].items())
    return (
        Assumption(
            "assignment",
            "Attempts differ between the arms only by what the arm was given: every task is run by both.",
            True if uneven == 0 else None,  # attempts that do not count may have been lost to the treatment
            f"{uneven} of {len(counts[1])} tasks have another number of counting attempts in the baseline.",
        ),
        Assumption(
            "relevance",
            "Being given the treatment makes the agent use it.",
            None if stage is None else not stage.weak,
            "No shared task." if stage is None else _strength(stage),
        ),
        Assumption(
            "monotonicity",
            "No attempt would use the bundle without the treatment and leave it alone with it.",
            True if users == 0 else None,
            f"{users} of {len(control)} baseline attempts used it"
            + ("; so there is nobody who could." if users == 0 else ": it cannot be ruled out."),
        ),
        _exclusion(name, treated, direct),
    )


def _strength(stage: FirstStage) -> str:
    f = "the same on every task" if stage.f is None else f"F = {stage.f:.1f}"
    return f"Uptake is {stage.baseline:.0%} in the baseline and {stage.treatment:.0%} in the treatment ({f})."


def _exclusion(name: str, treated: list[TrialUse], direct: tuple[str, Result] | None) -> Assumption:
    """What can be seen of the one assumption that no data prove."""
    what = "using the bundle" if name == "called" else "opening the gold asset"
    statement = f"The treatment changes success through {what} and in no other way."
    exposed = sum(t.exposed is True for t in treated)
    seen = [f"The treatment's own text was in the prompt of {exposed} of {len(treated)} attempts"]
    seen[0] += ", and may act without a call." if exposed else "."
    holds = None
    if name == "opened":
        near = sum(bool(t.called) and not t.opened for t in treated)
        seen.append(f"{near} attempts used the bundle without opening the gold asset; other assets may act too.")
    if direct is not None:
        title, result = direct
        limits = None if isinstance(result, NotEstimable) else result.interval
        if limits is not None:
            holds = False if limits.low > 0 or limits.high < 0 else None
            seen.append(f"{title}: {limits.low:+.2f} to {limits.high:+.2f}.")
        else:
            seen.append(f"{title}: no interval ({result.value or 0.0:+.2f}).")
    return Assumption("exclusion", statement, holds, " ".join(seen))
