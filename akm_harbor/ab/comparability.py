"""May these two arms be compared: every setting that could explain a difference, graded."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pandas as pd

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.result import Check, Grade
from akm_harbor.errors import UsageError

UNRECORDED = "not recorded"


@dataclass(frozen=True, slots=True)
class _Setting:
    """A setting that both arms should share."""

    name: str
    title: str
    column: str
    differs: Grade
    detail: str


_SETTINGS = (
    _Setting("model", "Model", "model_name", "fatal", "Another model explains any difference."),
    _Setting("timeout-multiplier", "Timeout multiplier", "timeout_multiplier", "fatal", "More time is more success."),
    _Setting("timeouts", "Timeout overrides", "timeouts_json", "fatal", "More time is more success."),
    _Setting("agent-timeout", "Agent time limit", "agent_timeout_seconds", "fatal", "More time is more success."),
    _Setting("resources", "Resource overrides", "resources_json", "caveat", "More memory or processors may help."),
    _Setting("environment", "Environment", "environment", "caveat", "Environments differ in speed and faults."),
    _Setting("harbor", "Harbor version", "harbor_version", "caveat", "Harbor versions treat errors differently."),
    _Setting("opencode", "opencode version", "opencode_version", "caveat", "Another agent version is another agent."),
    _Setting("agent-version", "Agent version", "agent_version", "note", "Another agent version is another agent."),
    _Setting("toolchain", "Toolchain digest", "toolchain_digest", "caveat", "The arms ran different tools."),
    _Setting("install", "Install mode", "install", "caveat", "The arms were installed in different ways."),
    _Setting("title", "opencode's title request", "title", "caveat", "It can swallow the plugin's injection."),
    _Setting("retries", "Retries allowed", "max_retries", "caveat", "Retries change how many attempts count."),
    _Setting("tokens", "Token accounting", "token_source", "note", "Tokens counted in different ways."),
    _Setting("concurrency", "Trials at once", "n_concurrent", "note", "Load may slow trials into time-outs."),
)


def comparability(
    baseline: Arm, treatment: Arm, *, strict: bool = False, accept: tuple[str, ...] = ()
) -> tuple[Check, ...]:
    """Compare the settings of two arms.

    Args:
        baseline: the baseline's attempts.
        treatment: the treatment's.
        strict: caveats become fatal.
        accept: names of checks whose difference is intended; their grade falls to a caveat.

    Returns:
        Every check, worst first; `fatal` means that the difference must not be read as the treatment's.

    Raises:
        UsageError: `accept` names a check that does not exist.
    """
    checks = [_setting(s, baseline.attempts, treatment.attempts) for s in _SETTINGS]
    checks += [check(baseline, treatment) for check in _SPECIAL]
    known = {c.name for c in checks}
    unknown = sorted(set(accept) - known)
    if unknown:
        raise UsageError(f"no comparability check {unknown[0]!r}", hint=f"There are {', '.join(sorted(known))}.")
    graded = [_final(c, strict=strict, accepted=c.name in accept) for c in checks]
    order: dict[Grade, int] = {"fatal": 0, "caveat": 1, "note": 2, "ok": 3}
    return tuple(sorted(graded, key=lambda c: (order[c.grade], not c.compared)))


def _final(check: Check, *, strict: bool, accepted: bool) -> Check:
    if accepted and check.grade in {"fatal", "caveat"}:
        return replace(check, grade="caveat", accepted=True, detail=f"{check.detail} Accepted as intended.".strip())
    if strict and check.grade == "caveat":
        return replace(check, grade="fatal")
    return check


def _values(attempts: pd.DataFrame, column: str) -> list[str]:
    values = attempts[column].dropna().unique()
    return sorted({f"{v:g}" if isinstance(v, float) else str(v) for v in values})


def _listed(values: list[str]) -> str:
    if not values:
        return UNRECORDED
    return ", ".join(values[:4]) + (f", … ({len(values)} values)" if len(values) > 4 else "")


def _setting(setting: _Setting, a: pd.DataFrame, b: pd.DataFrame) -> Check:
    if setting.column == "agent_timeout_seconds":
        return _task_timeouts(setting, a, b)
    left, right = _values(a, setting.column), _values(b, setting.column)
    grade: Grade = "ok"
    detail = ""
    if not left or not right:
        grade, detail = "note", "Recorded in one arm only." if left or right else "Recorded in neither arm."
    elif left != right:
        grade, detail = setting.differs, setting.detail
    elif len(left) > 1:
        grade, detail = "note", "Several values, the same ones in both arms."
    return Check(
        setting.name, setting.title, grade, _listed(left), _listed(right), detail, compared=bool(left and right)
    )


def _by_task(attempts: pd.DataFrame, column: str) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for task, value in zip(attempts["task"].to_numpy(), attempts[column].array, strict=True):
        if not pd.isna(value):
            found.setdefault(str(task), set()).add(str(value))
    return {task: frozenset(values) for task, values in found.items()}


def _task_timeouts(setting: _Setting, a: pd.DataFrame, b: pd.DataFrame) -> Check:
    """Time limits belong to tasks, so they are compared task by task."""
    left, right = _by_task(a, setting.column), _by_task(b, setting.column)
    shared = left.keys() & right.keys()
    texts = _listed(_values(a, setting.column)), _listed(_values(b, setting.column))
    differing = sorted(t for t in shared if left[t] != right[t])
    if not shared:
        return Check(
            setting.name, setting.title, "note", *texts, "Not known for both arms on any task.", compared=False
        )
    if differing:
        return Check(setting.name, setting.title, "fatal", *texts, f"{setting.detail} Differs on {_some(differing)}.")
    return Check(setting.name, setting.title, "ok", *texts)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _digests(a: Arm, b: Arm) -> Check:
    name, title = "task-digests", "Task contents"
    for column in ("task_digest", "task_checksum"):
        left, right = _by_task(a.attempts, column), _by_task(b.attempts, column)
        shared = left.keys() & right.keys()
        if not shared:
            continue
        differing = sorted(t for t in shared if left[t] != right[t])
        total = len(set(a.tasks) & set(b.tasks))
        texts = f"{len(left)} tasks with a digest", f"{len(right)} tasks with a digest"
        if differing:
            detail = f"{len(differing)} of {len(shared)} shared tasks differ in content: {_some(differing)}."
            return Check(name, title, "fatal", *texts, detail)
        if len(shared) < total:
            return Check(name, title, "note", *texts, f"Compared on {len(shared)} of {total} shared tasks.")
        return Check(name, title, "ok", *texts, f"The same on all {total} shared tasks.")
    return Check(
        name, title, "note", UNRECORDED, UNRECORDED, "No shared task has a digest in both arms.", compared=False
    )


def _task_sets(a: Arm, b: Arm) -> Check:
    left, right = set(a.tasks), set(b.tasks)
    texts = f"{len(left)} tasks", f"{len(right)} tasks"
    only = sorted(left - right), sorted(right - left)
    if not only[0] and not only[1]:
        return Check("tasks", "Task set", "ok", *texts, "Both arms ran the same tasks.")
    hint = f" {same} of them differ only by a prefix: see --strip-prefix." if (same := alike(*only)) else ""
    parts = [f"only {arm.name}: {_some(names)}" for arm, names in zip((a, b), only, strict=True) if names]
    return Check("tasks", "Task set", "caveat", *texts, f"Left out of the comparison: {'; '.join(parts)}.{hint}")


def alike(left: Iterable[str], right: Iterable[str]) -> int:
    """How many names of both sides are the same after their last slash."""
    return len({n.rpartition("/")[2] for n in left} & {n.rpartition("/")[2] for n in right})


def _renamed(a: Arm, b: Arm) -> Check:
    """Names that were made equal by a decision of the person who compares."""
    changed = [
        int((arm.attempts["task"] != arm.attempts["task_name"]).groupby(arm.attempts["task"]).any().sum())
        for arm in (a, b)
    ]
    texts = [f"{n} tasks renamed" if n else "as recorded" for n in changed]
    detail = "Paired by names that a mapping or --strip-prefix made." if any(changed) else ""
    return Check("task-names", "Task names", "note" if any(changed) else "ok", texts[0], texts[1], detail)


def _attempts(a: Arm, b: Arm) -> Check:
    left, right = a.attempts.groupby("task").size(), b.attempts.groupby("task").size()
    texts = tuple(f"{n.min()}" if n.min() == n.max() else f"{n.min()}-{n.max()}" for n in (left, right))
    same = left.reindex(left.index.intersection(right.index)).eq(right, fill_value=-1)
    uneven = texts[0] != texts[1] or "-" in texts[0] or not same.all()
    detail = "Unequal attempts: every task still has the same weight." if uneven else ""
    return Check("attempts", "Attempts per task", "caveat" if uneven else "ok", texts[0], texts[1], detail)


def _dates(a: Arm, b: Arm) -> Check:
    spans = [(arm.attempts["started_at"].min(), arm.attempts["started_at"].max()) for arm in (a, b)]
    if any(pd.isna(t) for span in spans for t in span):
        return Check("dates", "Dates", "note", UNRECORDED, UNRECORDED, "No start times.", compared=False)
    texts = [f"{lo:%Y-%m-%d %H:%M} to {hi:%Y-%m-%d %H:%M} UTC" for lo, hi in spans]
    gap = max(spans[0][0], spans[1][0]) - min(spans[0][1], spans[1][1])
    if gap > pd.Timedelta(days=7):
        detail = f"{gap.days} days lie between the arms: a hosted model may have changed."
        return Check("dates", "Dates", "caveat", texts[0], texts[1], detail)
    return Check("dates", "Dates", "ok", texts[0], texts[1])


def _cache_accounting(a: Arm, b: Arm) -> Check:
    """A proxy may report no cache reads where the provider does: then token counts are not alike."""
    totals = [(arm.attempts["n_cache_tokens"].sum(), arm.attempts["n_input_tokens"].sum()) for arm in (a, b)]
    texts = [f"{cache / total:.0%} of input" if total else UNRECORDED for cache, total in totals]
    zeros = [total > 0 and cache == 0 for cache, total in totals]
    if all(total > 0 for _, total in totals) and zeros[0] != zeros[1]:
        detail = "One arm reports cache reads and the other none: cost and tokens may be counted differently."
        return Check("cache", "Tokens read from a cache", "caveat", texts[0], texts[1], detail)
    return Check("cache", "Tokens read from a cache", "ok", texts[0], texts[1])


_SPECIAL: tuple[Callable[[Arm, Arm], Check], ...] = (
    _digests,
    _task_sets,
    _renamed,
    _attempts,
    _dates,
    _cache_accounting,
)
