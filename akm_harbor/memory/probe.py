"""Measure retrieval, with no model: any converted benchmark, any arms, in Parquet with a manifest."""

import dataclasses
import platform
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import akm_harbor
from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.checkpoint import Checkpoint
from akm_harbor.memory.columns import RETRIEVAL, TRIALS
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.plan import Plan, Settings
from akm_harbor.memory.unit import OK, UnitResult
from akm_harbor.tables import PROBLEMS, Problems, replace_dataset

__all__ = ["KIND", "ProbeReport", "Settings", "probe"]

KIND = "memory-probe"


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """What a probe did.

    Attributes:
        path: the dataset written.
        questions: questions asked, summed over arms, granularities and repeats.
        failed: rows whose status is not ok.
        resumed: units taken over from an earlier, stopped run.
        problems: what did not fit.
    """

    path: Path
    questions: int
    failed: int
    resumed: int
    problems: Problems


def probe(
    store: Store, settings: Settings, out: Path, progress: Callable[[int, int], None] | None = None
) -> ProbeReport:
    """Probe a converted benchmark and write `memory_trials`, `memory_retrieval`, problems and a manifest.

    Args:
        store: the converted benchmark.
        settings: how.
        out: the dataset to write.
        progress: called with units done and in all.

    Raises:
        AkmHarborError: an arm does not work at all, or the output cannot be written; units that
            were finished are kept beside it and taken over by the next run.
    """
    plan = Plan(store, settings)
    checkpoint = Checkpoint(out)
    results: dict[int, UnitResult] = {}
    resumed = 0
    try:
        for done in plan.results(checkpoint):
            results[done.number] = done.result
            resumed += not done.fresh
            if progress is not None:
                progress(len(results), plan.total)
    except OSError as error:
        raise AkmHarborError(
            f"cannot go on ({error.strerror or error})",
            path=checkpoint.folder,
            hint="Units that were finished are kept there: make room and run the same command again.",
        ) from error
    report = _write(plan, results, out)
    checkpoint.clear()
    return dataclasses.replace(report, resumed=resumed)


def _write(plan: Plan, results: dict[int, UnitResult], out: Path) -> ProbeReport:
    run_id = secrets.token_hex(6)
    problems = Problems()
    statuses: Counter[str] = Counter()
    everything_in: Counter[str] = Counter()
    ordered = [results[number] for number in sorted(results)]
    with replace_dataset(out) as writer:
        for table, parts in ((TRIALS, [r.trials for r in ordered]), (RETRIEVAL, [r.retrieval for r in ordered])):
            whole = pa.concat_tables(parts) if parts else table.from_rows([])
            place = whole.schema.get_field_index("run_id")
            whole = whole.set_column(place, whole.schema.field(place), pa.array([run_id] * len(whole), pa.string()))
            writer.write(table, whole)
        for result in ordered:
            statuses.update(result.trials["status"].to_pylist())
            for arm, full in zip(
                result.trials["arm"].to_pylist(), result.trials["k_ge_corpus"].to_pylist(), strict=True
            ):
                everything_in[arm] += bool(full)
            for kind, detail, action in result.problems:
                problems.add(plan.store.path.name, kind, detail, action)
        saturated = max(everything_in.values(), default=0)
        if saturated:
            problems.add(
                plan.store.path.name,
                "k-not-below-corpus",
                f"{saturated} questions an arm: topk {plan.settings.topk} reaches every document",
                "kept and marked k_ge_corpus; recall there says nothing",
            )
        writer.write(PROBLEMS, problems.table())
        writer.write_manifest(_manifest(plan, run_id, statuses, len(problems)))
    total = statuses.total()
    return ProbeReport(out, total, total - statuses[OK], 0, problems)


def _manifest(plan: Plan, run_id: str, statuses: Counter[str], problems: int) -> dict[str, Any]:
    settings = dataclasses.asdict(plan.settings)
    arms = {arm.label: dataclasses.asdict(described) for arm, described in plan.described.items()}
    for name in ("arms", "jobs", "scheduler"):
        del settings[name]
    return {
        "kind": KIND,
        "run_id": run_id,
        "package": akm_harbor.__version__,
        "python": platform.python_version(),
        "dataset": plan.dataset,
        "arms": arms,
        "settings": settings,
        "protocols": {
            granularity: {"id": protocol.id, **dataclasses.asdict(protocol)}
            for granularity, protocol in plan.protocols.items()
        },
        "statuses": dict(sorted(statuses.items())),
        "problems": problems,
    }
