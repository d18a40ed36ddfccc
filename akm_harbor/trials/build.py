"""From what was read to the tables of the dataset."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from akm_harbor.surrogates import plain
from akm_harbor.tables.dataset import DatasetWriter, read_table, replace_dataset, table_files
from akm_harbor.tables.layout import MANIFEST, STATE
from akm_harbor.tables.parquet import parquet_file
from akm_harbor.tables.problems import PROBLEMS, Problems
from akm_harbor.tables.redacted import redacted
from akm_harbor.trials import cache
from akm_harbor.trials.akm_calls import gold_rank
from akm_harbor.trials.attempt_rows import recorded_rows
from akm_harbor.trials.clean import clean
from akm_harbor.trials.collection import Progress
from akm_harbor.trials.columns import ALL, HARBOR_STATS, TASKS, TRIALS
from akm_harbor.trials.details import DETAIL, Details
from akm_harbor.trials.discover import JobDir, TrialDir
from akm_harbor.trials.manifest import manifest
from akm_harbor.trials.plan import Options, Plan
from akm_harbor.trials.result import timeout_in_force
from akm_harbor.trials.settle import settle
from akm_harbor.trials.stamps import Stamp
from akm_harbor.trials.worker import ChunkRead

_TRIAL_ROWS = 2048
_NOTE_ACTIONS = {
    "naive-timestamp": "read as UTC",
    "zero-tokens": "tokens made null",
    "renamed-trial": "rows kept; a trial's identity is its id",
}

type Where = tuple[JobDir, TrialDir]


def build(
    plan: Plan,
    reads: Iterable[ChunkRead],
    dataset: Path,
    options: Options,
    key: str,
    inputs: list[str],
    progress: Progress | None,
) -> dict[str, Any]:
    """Put a new dataset in the old one's place.

    Args:
        plan: what is there.
        reads: what the trials to read hold, in the plan's order.
        dataset: where.
        options: how to read.
        key: what decides the rows' content, for the cache.
        inputs: what decides which rows there are, for the cache.
        progress: called as trials are done.

    Returns:
        The fields of a `CollectResult`, without the dataset and the time.
    """
    with replace_dataset(dataset) as writer:
        batch = _Batch(writer, plan, options)
        kept = _keep_old_rows(writer, plan, dataset)
        for where, chunk in _placed(plan, reads, progress):
            batch.add(where, chunk)
        for job in plan.found.jobs:
            for trial in job.trials:
                known = plan.reused.get(trial.path)
                if known is not None:
                    batch.remember(trial, *known)
        trials = pa.concat_tables([kept, batch.finish()])
        problems = _problems(plan, batch)
        trials = settle(trials, plan, batch.plans, problems)
        trials = pa.concat_tables([trials, _gone(plan, trials, options, problems)])
        writer.write(TRIALS, trials)
        writer.write(TASKS, clean(TASKS, TASKS.from_rows(_task_rows(plan))))
        writer.write(HARBOR_STATS, HARBOR_STATS.from_rows(_printed_rows(plan)))
        writer.write(PROBLEMS, redacted(problems.table(), keep={"path", "kind"}))
        writer.write_manifest(manifest(plan, options, trials, problems))
        summary: dict[str, Any] = {
            "n_jobs": len(plan.found.jobs),
            "n_trials": len(trials),
            "statuses": _counts(trials["status"]),
            "arms": _counts(trials["arm"]),
            "problems": dict(sorted(Counter(p.kind for p in problems).items())),
        }
        files = [MANIFEST, *(f"{table.name}/part-0.parquet" for table in (*ALL, PROBLEMS))]
        state = batch.state.encoded(
            key=key,
            inputs=inputs,
            summary=summary,
            others=plan.others,
            tasks=plan.tasks.stamps,
            findings=plan.findings(),
            files=files,
        )
        writer.write_extra(STATE, state)
    return {**summary, "n_read": len(plan.todo), "n_reused": len(plan.reused), "unchanged": False}


def _gone(plan: Plan, trials: pa.Table, options: Options, problems: Problems) -> pa.Table:
    """Rows of attempts that were recorded before Harbor deleted their directories."""
    jobs = [(job, plan.jobs[job.path]) for job in plan.found.jobs if plan.jobs[job.path].attempts_gone]
    found = recorded_rows(jobs, trials, options.reward_key, plan.tasks.now_ns, problems) if jobs else []
    columns: dict[str, list[Any]] = {name: [row.get(name) for _, row in found] for name in TRIALS.names}
    columns["arm"] = arms_of(columns, [label for label, _ in found], options.arm_by)
    return clean(TRIALS, TRIALS.from_columns(columns))


def _printed_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    for job in plan.found.jobs:
        for row in plan.jobs[job.path].evals:
            yield {"root": job.root, "job_path": job.rel, **row}


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {str(v["values"]): int(v["counts"]) for v in pc.value_counts(column).to_pylist() if v["values"] is not None}


def _placed(
    plan: Plan, reads: Iterable[ChunkRead], progress: Progress | None
) -> Iterator[tuple[list[Where], ChunkRead]]:
    todo = iter(plan.todo)
    done, total = 0, len(plan.todo)
    for chunk in reads:
        yield list(islice(todo, chunk.n)), chunk
        done += chunk.n
        if progress is not None:
            progress(done, total)


def _keep_old_rows(writer: DatasetWriter, plan: Plan, dataset: Path) -> pa.Table:
    """Copy the rows of unchanged trials from the old dataset; the trials' own are returned."""
    nothing = TRIALS.from_columns({name: [] for name in TRIALS.names})
    if not plan.reused:
        return nothing
    keys = pa.array([f"{entry.root}\0{entry.rel}" for entry, _ in plan.reused.values()])
    old = read_table(dataset, TRIALS)
    kept = old.filter(pc.is_in(_key(old), value_set=keys))
    for table in DETAIL:
        for part in table_files(dataset, table.name):
            with parquet_file(part) as file:
                for rows in file.iter_batches(batch_size=65_536):
                    wanted = pa.Table.from_batches([rows])
                    wanted = wanted.filter(pc.is_in(_key(wanted), value_set=keys))
                    if len(wanted):
                        writer.write(table, wanted)
    return kept


def _key(rows: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(rows["root"], rows["trial_path"], "\0")


class _Batch:
    """Turns reads into Arrow, a few thousand rows at a time, and remembers their stamps."""

    def __init__(self, writer: DatasetWriter, plan: Plan, options: Options) -> None:
        self.state = cache.StateBuilder()
        self.plans: dict[tuple[str, str], str | None] = {}
        self._plan = plan
        self._options = options
        self._columns: dict[str, list[Any]] = {name: [] for name in TRIALS.names}
        self._done: list[pa.Table] = []
        self._details = Details(writer)

    def add(self, where: list[Where], chunk: ChunkRead) -> None:
        """Take in some trials just read."""
        rows, nothing = chunk.rows, [None] * chunk.n
        rels = [f"{job.rel}/{trial.name}" for job, trial in where]
        rows["root"], rows["trial_path"] = [job.root for job, _ in where], rels
        rows["job_name"] = [self._plan.jobs[job.path].columns["job_name"] for job, _ in where]
        rows["submission"] = [job.submission for job, _ in where]
        rows["arm"] = arms_of(rows, chunk.private.get("arm", nothing), self._options.arm_by)
        self._join(where, chunk)
        plans = chunk.private.get("plan", nothing)
        for i, (job, trial) in enumerate(where):
            entry = cache.Entry(job.root, rels[i], plans[i], chunk.problems[i], chunk.notes[i])
            self.remember(trial, entry, chunk.stamps[i])
        keys = {name: rows.get(name, nothing) for name in ("trial_id", "root", "trial_path")}
        self._details.add(keys, chunk.tables)
        for name, column in self._columns.items():
            column.extend(rows.get(name, nothing))
        if len(self._columns["root"]) >= _TRIAL_ROWS:
            self._finish_rows()

    def _join(self, where: list[Where], chunk: ChunkRead) -> None:
        """The columns that need the task."""
        nothing = [None] * chunk.n
        digests, names, paths = (chunk.rows.get(n, nothing) for n in ("task_digest", "task_name", "task_path"))
        limits = chunk.rows.setdefault("agent_timeout_seconds", list(nothing))
        gold: list[tuple[str, ...]] = []
        for i, (job, _) in enumerate(where):
            task = self._plan.tasks.of(digests[i], names[i], paths[i], job.path)
            gold.append(task.gold if task is not None else ())
            if task is not None and limits[i] is None and task.agent_timeout is not None:
                limits[i] = timeout_in_force({n: v[i] for n, v in chunk.private.items()}, task.agent_timeout)
        calls = chunk.tables.get("tool_calls")
        if calls is not None and isinstance(refs := calls.columns.get("akm_refs"), list) and any(gold):
            wanted = chain.from_iterable(map(repeat, gold, calls.counts))
            calls.columns["gold_rank"] = [
                gold_rank(found, asked) if found and asked else None for found, asked in zip(refs, wanted, strict=True)
            ]

    def remember(self, trial: TrialDir, entry: cache.Entry, stamps: list[Stamp]) -> None:
        """Keep what the cache must know about a trial."""
        self.plans[entry.root, entry.rel] = entry.plan
        self.state.add(trial.path, entry, stamps)

    def finish(self) -> pa.Table:
        """Write the rest of the detail tables, and return all new trials rows."""
        self._details.finish()
        self._finish_rows()
        return clean(TRIALS, pa.concat_tables(self._done).combine_chunks())

    def _finish_rows(self) -> None:
        self._done.append(TRIALS.from_columns(self._columns))
        self._columns = {name: [] for name in TRIALS.names}


def arms_of(rows: dict[str, list[Any]], labels: list[str | None], arm_by: str) -> list[str | None]:
    """The arm of each trial (see `collect`); `labels` are the agents' own `arm` kwargs."""
    nothing: list[str | None] = [None] * len(labels)
    column = {"agent": "agent_name", "job": "job_name", "submission": "submission", "model": "model_name"}
    if arm_by == "kwarg":
        return labels
    if arm_by in column:
        return list(rows.get(column[arm_by], nothing))
    agents = rows.get("agent_name", nothing)
    return [a or b or c for a, b, c in zip(labels, rows["submission"], agents, strict=True)]


def _problems(plan: Plan, batch: _Batch) -> Problems:
    """All problems, with paths as the person wrote the inputs."""
    problems = Problems()
    for finding in (*plan.found.findings, *plan.tasks.findings):
        problems.add(_shown(finding.path, plan.found.bases), finding.kind, finding.detail, finding.action)
    for job in plan.found.jobs:
        place = _below(job.root, job.rel)
        for rel, kind, detail, action in plan.jobs[job.path].problems:
            problems.add(_below(place, rel), kind, detail, action)
        if not job.trials:
            problems.add(place, "no-trials", "a job without any trial directory", "no rows")
    notes: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for entry in sorted(batch.state.entries, key=lambda e: (e.root, e.rel)):
        for rel, kind, detail, action in entry.problems:
            problems.add(_below(_below(entry.root, entry.rel), rel), kind, detail, action)
        job_rel, _, name = entry.rel.rpartition("/")
        for kind, detail in entry.notes.items():
            notes.setdefault((_below(entry.root, job_rel), kind), []).append((name, detail))
    for (place, kind), found in notes.items():
        name, detail = found[0]
        problems.add(place, kind, f"{len(found)} trial(s), the first {name}: {detail}", _NOTE_ACTIONS[kind])
    return problems


def _below(place: str, rel: str) -> str:
    return f"{place}/{rel}" if rel and place not in ("", ".") else rel or place


def _shown(path: str, bases: Iterable[tuple[str, str]]) -> str:
    for base, root in ((plain(b), plain(r)) for b, r in bases):
        if path == base or path.startswith(base + os.sep):
            return _below(root, path[len(base) :].lstrip(os.sep))
    return path


def _task_rows(plan: Plan) -> list[dict[str, Any]]:
    plan_tasks = [task.row for task in plan.tasks.by_path.values() if task is not None]
    return sorted(plan_tasks, key=lambda row: (row["task_name"], row["path"]))
