"""Recorded attempts without a directory to superseded rows of the trials table."""

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from akm_harbor.surrogates import plain
from akm_harbor.tables.problems import Problems
from akm_harbor.trials.attempts import FILE
from akm_harbor.trials.columns import TRIALS
from akm_harbor.trials.discover import JobDir
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.job import Job
from akm_harbor.trials.result import Row, config_row, result_row
from akm_harbor.trials.trial import agent_of, own_status
from akm_harbor.trials.values import as_dict, as_text


def recorded_rows(
    jobs: Iterable[tuple[JobDir, Job]], trials: pa.Table, reward_key: str, now_ns: int, problems: Problems
) -> list[tuple[str | None, Row]]:
    """Rows of recorded attempts that have no directory any more, each with its agent's own arm label.

    Args:
        jobs: every job found, with what its files say.
        trials: the rows of the directories that are there.
        reward_key: which key of the rewards is the primary one.
        now_ns: when the collection began.
        problems: takes what does not fit.
    """
    ids = set(trials["trial_id"].to_pylist()) - {None}
    present = dict(zip(_places(trials), trials["own_status"].to_pylist(), strict=True))
    found: list[tuple[str | None, Row]] = []
    for job_dir, job in jobs:
        files = TrialFiles(job_dir.path, now_ns)
        rows = [_row(line, job_dir, job, reward_key, files) for line in job.attempts_gone]
        last = {row["trial_name"]: i for i, row in enumerate(rows)}
        newest = {row["trial_id"]: i for i, row in enumerate(rows) if row.get("trial_id")}
        number = 0
        for i, row in enumerate(rows):
            # Its directory is there: known by its id, else, where the result cannot be read, by being the last.
            there = row.get("trial_id") in ids or (
                present.get((job_dir.root, f"{job_dir.rel}/{row['trial_name']}")) == "unreadable"
                and last[row["trial_name"]] == i
            )
            if there or newest.get(row.get("trial_id"), i) != i:
                continue
            number += 1
            row["trial_path"] = f"{job_dir.rel}/{row['trial_name']}~gone-{number}"
            found.append((row.pop("_label"), row))
        for rel, kind, detail, action in files.problems:
            problems.add(f"{job_dir.root}/{job_dir.rel}/{FILE}", kind, f"{rel}: {detail}", action)
    return found


def _places(trials: pa.Table) -> Iterable[tuple[str, str]]:
    return zip(trials["root"].to_pylist(), trials["trial_path"].to_pylist(), strict=True)


def _row(line: dict[str, Any], job_dir: JobDir, job: Job, reward_key: str, files: TrialFiles) -> Row:
    result = as_dict(line.get("result"))
    ended = "agent_info" in result
    row = result_row(result, reward_key, files)
    for name, value in config_row(as_dict(result.get("config"))).items():
        if value is not None or name not in row:
            row[name] = value
    row["trial_name"] = plain(row.get("trial_name") or "?")
    row["agent_name"] = row.get("agent_name") or agent_of(row["_import_path"])
    row["task_digest"] = as_text(line.get("task_digest"), 200)
    row["_state"] = "read" if ended else "unfinished"
    row |= {
        **job.columns,
        "job_id": job.columns["job_id"] or row.get("job_id"),
        "root": job_dir.root,
        "own_status": own_status(row),
        "status": "superseded",
        "recorded_by": as_text(line.get("by"), 40) or "unknown",
        "_label": row["_arm"],
    }
    return {name: value for name, value in row.items() if name in TRIALS.names or name == "_label"}
