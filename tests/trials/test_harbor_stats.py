"""What Harbor printed for a job is kept beside the trials."""

import json
import shutil

from akm_harbor.resources import resource
from akm_harbor.tables import read_table
from akm_harbor.trials import collect
from akm_harbor.trials.columns import HARBOR_STATS


def test_printed_numbers_are_kept_and_follow_the_job(tmp_path):
    jobs = tmp_path / "jobs"
    shutil.copytree(resource("notebooks", "sample", "ab-jobs"), jobs)
    collect([jobs], tmp_path / "dataset")
    rows = read_table(tmp_path / "dataset", HARBOR_STATS).to_pylist()
    assert {(r["job_path"].rpartition("/")[2], r["eval_key"], r["n_trials"], r["n_errors"]) for r in rows} == {
        ("ab-baseline", "pre-opencode__scripted__abtasks", 24, 0),
        ("ab-treatment", "akm-opencode__scripted__abtasks", 24, 0),
    }
    baseline = next(r for r in rows if "pre-" in r["eval_key"])
    assert abs(baseline["mean"] - 13 / 24) < 1e-12
    assert list(json.loads(baseline["pass_at_k_json"])) == ["2"]
    result = jobs / "ab-baseline" / "result.json"
    changed = json.loads(result.read_text())
    changed["stats"]["evals"] = {"x__y__z": {"n_trials": "many", "metrics": [{"sum": 3}, 7], "pass_at_k": None}}
    result.write_text(json.dumps(changed))
    collect([jobs], tmp_path / "dataset")
    odd = next(r for r in read_table(tmp_path / "dataset", HARBOR_STATS).to_pylist() if r["eval_key"] == "x__y__z")
    assert (odd["n_trials"], odd["mean"], odd["pass_at_k_json"]) == (None, None, "{}")
