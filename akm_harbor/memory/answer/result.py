"""Read a study's result back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.columns import CALLS, JUDGE_PROBE, SCORES, TRIALS
from akm_harbor.tables import read_manifest, read_table

KIND = "memory-study"


@dataclass(frozen=True, slots=True)
class StudyResult:
    """A study's result.

    Attributes:
        path: where it was read from.
        trials: `memory_trials`.
        calls: `memory_calls`.
        scores: `memory_scores`, as published.
        probe: `memory_judge_probe`.
        manifest: the manifest.
    """

    path: Path
    trials: pd.DataFrame
    calls: pd.DataFrame
    scores: pd.DataFrame
    probe: pd.DataFrame
    manifest: dict[str, Any]


def read_study(path: Path) -> StudyResult:
    """Read a study's result.

    Raises:
        AkmHarborError: it is none.
    """
    manifest = read_manifest(path)
    if manifest.get("kind") != KIND:
        raise AkmHarborError(
            f"is no study (kind {manifest.get('kind')!r})",
            path=path,
            hint="Make one with `akm-harbor memory run -c study.yaml -o DATASET`.",
        )
    trials, calls, scores, probe = (read_table(path, t).to_pandas() for t in (TRIALS, CALLS, SCORES, JUDGE_PROBE))
    return StudyResult(path, trials, calls, scores, probe, manifest)
