"""A collector killed at any moment leaves the old dataset or the new one, whole."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from akm_harbor.tables import read_frame
from akm_harbor.trials import collect
from tests.trials.conftest import Jobs

pytestmark = pytest.mark.skipif(os.name != "posix", reason="SIGKILL")


def test_sigkill_at_random_moments(jobs: Jobs, tmp_path: Path) -> None:
    rng = random.Random(20260101)
    for i in range(60):
        jobs.trial("one", f"t{i:02d}__AAAAAAA", verifier_result={"rewards": {"reward": 0.0}})
    dataset = tmp_path / "out" / "dataset"
    code = f"from akm_harbor.trials import collect; collect([{str(jobs.root)!r}], {str(dataset)!r}, workers=2)"
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    whole = time.monotonic() - began
    for round_ in range(1, 5):
        reward = round_ / 10
        for file in (jobs.root / "one").glob("*/result.json"):
            result = json.loads(file.read_text())
            result["verifier_result"]["rewards"]["reward"] = reward
            file.write_text(json.dumps(result))
        before = set(read_frame(dataset, "trials").reward)
        process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0.2, 1.1) * whole)
        process.send_signal(signal.SIGKILL)
        process.wait()
        rows = read_frame(dataset, "trials")
        assert len(rows) == 60
        assert set(rows.reward) in (before, {reward})
    collect([jobs.root], dataset)
    assert set(read_frame(dataset, "trials").reward) == {0.4}
    # What the killed runs left beside it is swept up.
    assert [p.name for p in dataset.parent.iterdir()] == ["dataset"]
