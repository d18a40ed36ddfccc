"""Pick the arms of a comparison out of a dataset."""

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.ab.policies import NOT_ATTEMPTS
from akm_harbor.errors import AkmHarborError, NotComparableError, UsageError
from akm_harbor.tables import read_table
from akm_harbor.trials.columns import TRIALS

SELECTORS = ("arm", "job_name", "submission", "agent_name", "model_name")
"""Columns of `trials` that may name an arm."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm's rows of the trials table.

    Attributes:
        name: as asked for.
        attempts: trials that were attempts at a task, oldest first.
        n_set_aside: rows that were none (an install check, a trial that was run again).
    """

    name: str
    attempts: pd.DataFrame
    n_set_aside: int

    @property
    def tasks(self) -> list[str]:
        """Names of its tasks, sorted."""
        return sorted(self.attempts["task"].unique())


def load_trials(
    dataset: Path,
    task_names: Mapping[str, str] | None = None,
    only: tuple[str, Collection[str]] | None = None,
    *,
    strip_prefix: bool = False,
) -> pd.DataFrame:
    """Read the trials with plain pandas types and a `task` column that pairs them.

    Args:
        dataset: a dataset's folder.
        task_names: what to call a task, for names that differ between arms but mean the same task.
        strip_prefix: pair by the part of a task's name after its last slash.
        only: a column and the names to keep, to be quick on a large dataset; ignored unless all are there.

    Raises:
        AkmHarborError: not a dataset, or one without trials.
        UsageError: no task has a name that `task_names` names.
    """
    table = read_table(dataset, TRIALS)
    if only is not None and only[0] in SELECTORS and set(only[1]) <= set(table[only[0]].unique().to_pylist()):
        table = table.filter(pc.is_in(table[only[0]], pa.array(sorted(only[1]))))
    frame: pd.DataFrame = table.to_pandas()
    if frame.empty:
        raise AkmHarborError("has no trial", path=dataset, hint="Look at its `problems` table, or collect again.")
    roots = frame["root"].astype(object)
    frame["root"] = roots.where(roots.notna(), None)  # half of a trial's key: NaN would not equal itself
    named = frame["task_name"].fillna(frame["trial_name"].fillna("?").str.rpartition("__")[0])
    if task_names and (only is None or len(only[1]) > 1) and not named.isin(list(task_names)).any():
        # Names that one arm lacks are what a mapping is for; one that fits no arm is another data set's.
        like = difflib.get_close_matches(next(iter(task_names)), named.astype(str).unique(), n=1, cutoff=0.0)
        raise UsageError(
            f"none of the {len(task_names)} task names to pair by is in it, e.g. {next(iter(task_names))!r}",
            path=dataset,
            hint=f"Its tasks are written like {like[0]!r}." if like else None,
        )
    frame["task"] = [_pair_by(str(name), task_names or {}, strip_prefix=strip_prefix) for name in named]
    return frame.sort_values(["started_at", "trial_path"], na_position="last").reset_index(drop=True)


def _pair_by(name: str, task_names: Mapping[str, str], *, strip_prefix: bool) -> str:
    named = task_names.get(name, name)
    return named.rpartition("/")[2] if strip_prefix else named


def arm_names(trials: pd.DataFrame, by: str = "arm") -> list[str]:
    """Names that an arm can be asked for, sorted."""
    return sorted(str(name) for name in trials[by].dropna().unique())


def guess_baseline(trials: pd.DataFrame) -> str:
    """The arm to compare with, where nobody said: the only one, `control`, or the one without a treatment.

    Raises:
        UsageError: several arms could be it.
    """
    names = arm_names(trials)
    if len(names) == 1 or "control" in names:
        return "control" if "control" in names else names[0]
    due = trials.groupby("arm")["treatment_delivered"].count()
    untreated = [name for name in names if due.get(name, 0) == 0]
    if len(untreated) != 1:
        raise UsageError("it is not clear which arm is the baseline", hint=f"Name one of {', '.join(names)}.")
    return untreated[0]


def select_arm(trials: pd.DataFrame, name: str, by: str = "arm") -> Arm:
    """Pick one arm.

    Args:
        trials: from `load_trials`.
        name: the arm's name.
        by: the column that holds it, one of `SELECTORS`.

    Raises:
        UsageError: no such column or arm; the message lists near matches.
        NotComparableError: the arm holds no attempt.
    """
    if by not in SELECTORS:
        raise UsageError(f"arms cannot be told apart by {by!r}", hint=f"Use one of {', '.join(SELECTORS)}.")
    rows = trials[trials[by] == name]
    if rows.empty:
        raise UsageError(f"no arm {name!r} among the {by} names", hint=_near(trials, name, by))
    attempts = rows[~rows["status"].isin(NOT_ATTEMPTS)].reset_index(drop=True)
    if attempts.empty:
        statuses = ", ".join(f"{n} {s}" for s, n in rows["status"].value_counts().items())
        raise NotComparableError(
            f"arm {name!r} has no attempt at a task ({statuses})", hint="Run its trials, then collect again."
        )
    return Arm(name, attempts, len(rows) - len(attempts))


def _near(trials: pd.DataFrame, name: str, by: str) -> str:
    """Names like the one asked for, in this column or in another."""
    known = arm_names(trials, by)
    lower = {k.lower(): k for k in known}
    close = [lower[m] for m in difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.5)]
    close += [k for k in known if name and name.lower() in k.lower() and k not in close]
    hint = f"Did you mean {' or '.join(repr(c) for c in close[:5])}?" if close else ""
    others = [column for column in SELECTORS if column != by and (trials[column] == name).any()]
    if others:
        hint += f" There is a {others[0]} of that name: add `--by {others[0]}`."
    listed = ", ".join(known[:12]) + (f", … ({len(known)} in all)" if len(known) > 12 else "")
    return f"{hint} Known: {listed or 'none'}.".strip()
