import json
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def arms():
    """19 tasks x 3 attempts in two arms, with known answers."""
    path = Path(__file__).parent.parent / "data" / "stats" / "stats_reference.json"
    fixture = json.loads(path.read_text())["fixtures"]["ab19x3"]
    return fixture["arm_a"], fixture["arm_b"]
