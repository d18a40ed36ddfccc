"""The dataset's manifest: what it was made from and by what, without which no number is published."""

import hashlib
import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import akm_harbor
from akm_harbor.surrogates import plain
from akm_harbor.tables.problems import PROBLEMS, Problems
from akm_harbor.trials.columns import ALL
from akm_harbor.trials.plan import Options, Plan

_VERSIONS = {
    "harbor": "harbor_version",
    "agent": "agent_version",
    "opencode": "opencode_version",
    "akm": "akm_version",
    "plugin": "plugin_version",
    "toolchain_digest": "toolchain_digest",
}


def manifest(plan: Plan, options: Options, trials: pa.Table, problems: Problems) -> dict[str, Any]:
    """The manifest of a dataset made from job directories."""
    return {
        "kind": "trials",
        "package": {"name": "akm-harbor", "version": akm_harbor.__version__},
        "collected_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "tables": {table.name: table.version for table in (*ALL, PROBLEMS)},
        "options": {"arm_by": options.arm_by, "reward_key": options.reward_key},
        "inputs": _inputs(plan, trials),
        "tasks": {"known": sum(1 for task in plan.tasks.by_path.values() if task is not None)},
        **facts(trials, problems.table()),
    }


def facts(trials: pa.Table, problems: pa.Table) -> dict[str, Any]:
    """The part of a manifest that follows from the rows, so that it can be made from them again."""
    costs = trials["cost_usd"].drop_null().to_pylist()
    return {
        "versions": {name: _distinct(trials, column) for name, column in _VERSIONS.items()},
        "models": _distinct(trials, "model_name"),
        "arms": _distinct(trials, "arm"),
        "bundles": _distinct(trials, "bundle_digest"),
        "trials": {"n": len(trials), "by_status": _count(trials["status"])},
        "cost_usd": {"total": _total(costs), "trials_with_cost": len(costs)},
        "problems": _count(problems["kind"]),
    }


def _total(values: list[float]) -> float | None:
    """An exact sum: when a table is made again, its rows may lie in other pieces."""
    try:
        return math.fsum(values) if values else None
    except OverflowError:
        return None


def input_digests(trials: pa.Table, roots: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Per root, how many trials came from it and a digest over every result.json read below it."""
    digests = {root: hashlib.sha256() for root in roots}
    counted = dict.fromkeys(digests, 0)
    rows = zip(*(trials[c].to_pylist() for c in ("root", "trial_path", "result_sha256")), strict=True)
    for root, path, sha in sorted((r, p, s or "") for r, p, s in rows):
        digests[root].update(f"{path}\0{sha}\n".encode("utf-8", "replace"))
        counted[root] += 1
    return {root: (counted[root], f"sha256:{digest.hexdigest()}") for root, digest in digests.items()}


def _distinct(trials: pa.Table, column: str) -> list[str]:
    return sorted(str(v) for v in pc.unique(trials[column]).to_pylist() if v is not None)


def _count(column: pa.Array | pa.ChunkedArray) -> dict[str, int]:
    return {str(v["values"]): int(v["counts"]) for v in pc.value_counts(column).to_pylist()}


def _inputs(plan: Plan, trials: pa.Table) -> list[dict[str, Any]]:
    found = input_digests(trials, [plain(root) for _, root in plan.found.bases])
    jobs = dict.fromkeys(found, 0)
    for job in plan.found.jobs:
        jobs[job.root] += 1
    return [
        {"root": root, "n_jobs": jobs[root], "n_trials": n, "digest": digest} for root, (n, digest) in found.items()
    ]
