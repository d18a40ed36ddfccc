import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.report.verdict import to_plain, write_json, write_output
from akm_harbor.stats.results import Estimate, Interval, NotEstimable


@dataclass(frozen=True)
class Thing:
    when: datetime
    where: Path
    numbers: tuple[float, ...]


def test_plain_forms(tmp_path):
    thing = Thing(datetime(2026, 1, 2, tzinfo=UTC), Path("a/b"), (np.float64(0.5), np.int64(3)))
    write_json(tmp_path / "new" / "x.json", {"thing": thing, 1: {True}})
    assert json.loads((tmp_path / "new/x.json").read_text()) == {
        "thing": {"when": "2026-01-02T00:00:00+00:00", "where": "a/b", "numbers": [0.5, 3]},
        "1": [True],
    }


def test_an_estimate_and_its_absence_can_be_told_apart():
    assert to_plain(Estimate(0.5, "m", "e", 3, Interval(0.1, 0.9, 0.95)))["interval"] == {
        "low": 0.1,
        "high": 0.9,
        "level": 0.95,
    }
    assert to_plain(NotEstimable("one-task", "d", "m", "e", 1))["type"] == "NotEstimable"


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), np.float64("nan"), {"a": [float("-inf")]}])
def test_nan_never_leaves(tmp_path, bad):
    with pytest.raises(ValueError, match="NaN or infinity"):
        write_json(tmp_path / "x.json", bad)
    assert not list(tmp_path.iterdir())


def test_what_has_no_form_is_refused():
    with pytest.raises(TypeError, match="no JSON form"):
        to_plain(object())


def test_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AkmHarborError, match="cannot be written") as caught:
        write_output(tmp_path / "file" / "report.html", "x")
    assert str(tmp_path) in str(caught.value)
