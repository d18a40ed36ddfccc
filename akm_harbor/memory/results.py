"""Read a probe's result back: a dataset folder, or one of its Parquet files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.columns import RETRIEVAL, TRIALS
from akm_harbor.tables import read_manifest, read_table
from akm_harbor.tables.layout import MANIFEST
from akm_harbor.tables.parquet import parquet_file

AT_K = ("recall_any", "recall_all", "recall_frac", "ndcg_lme", "ndcg_std")
METRICS = (*AT_K, "mrr", "recall_frac_audited", "evidence_in_ctx")


@dataclass(frozen=True, slots=True)
class Result:
    """A probe's result.

    Attributes:
        path: where it was read from.
        trials: `memory_trials`.
        retrieval: `memory_retrieval`; empty when a single file was given.
        manifest: the manifest; empty when a single file was given.
    """

    path: Path
    trials: pd.DataFrame
    retrieval: pd.DataFrame
    manifest: dict[str, Any]

    def protocol(self, granularity: str) -> dict[str, Any]:
        """The protocol at a granularity, from the manifest, else from the rows."""
        listed = self.manifest.get("protocols", {})
        if granularity in listed:
            return dict(listed[granularity])
        rows = self.trials[self.trials["granularity"] == granularity]
        names = ["benchmark", "dataset_sha256", "granularity", "corpus", "topk", "tokenizer"]
        found = {name: rows[name].iloc[0] for name in names} if len(rows) else {}
        return {"id": rows["protocol_id"].iloc[0] if len(rows) else None, **found}


def read_result(path: Path) -> Result:
    """Read a dataset, one of its `memory_trials` files, or such a file that was moved elsewhere.

    Raises:
        AkmHarborError: it is neither, or holds no rows.
    """
    root = path.parent.parent if path.is_file() and (path.parent.parent / MANIFEST).is_file() else path
    if root.is_dir():
        trials, retrieval = read_table(root, TRIALS), read_table(root, RETRIEVAL)
        manifest = read_manifest(root)
    else:
        trials, retrieval, manifest = _file(path), RETRIEVAL.from_rows([]), {}
    if len(trials) == 0:
        raise AkmHarborError(
            "holds no memory_trials", path=path, hint="Make it with `akm-harbor memory probe ... -o DATASET`."
        )
    return Result(path, trials.to_pandas(), retrieval.to_pandas(), manifest)


def _file(path: Path) -> pa.Table:
    try:
        with parquet_file(path) as file:
            table = file.read()
    except (OSError, pa.ArrowInvalid) as error:
        raise AkmHarborError(f"cannot be read as Parquet ({error})", path=path) from error
    missing = [c.name for c in TRIALS.columns if c.required and c.name not in table.column_names]
    if missing:
        raise AkmHarborError(
            f"is no memory_trials file: it lacks {', '.join(missing)}",
            path=path,
            hint="Give what `akm-harbor memory probe` or `memory run` wrote.",
        )
    present = set(table.column_names)
    return pa.Table.from_arrays(
        [table[c.name].cast(c.type) if c.name in present else pa.nulls(len(table), c.type) for c in TRIALS.columns],
        schema=TRIALS.schema(),
    )
