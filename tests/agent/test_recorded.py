"""The recorded treatment trials: what the arms left behind, judged by the collected table."""

from pathlib import Path

import pytest

from akm_harbor.tables.dataset import read_table
from akm_harbor.trials import collect

RECORDED = Path(__file__).parents[1] / "data" / "p0"
WANTED: dict[tuple[str, str], tuple[bool | None, str | None, float | None]] = {
    ("p0-arms", "control"): (None, None, 0),
    ("p0-arms", "oracle-context"): (True, None, 1),
    ("p0-arms", "akm"): (True, None, 1),
    ("p0-placebos", "title-on"): (True, "context-eaten-by-title", 1),
    ("p0-placebos", "tools-only"): (True, None, 1),
    ("p0-placebos", "injection-only"): (True, None, 0),
    ("p0-placebos", "empty-bundle"): (False, "bundle-empty", 0),
    ("p0-placebos", "no-index"): (True, "index-built-by-akm", 1),
    ("p0-broken", "plugin-missing"): (False, "plugin-not-loaded", 0),
    ("p0-broken", "akm-cli-missing"): (False, "plugin-not-loaded", 0),
    ("p0-broken", "akm-exit1"): (False, "akm-cli-failing", 1),
    ("p0-strict", "plugin-missing"): (False, "selfcheck-failed", None),
    ("p0-strict", "akm-cli-missing"): (False, "selfcheck-failed", None),
    ("p0-strict", "akm-exit1"): (False, "selfcheck-failed", None),
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], dict[str, object]]:
    dataset = tmp_path_factory.mktemp("recorded") / "dataset"
    found = collect([RECORDED], dataset)
    assert found.n_trials == 17
    table = read_table(dataset, "trials").to_pylist()
    return {(row["job_name"], row["arm"]): row for row in table if row["task_name"].endswith("port")}


@pytest.mark.parametrize("trial", WANTED, ids="/".join)
def test_the_verdict_on_a_recorded_trial(
    trial: tuple[str, str], rows: dict[tuple[str, str], dict[str, object]]
) -> None:
    delivered, reason, reward = WANTED[trial]
    row = rows[trial]
    assert row["treatment_delivered"] is delivered
    assert row["reward"] == reward
    reasons = row["delivery_reasons"] or []
    assert isinstance(reasons, list)
    assert reason in reasons if reason else reasons == []


def test_every_trial_is_judged(rows: dict[tuple[str, str], dict[str, object]]) -> None:
    assert set(rows) == set(WANTED)
