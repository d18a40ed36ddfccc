import json
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).parent.parent / "data" / "stats" / "stats_reference.json"


@pytest.fixture(scope="session")
def reference() -> dict[str, Any]:
    """Reference values: input, output, tolerance, source."""
    return json.loads(DATA.read_text())


@pytest.fixture(scope="session")
def cases(reference: dict[str, Any]) -> dict[str, Any]:
    return reference["cases"]


@pytest.fixture(scope="session")
def arms(reference: dict[str, Any]) -> tuple[list[list[int]], list[list[int]]]:
    """19 tasks x 3 attempts in two arms: 9 tasks up, 1 down, 9 tied."""
    fixture = reference["fixtures"]["ab19x3"]
    return fixture["arm_a"], fixture["arm_b"]
