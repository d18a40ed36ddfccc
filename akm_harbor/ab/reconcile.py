"""Why Harbor's own numbers differ from ours: each line it printed beside the trials under each rule."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.policies import NOT_ATTEMPTS, errored, has_reward
from akm_harbor.ab.result import Reconciled
from akm_harbor.stats.passk import arm_pass_k
from akm_harbor.stats.results import Estimate
from akm_harbor.tables import read_table
from akm_harbor.trials.columns import HARBOR_STATS, TRIALS

BEFORE_026 = "Harbor before 0.26: no reward counts as 0"
SINCE_026 = "Harbor 0.26: only valid rewards count"
HEADLINE = "ours: mean of the task means, by the headline's policy"
_KEEPS_REWARD = {"budget", "refusal", "unclassified"}
_CLOSE = 1e-9


def reconcile(dataset: Path, arm: Arm, headline: float | None) -> tuple[Reconciled, ...]:
    """One row for each line that Harbor printed for the arm's jobs.

    Args:
        dataset: where the printed numbers are kept.
        arm: the arm's attempts.
        headline: its mean over all its tasks, by the headline's policy.
    """
    own = _by_job(arm.attempts)
    printed = [p for p in read_table(dataset, HARBOR_STATS).to_pylist() if (p["root"], p["job_path"]) in own]
    whole = _by_job(_attempts_of(dataset, {str(p["job_path"]) for p in printed})) if printed else {}
    out = []
    for line in printed:
        key, job = str(line["eval_key"]), (line["root"], line["job_path"])
        names = _names(whole[job], key)
        mine, everyone = _of_line(own[job], names), _of_line(whole[job], names)
        if len(mine):
            out.append(_row(arm, line, mine, everyone if len(everyone) > len(mine) else mine, headline))
    return tuple(out)


def _by_job(attempts: pd.DataFrame) -> dict[tuple[Any, Any], pd.DataFrame]:
    jobs = attempts.assign(job_path=attempts["trial_path"].str.rpartition("/")[0])
    return {(root, job): rows for (root, job), rows in jobs.groupby(["root", "job_path"], dropna=False)}


def _attempts_of(dataset: Path, jobs: set[str]) -> pd.DataFrame:
    """All attempts of these jobs, whatever their arm: Harbor's lines do not know arms, only agents."""
    columns = ["root", "trial_path", "trial_name", "task_name", "arm", "agent_name", "source", "status", "reward"]
    frame: pd.DataFrame = read_table(dataset, TRIALS, [*columns, "exception_cause"]).to_pandas()
    frame = frame[frame["trial_path"].str.rpartition("/")[0].isin(jobs) & ~frame["status"].isin(NOT_ATTEMPTS)]
    return frame.assign(task=frame["task_name"].fillna(frame["trial_name"].str.rpartition("__")[0]))


def _names(rows: pd.DataFrame, key: str) -> tuple[str | None, str | None]:
    """Agent and dataset of one line; its key is agent__model__dataset, the model without its provider or not.

    Names may hold `__` themselves: of several that fit, the longest is meant.
    """
    agents = {n for n in rows["agent_name"].fillna("") if key.startswith(f"{n}__")}
    sources = {n for n in rows["source"].fillna("adhoc") if key.endswith(f"__{n}")}
    return max(agents, key=len, default=None), max(sources, key=len, default=None)


def _of_line(rows: pd.DataFrame, names: tuple[str | None, str | None]) -> pd.DataFrame:
    """The attempts behind one line."""
    agent, source = names
    return rows[(rows["agent_name"].fillna("") == agent) & (rows["source"].fillna("adhoc") == source)]


def _row(
    arm: Arm, printed: dict[str, Any], mine: pd.DataFrame, rows: pd.DataFrame, headline: float | None
) -> Reconciled:
    """One line beside the rules, over all trials that it covers."""
    known = has_reward(rows)
    valid = known & (~errored(rows) | rows["exception_cause"].isin(_KEEPS_REWARD))
    rules = (
        (BEFORE_026, float(rows["reward"].where(known, 0.0).mean()), len(rows)),
        (SINCE_026, float(rows["reward"][valid].mean()) if valid.any() else None, int(valid.sum())),
        (HEADLINE, headline, len(arm.attempts)),
    )
    mean = printed["mean"]
    agrees = tuple(r for r, value, _ in rules if mean is not None and value is not None and abs(value - mean) < _CLOSE)
    return Reconciled(
        arm.name,
        str(printed["job_path"]),
        str(printed["eval_key"]),
        printed["harbor_version"],
        mean,
        printed["n_trials"],
        rules,
        agrees,
        _pass_k(printed["pass_at_k_json"], rows),
        " ".join([*_together(mine, rows), *_remarks(printed, rows, agrees)]),
    )


def _pass_k(text: str | None, rows: pd.DataFrame) -> tuple[tuple[int, float, float | None], ...]:
    """Harbor's pass@k beside the unbiased one with no reward counted as failure, as Harbor has it."""
    printed = json.loads(text or "{}")
    score = rows["reward"].where(has_reward(rows), 0.0)
    groups = [list(s) for _, s in score.groupby(rows["task"])]
    out = []
    for k, value in printed.items():
        if str(k).isdigit() and isinstance(value, (int, float)):
            ours = arm_pass_k(groups, int(k))
            out.append((int(k), float(value), ours.value if isinstance(ours, Estimate) else None))
    return tuple(sorted(out))


def _together(mine: pd.DataFrame, rows: pd.DataFrame) -> list[str]:
    """That Harbor's line covers other arms too."""
    if len(rows) == len(mine):
        return []
    names = ", ".join(sorted(str(a) for a in rows["arm"].dropna().unique()))
    return [f"Harbor's line puts {len(rows)} trials together, of the arms {names}; {len(mine)} are this arm's."]


def _remarks(printed: dict[str, Any], rows: pd.DataFrame, agrees: tuple[str, ...]) -> list[str]:
    parts = []
    missing, late = int((~has_reward(rows)).sum()), int((rows["status"] == "scored_with_error").sum())
    if printed["n_trials"] is not None and printed["n_trials"] != len(rows):
        parts.append(f"Harbor counted {printed['n_trials']} trials, the dataset holds {len(rows)}.")
    if missing:
        parts.append(f"{missing} trials have no reward.")
    if late:
        parts.append(f"{late} trials have a reward and an error.")
    if printed["mean"] is None:
        parts.append("Harbor printed no mean.")
    elif not agrees:
        parts.append("No rule gives the printed number: its trials are not those found here.")
    return parts
