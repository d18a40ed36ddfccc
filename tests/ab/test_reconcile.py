import json

import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.reconcile import BEFORE_026, HEADLINE, SINCE_026

from .support import dataset, matrix, trial


def printed(mean, n=6, key="opencode-control__demo__adhoc", job="a", pass_at_k=None):
    return {
        "root": "jobs",
        "job_path": job,
        "harbor_version": "0.26.0",
        "eval_key": key,
        "n_trials": n,
        "n_errors": 2,
        "mean": mean,
        "pass_at_k_json": json.dumps(pass_at_k or {}),
    }


def lines(tmp_path, *stats):
    """An arm of six trials: 1 0 | 1 1(timed out) | 1(provider failed) and none."""
    late = {"status": "scored_with_error"}
    rows = matrix("a", [[1, 0]])
    rows += [
        trial("a", "t", 0, 1.0),
        trial("a", "t", 1, 1.0, exception_type="AgentTimeoutError", exception_cause="budget", **late),
        trial("a", "u", 0, 1.0, exception_type="ApiError", exception_cause="provider", **late),
        trial("a", "u", 1, None, exception_type="EnvironmentStartTimeoutError", exception_cause="sandbox"),
    ]
    rows += [trial("b", t, k, 1.0) for t in ("task-00", "t", "u") for k in range(2)]
    return analyse(dataset(tmp_path, rows, harbor_stats=stats), "a", "b").reconciled


@pytest.mark.parametrize(("mean", "rule"), [(4 / 6, BEFORE_026), (3 / 4, SINCE_026)])
def test_the_rule_behind_a_printed_mean_is_found(tmp_path, mean, rule):
    (line,) = lines(tmp_path, printed(mean))
    assert rule in line.agrees
    assert {r: n for r, _, n in line.rules}[SINCE_026] == 4
    assert line.remark == "1 trials have no reward. 2 trials have a reward and an error."


def test_a_number_that_no_rule_gives_is_said_to_be_one(tmp_path):
    (line,) = lines(tmp_path, printed(0.123, n=9))
    assert line.agrees == ()
    assert "Harbor counted 9 trials, the dataset holds 6." in line.remark
    assert "No rule gives the printed number" in line.remark


def test_pass_at_k_is_recomputed_beside_it(tmp_path):
    (line,) = lines(tmp_path, printed(None, pass_at_k={"2": 1.0, "5": 0.5, "x": 1}))
    assert line.pass_k == ((2, 1.0, pytest.approx(1.0)), (5, 0.5, None))
    assert "Harbor printed no mean." in line.remark


def test_other_jobs_and_other_agents_are_not_ours(tmp_path):
    assert lines(tmp_path, printed(0.5, job="elsewhere"), printed(0.5, key="oracle__demo__adhoc")) == ()


def test_names_may_hold_the_mark_that_joins_them(tmp_path):
    """Two datasets, one named like the end of the other; Harbor prints no metric for the longer name."""
    one, other = matrix("a", [[1, 0]], source="set"), matrix("a", [[1, 1]] * 2, source="my__set")
    rows = [*one, *[{**r, "task_name": f"x-{r['task_name']}", "trial_path": f"a/x-{r['trial_name']}"} for r in other]]
    keys = ("opencode-control__demo__set", "opencode-control__demo__my__set")
    stats = [printed(mean, n, key) for mean, n, key in ((0.5, 2, keys[0]), (None, 4, keys[1]))]
    data = dataset(tmp_path, [*rows, *matrix("b", [[1, 1]])], harbor_stats=stats)
    found = {line.eval_key: line for line in analyse(data, "a", "b").reconciled}
    assert [{r: (m, n) for r, m, n in found[k].rules}[SINCE_026] for k in keys] == [(0.5, 2), (1.0, 4)]
    assert [found[k].remark for k in keys] == ["", "Harbor printed no mean."]


def test_a_line_that_puts_two_arms_together_is_taken_apart(tmp_path):
    rows = [
        *matrix("a", [[1, 0], [0, 0]]),
        *[{**row, "trial_path": f"a/{row['trial_name']}b"} for row in matrix("b", [[1, 1], [1, 0]])],
    ]
    (of_a, of_b) = analyse(dataset(tmp_path, rows, harbor_stats=[printed(0.5, n=8)]), "a", "b").reconciled
    for line in (of_a, of_b):
        assert set(line.agrees) == {BEFORE_026, SINCE_026}
        assert line.remark == "Harbor's line puts 8 trials together, of the arms a, b; 4 are this arm's."
    assert [{r: m for r, m, _ in line.rules}[HEADLINE] for line in (of_a, of_b)] == [0.25, 0.75]
