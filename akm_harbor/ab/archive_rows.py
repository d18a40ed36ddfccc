"""The rows behind one comparison: those of its arms and nothing else, fit to be published."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.ab.archive_secrets import Cleaner, cleaner
from akm_harbor.tables import PROBLEMS, read_manifest, read_table, replace_dataset
from akm_harbor.tables.columns import Table
from akm_harbor.trials.columns import ALL, HARBOR_STATS, TASKS, TRIALS
from akm_harbor.trials.manifest import facts, input_digests

_JOINED = ("job_id", "trial_id", "trial_path", "job_path", "trial_name", "task_name", "arm", "call_id", "index")
"""Columns that tables are joined or arms are picked by: never rewritten. A secret there stops the export."""
_FOR_A_LINE = (
    *("job_id", "job_name", "trial_id", "trial_name", "trial_path", "root", "task_name", "arm", "agent_name", "source"),
    *("status", "reward", "exception_cause", "result_sha256"),
)


@dataclass(frozen=True, slots=True)
class Rows:
    """The tables of an archive.

    Attributes:
        tables: every table with rows of the comparison.
        manifest: the dataset's manifest, its counts made again from these rows.
        cleaner: what was taken out.
    """

    tables: dict[Table, pa.Table]
    manifest: dict[str, Any]
    cleaner: Cleaner


def rows_of(dataset: Path, by: str, arms: tuple[str, str], placebos: Sequence[str] = ()) -> Rows:
    """Pick the arms' rows out of every table and clean them.

    Args:
        dataset: a dataset's folder.
        by: the column that names the two arms.
        arms: the two arms.
        placebos: arms, by the `arm` column, that the report sets beside the two.

    Raises:
        AkmHarborError: not a dataset.
    """
    whole = read_table(dataset, TRIALS)
    of_two, beside = (pc.is_in(whole[c], pa.array(names, pa.string())) for c, names in ((by, arms), ("arm", placebos)))
    wanted = pc.fill_null(pc.or_kleene(of_two, beside), fill_value=False)
    trials = whole.filter(wanted)
    tables = {TRIALS: trials}
    for table in ALL:
        if table is not TRIALS:
            tables[table] = _of_these(read_table(dataset, table), table, trials)
    tables[PROBLEMS] = _problems(read_table(dataset, PROBLEMS), trials)
    roots = [r for r in trials["root"].unique().to_pylist() if r]
    tables[TRIALS] = pa.concat_tables([trials, _same_jobs(whole.filter(pc.invert(wanted)), tables[HARBOR_STATS])])
    paths = [str(p) for p in trials["task_path"].unique().to_pylist() + tables[TASKS]["path"].to_pylist() if p]
    clean = cleaner(roots, paths)
    cleaned = {table: clean.table(rows, _JOINED) for table, rows in tables.items()}
    return Rows(cleaned, _manifest(clean.value(read_manifest(dataset)), cleaned, len(whole)), clean)


def _same_jobs(others: pa.Table, printed: pa.Table) -> pa.Table:
    """Other arms' trials of jobs of which Harbor printed a line, with what it takes to make that line again.

    Harbor's lines know agents, not arms, so two arms of a job may share one. Nothing else of them is published.
    """
    jobs = set(zip(printed["root"].to_pylist(), printed["job_path"].to_pylist(), strict=True))
    pairs = zip(others["root"].to_pylist(), others["trial_path"].to_pylist(), strict=True)
    rows = others.filter(pa.array([(root, path.rpartition("/")[0]) in jobs for root, path in pairs], pa.bool_()))
    return TRIALS.from_columns({c: rows[c].to_pylist() for c in _FOR_A_LINE})


def _of_these(rows: pa.Table, table: Table, trials: pa.Table) -> pa.Table:
    """A table's rows that belong to these trials, their jobs or their tasks."""
    columns = set(table.names)
    if table is TASKS:
        return rows.filter(pc.is_in(rows["task_name"], trials["task_name"].combine_chunks()))
    if {"root", "trial_path"} <= columns:
        keys, name = set(zip(trials["root"].to_pylist(), trials["trial_path"].to_pylist(), strict=True)), "trial_path"
    elif {"root", "job_path"} <= columns:
        keys, name = _jobs(trials), "job_path"
    else:
        return rows.slice(0, 0)
    mine = pc.is_in(rows[name], pa.array(sorted({k for _, k in keys if k is not None}), pa.string()))
    rows = rows.filter(mine)
    pairs = zip(rows["root"].to_pylist(), rows[name].to_pylist(), strict=True)
    return rows.filter(pa.array([pair in keys for pair in pairs], pa.bool_()))


def _jobs(trials: pa.Table) -> set[tuple[str | None, str]]:
    pairs = zip(trials["root"].to_pylist(), trials["trial_path"].to_pylist(), strict=True)
    return {(root, str(path).rpartition("/")[0]) for root, path in pairs}


def _problems(problems: pa.Table, trials: pa.Table) -> pa.Table:
    """Problems of these trials and of their jobs."""
    places = {
        f"{root or ''}/{path}".lstrip("/") if not root else f"{root}/{path}"
        for root, trial in zip(trials["root"].to_pylist(), trials["trial_path"].to_pylist(), strict=True)
        for path in (trial, str(PurePosixPath(trial).parent))
    }
    mine = [bool({str(p), *map(str, PurePosixPath(p).parents)} & places) for p in problems["path"].to_pylist()]
    return problems.filter(pa.array(mine, pa.bool_()))


def _manifest(manifest: dict[str, Any], tables: Mapping[Table, pa.Table], n_whole: int) -> dict[str, Any]:
    """The dataset's manifest, with what follows from the rows made again from these rows."""
    return {**manifest, **derived(manifest, tables[TRIALS], tables[PROBLEMS]), "trials_in_dataset": n_whole}


def derived(manifest: Mapping[str, Any], trials: pa.Table, problems: pa.Table) -> dict[str, Any]:
    """What of an archive's manifest follows from its rows."""
    roots = [r for r in trials["root"].unique().to_pylist() if r is not None]
    jobs = {str(i.get("root")): i.get("n_jobs") for i in manifest.get("inputs", []) if isinstance(i, dict)}
    found = input_digests(trials.filter(pc.is_valid(trials["root"])), roots)
    inputs = [
        {"root": root, "n_jobs": jobs.get(root), "n_trials": n, "digest": digest} for root, (n, digest) in found.items()
    ]
    return {**facts(trials, problems), "inputs": inputs}


def write_rows(rows: Rows, folder: Path) -> Path:
    """Write the rows as a dataset and return its folder."""
    with replace_dataset(folder) as writer:
        for table, content in rows.tables.items():
            writer.write(table, content)
        writer.write_manifest(rows.manifest)
    return folder
