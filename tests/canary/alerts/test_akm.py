import json
from pathlib import Path

import pytest

from akm_harbor.canary.alerts import Settings, akm
from akm_harbor.canary.alerts.rows import from_row
from akm_harbor.canary.history import read_history
from akm_harbor.canary.locate import locate
from akm_harbor.tables.problems import Problems
from tests.canary.support import recorded, unpack

GOLDEN = recorded("golden-alerts.json")


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_the_golden_verdicts(case: dict) -> None:
    settings = Settings(window=case["cfg"].get("windowCycles", 5))
    alerts = akm.evaluate([from_row(row) for row in case["history"]], from_row(case["current"]), settings)
    found = [{"kind": alert.kind.value, "detail": alert.detail, "metrics": dict(alert.metrics)} for alert in alerts]
    assert found == case["alerts"]


@pytest.mark.parametrize("recording", ["collapse", "real", "odd"])
def test_every_alert_and_event_akm_wrote(tmp_path: Path, recording: str) -> None:
    """Kinds as stored in each row, and sentences and numbers as in the events beside them."""
    unpack(f"{recording}/state.db", tmp_path / "state.db")
    history = read_history(locate(tmp_path), "x", Problems())
    cycles = [from_row(row) for row in history.cycles]
    said = []
    for position, row in enumerate(history.cycles):
        alerts = akm.evaluate(cycles[:position], cycles[position])
        assert [alert.kind.value for alert in alerts] == json.loads(row["alerts_json"])
        said += [(alert.kind.value, alert.detail, dict(alert.metrics), row["run_id"]) for alert in alerts]
    events = [(e["kind"], e["detail"], json.loads(e["metrics_json"]), e["run_id"]) for e in history.events]
    assert said == events
    assert len(events) == {"collapse": 15, "real": 13, "odd": 0}[recording]
