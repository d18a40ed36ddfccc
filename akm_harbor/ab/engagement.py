"""How far the treatment got: offered, injected, called, found, opened; and how attempts that used it fared."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.ab.arms import Arm
from akm_harbor.ab.delivery import verdict_of
from akm_harbor.ab.policies import Policy, scores
from akm_harbor.ab.result import Engagement, Stage
from akm_harbor.tables import read_table
from akm_harbor.trials.columns import TASKS, TOOL_CALLS

_SEEN = (
    ("delivered", "delivered", "treatment_delivered"),
    ("offered", "akm tools offered to the model", "tools_offered"),
    ("injected", "plugin's text in a request of the agent", "context_injected"),
)
_NEEDED = ["root", "trial_path", "akm_verb", "gold_rank"]


def engagement(dataset: Path, arm: Arm, rule: Policy) -> Engagement:
    """The funnel of one arm and the split by use.

    The split is observational: whether an attempt looks into the bundle is the agent's choice, and a task
    on which it looks may be another kind of task.
    """
    attempts = arm.attempts
    stages = [_stage(name, title, attempts[column]) for name, title, column in _SEEN]
    used = [None if pd.isna(n) else bool(n > 0) for n in attempts["n_akm_calls"]]
    stages.append(_stage("called", "model called akm, or read the bundle", used))
    stages += _gold_stages(dataset, attempts, used)
    score = scores(attempts, rule)
    kept = score.notna()
    yes, no = (np.array([u is which for u in used]) for which in (True, False))
    return Engagement(
        arm.name,
        tuple(stages),
        int((yes & kept).sum()),
        _mean(score[yes & kept]),
        int((no & kept).sum()),
        _mean(score[no & kept]),
    )


def _mean(values: "pd.Series[float]") -> float | None:
    return float(values.mean()) if len(values) else None


def _stage(name: str, title: str, values: Iterable[Any]) -> Stage:
    verdicts = [verdict_of(v) for v in values]
    return Stage(name, title, verdicts.count(True), verdicts.count(False), verdicts.count(None))


def _gold_stages(dataset: Path, attempts: pd.DataFrame, used: Sequence[bool | None]) -> list[Stage]:
    """Whether the gold asset was among results, and opened; known where the task names one."""
    tasks = read_table(dataset, TASKS, ["task_name", "gold_ref"]).to_pylist()
    with_gold = {t["task_name"] for t in tasks if t["gold_ref"]}
    due = [task in with_gold and u is not None for task, u in zip(attempts["task_name"], used, strict=True)]
    if not any(due):
        return []
    calls = read_table(dataset, TOOL_CALLS, _NEEDED)
    calls = calls.filter(pc.is_in(calls["trial_path"], pa.array(sorted(attempts["trial_path"]), pa.string())))
    hits = [c for c in calls.to_pylist() if c["gold_rank"] is not None]
    found = {(c["root"], c["trial_path"]) for c in hits}
    opened = {(c["root"], c["trial_path"]) for c in hits if c["akm_verb"] in {"show", "read"}}
    keys = list(zip(attempts["root"], attempts["trial_path"], strict=True))
    stages = []
    for name, title, which in (
        ("found", "gold asset among what came back", found),
        ("opened", "gold asset opened", opened),
    ):
        stages.append(_stage(name, title, [key in which if d else None for key, d in zip(keys, due, strict=True)]))
    return stages
