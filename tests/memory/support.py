"""Where the reference data lie, and what only runs where somebody has the real files."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parents[1] / "data" / "memory"
LOCOMO = os.environ.get("AKM_HARBOR_LOCOMO")
LOCOMO_SCORES = os.environ.get("AKM_HARBOR_LOCOMO_SCORES")
LONGMEMEVAL_UPSTREAM = os.environ.get("AKM_HARBOR_LONGMEMEVAL_UPSTREAM")
LOCOMO_UPSTREAM = os.environ.get("AKM_HARBOR_LOCOMO_UPSTREAM")
BEAM_UPSTREAM = os.environ.get("AKM_HARBOR_BEAM_UPSTREAM")

needs_locomo = pytest.mark.skipif(not LOCOMO, reason="AKM_HARBOR_LOCOMO names no locomo10.json (CC BY-NC, not shipped)")
needs_locomo_scores = pytest.mark.skipif(not LOCOMO_SCORES, reason="AKM_HARBOR_LOCOMO_SCORES is not set")
needs_longmemeval_upstream = pytest.mark.skipif(
    not LONGMEMEVAL_UPSTREAM, reason="AKM_HARBOR_LONGMEMEVAL_UPSTREAM names no checkout of LongMemEval"
)
needs_locomo_upstream = pytest.mark.skipif(
    not LOCOMO_UPSTREAM, reason="AKM_HARBOR_LOCOMO_UPSTREAM names no checkout of LoCoMo"
)
needs_beam_upstream = pytest.mark.skipif(not BEAM_UPSTREAM, reason="AKM_HARBOR_BEAM_UPSTREAM names no checkout of BEAM")


def lines(name: str) -> list[dict[str, Any]]:
    """The rows of one of our reference files."""
    return [json.loads(line) for line in (DATA / name).read_text().splitlines()]
