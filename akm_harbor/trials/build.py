"""From what was read to the tables of the dataset."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from akm_harbor.tables.columns import TIME, Table
from akm_harbor.tables.dataset import MANIFEST, DatasetWriter, read_table, replace_dataset
from akm_harbor.tables.problems import PROBLEMS, Problems
from akm_harbor.tables.redacted import redacted
from akm_harbor.trials import cache
from akm_harbor.trials.akm_calls import gold_rank
from akm_harbor.trials.attempt_rows import recorded_rows
from akm_harbor.trials.calls import HEAD_CHARS, QUERY_CHARS
from akm_harbor.trials.collection import Progress
from akm_harbor.trials.columns import ALL, HARBOR_STATS, TASKS, TRIALS
from akm_harbor.trials.ctrf import MESSAGE_CHARS as TEST_MESSAGE_CHARS
from akm_harbor.trials.discover import JobDir, TrialDir
from akm_harbor.trials.manifest import manifest
from akm_harbor.trials.plan import Options, Plan
from akm_harbor.trials.pool import read_all
from akm_harbor.trials.result import MESSAGE_CHARS, timeout_in_force
from akm_harbor.trials.settle import settle
from akm_harbor.trials.stamps import Stamp, plain
from akm_harbor.trials.values import micros
from akm_harbor.trials.worker import ChunkRead

_BATCH_ROWS = 16_384
_TRIAL_ROWS = 2048
_DETAIL = tuple(table for table in ALL if table.name not in ("trials", "tasks", "harbor_stats"))
_NOTE_ACTIONS = {
    "naive-timestamp": "read as UTC",
    "zero-tokens": "tokens made null",
    "renamed-trial": "rows kept; a trial's identity is its id",
}

_IDENTITIES = frozenset(
    {"root", "trial_path", "trial_id", "trial_name", "job_id", "job_name", "submission", "task_name", "task_path"}
    | {"task_digest", "task_checksum", "result_sha256", "regrade_of", "call_id", "session_id", "source", "path"}
    # ... and columns that hold one of a few words of ours cannot hold one.
    | {"status", "own_status", "akm_verb", "token_source", "trajectory_source", "exception_cause"}
)
"""What tables and readers join by: a name that looks like a secret stays a name."""
_SAFE = frozenset(TRIALS.names) - {
    *("exception_message", "rewards_json", "timeouts_json", "resources_json", "compliance_json", "agent_kwargs_json"),
    *("agent_version", "model_name", "environment", "arm", "bundle", "context", "title", "install"),
}
"""Trials columns without free text, left out to save time."""
_CUTS = {
    "trials": {"exception_message": MESSAGE_CHARS},
    "tool_calls": {"output_head": HEAD_CHARS, "error": HEAD_CHARS, "akm_query": QUERY_CHARS},
    "tests": {"message": TEST_MESSAGE_CHARS},
}
_JSON = frozenset({"arguments_json"})
"""JSON whose names have not been looked at while reading."""

type Where = tuple[JobDir, TrialDir]
type _Part = tuple[str | None, str, str, int, dict[str, list[Any]]]
"""trial_id, root, trial_path, number of rows, their columns"""


def build(
    plan: Plan, dataset: Path, options: Options, key: str, inputs: list[str], progress: Progress | None
) -> dict[str, Any]:
    """Read what is to be read and put the new dataset in the old one's place.

    Returns:
        The fields of a `CollectResult`, without the dataset and the time.
    """
    with replace_dataset(dataset) as writer:
        batch = _Batch(writer, plan, options)
        kept = _keep_old_rows(writer, plan, dataset)
        for where, chunk in _read(plan, options, progress):
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
        writer.write(TASKS, _clean(TASKS, TASKS.from_rows(_task_rows(plan))))
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
        writer.write_extra(cache.STATE, state)
    return {**summary, "n_read": len(plan.todo), "n_reused": len(plan.reused), "unchanged": False}


def _gone(plan: Plan, trials: pa.Table, options: Options, problems: Problems) -> pa.Table:
    """Rows of attempts that were recorded before Harbor deleted their directories."""
    jobs = [(job, plan.jobs[job.path]) for job in plan.found.jobs if plan.jobs[job.path].attempts_gone]
    found = recorded_rows(jobs, trials, options.reward_key, plan.tasks.now_ns, problems) if jobs else []
    columns: dict[str, list[Any]] = {name: [row.get(name) for _, row in found] for name in TRIALS.names}
    columns["arm"] = arms_of(columns, [label for label, _ in found], options.arm_by)
    return _clean(TRIALS, TRIALS.from_columns(columns))


def _printed_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    for job in plan.found.jobs:
        for row in plan.jobs[job.path].evals:
            yield {"root": job.root, "job_path": job.rel, **row}


def _counts(column: pa.ChunkedArray) -> dict[str, int]:
    return {str(v["values"]): int(v["counts"]) for v in pc.value_counts(column).to_pylist() if v["values"] is not None}


def _read(plan: Plan, options: Options, progress: Progress | None) -> Iterator[tuple[list[Where], ChunkRead]]:
    todo = iter(plan.todo)
    done, total = 0, len(plan.todo)
    for chunk in read_all([t for _, t in plan.todo], options.reward_key, plan.tasks.now_ns, options.workers):
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
    for table in _DETAIL:
        for part in sorted((dataset / table.name).glob("*.parquet")):
            with pq.ParquetFile(part) as file:
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
        self._writer = writer
        self._plan = plan
        self._options = options
        self._columns: dict[str, list[Any]] = {name: [] for name in TRIALS.names}
        self._done: list[pa.Table] = []
        self._details: dict[str, list[_Part]] = {table.name: [] for table in _DETAIL}
        self._waiting = dict.fromkeys(self._details, 0)

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
        trial_ids = rows.get("trial_id", nothing)
        for i, (job, trial) in enumerate(where):
            entry = cache.Entry(job.root, rels[i], plans[i], chunk.problems[i], chunk.notes[i])
            self.remember(trial, entry, chunk.stamps[i])
            for name, columns in chunk.tables[i].items():
                n = len(next(iter(columns.values()), ()))
                if n:
                    self._details[name].append((trial_ids[i], job.root, rels[i], n, columns))
                    self._waiting[name] += n
        for name, column in self._columns.items():
            column.extend(rows.get(name, nothing))
        if len(self._columns["root"]) >= _TRIAL_ROWS:
            self._finish_rows()
        for table in _DETAIL:
            if self._waiting[table.name] >= _BATCH_ROWS:
                self._flush(table)

    def _join(self, where: list[Where], chunk: ChunkRead) -> None:
        """The columns that need the task."""
        nothing = [None] * chunk.n
        digests, names, paths = (chunk.rows.get(n, nothing) for n in ("task_digest", "task_name", "task_path"))
        limits = chunk.rows.setdefault("agent_timeout_seconds", list(nothing))
        for i, (job, _) in enumerate(where):
            task = self._plan.tasks.of(digests[i], names[i], paths[i], job.path)
            if task is None:
                continue
            calls = chunk.tables[i].get("tool_calls")
            if task.gold and calls:
                calls["gold_rank"] = [gold_rank(refs, task.gold) if refs else None for refs in calls["akm_refs"]]
            if limits[i] is None and task.agent_timeout is not None:
                limits[i] = timeout_in_force({n: v[i] for n, v in chunk.private.items()}, task.agent_timeout)

    def remember(self, trial: TrialDir, entry: cache.Entry, stamps: list[Stamp]) -> None:
        """Keep what the cache must know about a trial."""
        self.plans[entry.root, entry.rel] = entry.plan
        self.state.add(trial.path, entry, stamps)

    def finish(self) -> pa.Table:
        """Write the rest of the detail tables, and return all new trials rows."""
        for table in _DETAIL:
            self._flush(table)
        self._finish_rows()
        return pa.concat_tables(self._done)

    def _finish_rows(self) -> None:
        self._done.append(_clean(TRIALS, TRIALS.from_columns(self._columns)))
        self._columns = {name: [] for name in TRIALS.names}

    def _flush(self, table: Table) -> None:
        # An empty table is written too: a dataset always holds all of them.
        parts = self._details[table.name]
        columns: dict[str, list[Any]] = {name: [] for name in table.names}
        for trial_id, root, rel, n, given in parts:
            columns["trial_id"] += [trial_id] * n
            columns["root"] += [root] * n
            columns["trial_path"] += [rel] * n
            for name in table.names[3:]:
                columns[name] += given[name] if name in given else [None] * n
        if table.name == "tool_calls":
            columns["started_at"] = _times(columns["started_at"])
        self._writer.write(table, _clean(table, table.from_columns(columns)))
        self._details[table.name] = []
        self._waiting[table.name] = 0


def _times(values: list[Any]) -> Any:
    """Times, written as ISO 8601 (trajectories) or as microseconds (streams), as one Arrow array."""
    try:
        return pa.array(values, type=pa.string()).cast(TIME)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([v if isinstance(v, int) else micros(v)[0] for v in values], type=TIME)


def _clean(table: Table, rows: pa.Table) -> pa.Table:
    """The rows without secrets, texts cut to their length."""
    keep = _SAFE if table is TRIALS else _IDENTITIES
    return redacted(rows, keep=keep, cuts=_CUTS.get(table.name), names=_JSON)


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
