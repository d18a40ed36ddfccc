import json

import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.result import Options
from akm_harbor.ab.run import verdict_document
from akm_harbor.errors import NotComparableError, UsageError
from akm_harbor.stats.results import Estimate, NotEstimable

from .support import dataset, matrix, trial


def run(tmp_path, a, b, options=None, **over):
    rows = [*matrix("a", a), *matrix("b", b, **over)]
    return analyse(dataset(tmp_path, rows), "a", "b", options)


def test_reference_fixture_from_a_dataset(tmp_path, arms):
    r = run(tmp_path, *arms)
    assert (r.headline.baseline, r.headline.treatment) == pytest.approx((29 / 57, 37 / 57))
    d = r.headline.difference
    assert (d.value, d.se, d.p) == pytest.approx((0.140350877, 0.046416690, 0.007298826))
    assert (d.interval.low, d.interval.high) == pytest.approx((0.042833031, 0.237868724))
    assert r.headline.sign_flip.p == pytest.approx(0.021484375)
    assert r.pairing.correlation == pytest.approx(0.881362594)
    assert r.fixed_tasks.se == pytest.approx(0.06325528553)
    assert (r.verdict.exit_code, r.verdict.outcome) == (0, "improvement")
    assert [f"{p.kind} {p.k}" for p in r.pass_k] == ["pass@k 1", "pass@k 2", "pass^k 2", "pass@k 3", "pass^k 3"]
    assert r.pass_k[0].difference.value == pytest.approx(d.value)
    assert {row.difference for row in r.policies} == {d}  # no error, one answer
    assert 0.13 < r.planning.mde.value < 0.15
    assert len(r.tasks) == 19
    assert r.tasks[0].difference >= r.tasks[-1].difference


def test_verdict_document_is_strict_json_without_attempts(tmp_path, arms):
    text = json.dumps(verdict_document(run(tmp_path, *arms)), allow_nan=False)
    found = json.loads(text)
    assert found["exit_code"] == 0
    assert found["headline"]["difference"]["value"] == pytest.approx(0.140350877)
    assert "trial_name" not in text
    assert len(found["tasks"]) == 19


def test_swapped_arms_regress(tmp_path, arms):
    r = run(tmp_path, arms[1], arms[0])
    assert (r.verdict.exit_code, r.verdict.outcome) == (3, "regression")
    tolerant = Options(margin=0.3)
    assert run(tmp_path, arms[1], arms[0], tolerant).verdict.exit_code == 0


@pytest.mark.parametrize(("margin", "code"), [(0.05, 3), (0.25, 0)])
def test_non_inferiority_wants_the_whole_interval(tmp_path, arms, margin, code):
    mixed = [task[::-1] for task in arms[0]]
    mixed[0], mixed[1] = [0, 0, 1], [1, 0, 0]
    r = run(tmp_path, arms[0], mixed, Options(rule="non-inferior", margin=margin))
    assert r.verdict.exit_code == code


def test_swapping_the_arms_mirrors_every_number(tmp_path, arms):
    one, two = run(tmp_path, *arms), run(tmp_path, arms[1], arms[0])
    assert two.headline.difference.value == pytest.approx(-one.headline.difference.value)
    assert two.headline.sign_flip.p == pytest.approx(one.headline.sign_flip.p)
    assert two.headline.difference.interval.low == pytest.approx(-one.headline.difference.interval.high)


def test_timeouts_with_a_reward_stay_in_the_headline(tmp_path):
    """30 of 100 verified trials ended in a time-out: all 100 count, and the time-outs are reported."""
    late = {"status": "scored_with_error", "exception_type": "AgentTimeoutError", "exception_cause": "budget"}
    rows = matrix("a", [[1, 0, 1, 0]] * 25)
    rows += [
        trial("b", f"task-{i:02d}", k, 1.0, **(late if 4 * i + k < 30 else {})) for i in range(25) for k in range(4)
    ]
    r = analyse(dataset(tmp_path, rows), "a", "b")
    assert r.headline.n_treatment == 100
    by_name = {row.policy: row for row in r.policies}
    assert by_name["fail"].treatment == pytest.approx(0.70)
    assert by_name["exclude"].dropped == tuple(f"task-{i:02d}" for i in range(7))
    assert (r.errors.treatment, r.errors.unscored_treatment) == (30, 0)
    assert [(c.cause, c.types, c.treatment) for c in r.errors.causes] == [("budget", ("AgentTimeoutError",), 30)]
    assert r.errors.balance.p < 1e-6


def test_missing_rewards_are_never_zero_but_bounded(tmp_path):
    """A heavy task whose verifier timed out: only that task's bounds widen."""
    a, b = [[1, 1, 1], [0, 0, 1], [1, 0, 0]], [[1, 1, 0], [0, None, None], [1, 1, 0]]
    r = run(tmp_path, a, b)
    heavy = next(t for t in r.tasks if t.task == "task-01")
    assert heavy.mean_treatment == 0.0
    assert [x.score for x in heavy.treatment] == [0.0, None, None]
    no_reward = r.bounds[0].bounds
    assert no_reward.n_missing == 2
    assert no_reward.best - no_reward.worst == pytest.approx((2 / 3) / 3)
    assert {p.policy: p.n_treatment for p in r.policies}["missing-fails"] == 9


def test_a_task_one_arm_lacks_is_listed_and_bounded(tmp_path):
    r = run(tmp_path, [[1, 1], [0, 1], [1, 0], [0, 0], [1, 1]], [[1, 1], [1, 1]])
    assert r.only_baseline == ("task-02", "task-03", "task-04")
    assert (r.headline.n_tasks, len(r.tasks)) == (2, 5)
    wide = r.bounds[-1]
    assert "tasks that one arm lacks" in wide.title
    assert wide.bounds.n_tasks == 5
    assert wide.bounds.worst < 0 < wide.bounds.best


def test_unequal_attempts_weigh_tasks_alike(tmp_path):
    r = run(tmp_path, [[1], [0, 0, 0, 0, 0], [1, 0]], [[1, 1, 1], [0], [1, 1]])
    assert (r.headline.baseline, r.headline.treatment) == pytest.approx((0.5, 2 / 3))
    assert "same weight" in " ".join(r.headline.difference.notes)
    assert isinstance(r.fixed_tasks, NotEstimable)


@pytest.mark.parametrize(
    ("a", "b", "outcome", "code"),
    [
        ([[1, 0]] * 4, [[1, 0]] * 4, "no-clear-difference", 0),
        ([[0, 0]] * 8, [[1, 1]] * 8, "improvement", 0),
        ([[1, 1]] * 8, [[0, 0]] * 8, "regression", 3),
        ([[1, 1]] * 3, [[0, 0]] * 3, "no-clear-difference", 0),
        ([[1, 1]], [[0, 0]], "undecidable", 4),
        ([[None], [None]], [[1], [1]], "undecidable", 4),
    ],
)
def test_degenerate_arms_get_a_verdict_and_no_false_interval(tmp_path, a, b, outcome, code):
    r = run(tmp_path, a, b)
    assert isinstance(r.headline.difference, NotEstimable)
    assert (r.verdict.outcome, r.verdict.exit_code) == (outcome, code)
    json.dumps(verdict_document(r), allow_nan=False)


def test_non_inferiority_is_not_shown_by_a_constant_loss(tmp_path):
    r = run(tmp_path, [[1, 1]] * 3, [[0, 0]] * 3, Options(rule="non-inferior", margin=0.1))
    assert r.verdict.exit_code == 3


def test_undelivered_treatment_is_no_baseline(tmp_path, arms):
    lost = {"treatment_delivered": False, "delivery_reasons": ["plugin-not-loaded"]}
    rows = [*matrix("a", arms[0]), *matrix("b", arms[1], treatment_delivered=True)]
    broken = [{**row, **lost} if i < 57 + 9 else row for i, row in enumerate(rows)]
    broken[:57] = rows[:57]
    r = analyse(dataset(tmp_path, broken), "a", "b")
    treated = r.delivery[1]
    assert (treated.delivered, treated.undelivered, treated.reasons) == (48, 9, {"plugin-not-loaded": 9})
    assert r.delivery[0].share is None
    assert (r.verdict.exit_code, r.verdict.outcome) == (4, "not-delivered")
    assert r.headline.n_treatment == 57  # intention to treat
    assert (r.delivered_only.n_treatment, r.delivered_only.n_tasks) == (48, 16)
    lenient = analyse(dataset(tmp_path, broken), "a", "b", Options(min_delivered=0.8))
    assert lenient.verdict.exit_code == 0


def test_incomparable_arms_give_a_report_that_says_so(tmp_path, arms):
    r = run(tmp_path, *arms, model_name="other/model")
    assert (r.verdict.exit_code, r.verdict.outcome) == (4, "not-comparable")
    assert "Model" in r.verdict.reasons[0]
    accepted = run(tmp_path, *arms, Options(accept=("model",)), model_name="other/model")
    assert accepted.verdict.exit_code == 0


def test_usage_counts_what_is_known_only(tmp_path):
    rows = matrix("a", [[1, 0], [1, 1], [0, 0]])
    rows += matrix("b", [[1, 0], [1, 1], [0, 0]], n_input_tokens=4000)
    rows[0]["cost_usd"] = None
    r = analyse(dataset(tmp_path, rows), "a", "b")
    by_name = {u.name: u for u in r.usage}
    cost = by_name["cost_usd"]
    assert (cost.known_baseline, cost.n_baseline, cost.known_treatment) == (5, 6, 6)
    assert "Unknown for 1 of 6 and 0 of 6" in cost.note
    assert by_name["n_input_tokens"].ratio.value == pytest.approx(4000 / 1050)
    assert isinstance(by_name["n_input_tokens"].ratio, NotEstimable)  # the same ratio everywhere
    assert "n_steps" not in by_name  # nobody reports it
    assert [p.name for p in r.phases] == ["environment_seconds", "setup_seconds", "agent_seconds", "verifier_seconds"]


def test_an_arm_without_token_counts_is_not_compared_in_tokens(tmp_path):
    b = matrix("b", [[1, 0], [1, 1], [0, 0]], n_input_tokens=None, n_cache_tokens=None, n_output_tokens=None)
    r = analyse(dataset(tmp_path, [*matrix("a", [[1, 0], [1, 1], [0, 0]]), *b]), "a", "b")
    tokens = {u.name: u for u in r.usage}["n_input_tokens"]
    assert (tokens.baseline, tokens.treatment, tokens.n_tasks) == (None, None, 0)
    assert (tokens.known_baseline, tokens.known_treatment) == (6, 0)
    assert isinstance(tokens.ratio, NotEstimable)
    assert "Unknown for 0 of 6 and 6 of 6" in tokens.note


def test_family_comes_from_the_tasks_table(tmp_path):
    rows = [*matrix("a", [[1], [0]]), *matrix("b", [[1], [1]])]
    path = dataset(tmp_path, rows, tasks=[{"task_name": "task-01", "family": "rule-1"}])
    assert {t.task: t.family for t in analyse(path, "a", "b").tasks} == {"task-00": None, "task-01": "rule-1"}


def test_arms_that_share_no_task(tmp_path):
    rows = [trial("a", "bench/one", 0, 1.0), trial("b", "one", 0, 1.0)]
    path = dataset(tmp_path, rows)
    with pytest.raises(NotComparableError, match=r"share no task: a has bench/one; b has one") as caught:
        analyse(path, "a", "b")
    assert caught.value.exit_code == 4
    assert "--strip-prefix" in str(caught.value)
    stripped = analyse(path, "a", "b", Options(strip_prefix=True))
    assert stripped.shared_tasks == analyse(path, "a", "b", task_names={"bench/one": "one"}).shared_tasks == ("one",)
    assert {c.name: c.baseline for c in stripped.checks}["task-names"] == "1 tasks renamed"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (Options(policy="zero"), "no error policy"),
        (Options(margin=2), "between 0 and 1"),
        (Options(rule="non-inferior"), "needs a margin"),
        (Options(by="trial_id"), "cannot be told apart"),
    ],
)
def test_options_that_cannot_be_meant(tmp_path, options, message):
    with pytest.raises(UsageError, match=message):
        run(tmp_path, [[1]], [[0]], options)
    with pytest.raises(UsageError, match="both 'a'"):
        analyse(dataset(tmp_path, matrix("a", [[1]])), "a", "a")


@pytest.mark.parametrize("level", [0.2, 1, 1 - 1e-12, float("nan"), 95])
def test_no_options_have_a_coverage_that_cannot_be_meant(level):
    with pytest.raises(UsageError, match="makes no sense"):
        Options(level=level)


def test_every_number_has_its_coverage_in_the_result(tmp_path, arms):
    r = run(tmp_path, *arms)
    assert isinstance(r.baseline.mean, Estimate)
    assert r.baseline.statuses == {"scored": 57}
    assert (r.baseline.k_min, r.baseline.k_max) == (3, 3)
