"""Why an attempt failed, as far as its own steps tell, with the steps that decided it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from akm_harbor.ab.funnel import groups
from akm_harbor.ab.use import TrialUse, Use

LOW_RANK = 3
"""Below this rank a gold asset counts as ranked low: hit lists are read from their top."""

FOLLOWED = 0.5
"""Share of the withheld words that a write must hold to count as following the asset."""

MODES: dict[str, str] = {
    "solved": "solved",
    "not-delivered": "the treatment did not reach the agent",
    "never-looked": "did not look into the bundle",
    "gold-absent": "looked, and the gold asset never came back",
    "gold-low": f"looked, and the gold asset came back below rank {LOW_RANK} only",
    "found-not-opened": "the gold asset came back high up, and nothing was opened",
    "opened-wrong": "the gold asset came back, and another one was opened",
    "opened-ignored": "opened the gold asset, and what it wrote then does not follow it",
    "followed-failed": "followed the gold asset and still failed",
    "no-gold": "failed on a task that has no recorded gold asset",
    "no-treatment": "failed on an arm without the treatment",
    "unscored": "has no score under this policy",
    "unknown": "its tool calls are not known",
}
"""Every attempt has exactly one."""


type Reason = tuple[str, tuple[Use, ...], str]
"""Mode, the uses that decided it, and why."""


@dataclass(frozen=True, slots=True)
class TrialMode:
    """How one attempt ended, and why.

    Attributes:
        steps: ATIF ids of the steps that decided it, in order; empty where the absence of a step did.
        calls: the same as places among the trial's tool calls.
        why: one sentence.
    """

    root: str | None
    trial_path: str
    trial_name: str
    arm: str
    task: str
    family: str | None
    mode: str
    score: float | None
    steps: tuple[int, ...]
    calls: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ModeCounts:
    """How often each mode occurs in an arm, or in one task family of it (`family` None: the whole arm)."""

    arm: str
    family: str | None
    n: int
    counts: dict[str, int]


def failure_modes(trials: Iterable[TrialUse]) -> tuple[TrialMode, ...]:
    """Classify every attempt."""
    return tuple(_classified(trial) for trial in trials)


def _classified(t: TrialUse) -> TrialMode:
    mode, deciding, why = failure_mode(t)
    steps = tuple(dict.fromkeys(u.step for u in deciding if u.step is not None))
    calls = tuple(u.index for u in deciding)
    return TrialMode(t.root, t.trial_path, t.trial_name, t.arm, t.task, t.family, mode, t.score, steps, calls, why)


def failure_mode(t: TrialUse) -> Reason:
    """One attempt's mode, the uses that decided it, and the reason as a sentence."""
    if t.score is None:
        return "unscored", (), "It has no reward that counts."
    if t.score >= 1:
        return "solved", _decisive(t), "The verifier accepted the result."
    if t.given and t.delivered is not False:
        return _after_reading(t, (), tuple(u for u in t.uses if u.kind == "write"), "was given in the prompt")
    return _not_reached(t) or _having_looked(t)


def _not_reached(t: TrialUse) -> Reason | None:
    """It failed before there was anything to look into, or without looking."""
    if t.delivered is False and not t.placebo:
        return "not-delivered", (), f"The treatment did not reach the agent: {', '.join(t.reasons)}."
    if t.delivered is None and not t.exposed and not t.called:
        return "no-treatment", (), "The arm has no akm, and the attempt failed without it."
    if t.called is None:
        return "unknown", (), "Neither trajectory nor printed stream tells what it called."
    if not t.looks:
        tools = " (it was offered no akm tool)" if t.offered is False else ""
        return "never-looked", (), f"No call looked into the bundle{tools}."
    return None


def _having_looked(t: TrialUse) -> Reason:
    if not t.gold:
        return "no-gold", t.looks, "It looked; no asset is recorded as this task's answer."
    if t.opening is not None:
        return _after_reading(t, (t.opening,), t.writes_after_opening, "was opened")
    return _without_opening(t)


def _decisive(t: TrialUse) -> tuple[Use, ...]:
    """What led to a success, where the bundle did: the look-up that found the asset, its opening, the writes."""
    if t.opening is None:
        return ()
    first = next((u for u in t.looks if u.gold_rank is not None and u.answered and u.index < t.opening.index), None)
    return (*((first,) if first else ()), t.opening, *t.writes_after_opening)


def _after_reading(t: TrialUse, opening: tuple[Use, ...], writes: tuple[Use, ...], how: str) -> Reason:
    """The gold asset was read: was it followed?"""
    asset = ", ".join(t.gold) or "the bundle"
    if not writes:
        return "opened-ignored", opening, f"{asset} {how}, and nothing was written after that."
    if not t.withheld:
        note = "the task declares no words to tell following from ignoring by"
        return "followed-failed", (*opening, *writes), f"{asset} {how} and something was written after it; {note}."
    held = [w for w in t.withheld if any(w in u.words for u in writes)]
    share = f"{len(held)} of {len(t.withheld)} words that only the bundle tells"
    if len(held) >= FOLLOWED * len(t.withheld):
        told = tuple(u for u in writes if u.words)
        return "followed-failed", (*opening, *told), f"{asset} {how}, and what was written holds {share}."
    return "opened-ignored", (*opening, *writes), f"{asset} {how}, but what was written holds {share}."


def _without_opening(t: TrialUse) -> Reason:
    """It looked, and did not open the gold asset."""
    asset = ", ".join(t.gold)
    seen = [u for u in t.looks if u.gold_rank is not None and u.answered]
    opened = tuple(u for u in t.looks if u.kind == "open" and u.answered)
    if not seen:
        empty = sum(not u.answered for u in t.looks)
        vain = f", {empty} of them empty-handed" if empty else ""
        return "gold-absent", t.looks, f"{asset} was not among what {len(t.looks)} look(s) brought{vain}."
    best = min(seen, key=lambda u: u.gold_rank or 0)
    if (best.gold_rank or 0) > LOW_RANK:
        return "gold-low", (best, *opened), f"{asset} came back at rank {best.gold_rank} at best."
    if opened:
        names = ", ".join(dict.fromkeys(ref for u in opened for ref in u.refs))
        return "opened-wrong", (best, *opened), f"{asset} came back at rank {best.gold_rank}, but {names} was opened."
    return "found-not-opened", (best,), f"{asset} came back at rank {best.gold_rank}, and no asset was opened."


def mode_counts(trials: Iterable[TrialUse], modes: Iterable[TrialMode]) -> tuple[ModeCounts, ...]:
    """Modes counted by arm, and by family of each arm, in the order of `MODES`."""
    of = {(m.root, m.trial_path): m.mode for m in modes}
    rows = []
    for arm, family, mine in groups(trials):
        counts = Counter(of[t.key] for t in mine)
        rows.append(ModeCounts(arm, family, len(mine), {mode: counts[mode] for mode in MODES if counts[mode]}))
    return tuple(rows)
