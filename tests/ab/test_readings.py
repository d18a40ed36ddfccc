"""Leaderboard rules, engagement and the other methods, through the analysis."""

import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.page import render_page
from akm_harbor.ab.result import Options
from akm_harbor.ab.run import verdict_document
from akm_harbor.ab.words import banner, disagreement
from akm_harbor.errors import UsageError
from akm_harbor.stats.results import Estimate, NotEstimable

from .support import dataset, matrix, trial


def board(tmp_path, k, **over):
    rows = [*matrix("a", [[1] * k, [0] * k], **over), *matrix("b", [[1], [0]])]
    return analyse(dataset(tmp_path, rows), "a", "b").leaderboard[0]


def test_leaderboard_rules(tmp_path):
    assert board(tmp_path, 5).keeps is True
    assert board(tmp_path, 5, timeout_multiplier=None).keeps is None
    assert board(tmp_path, 3).broken == ("3 attempts on a task, not 5",)
    broken = board(tmp_path, 5, timeout_multiplier=2.0, resources_json='{"cpus": 8}', timeouts_json='{"agent": 60}')
    assert broken.keeps is False
    assert broken.broken == ("timeout multiplier 2, not 1", "time limits overridden", "resources overridden")
    assert board(tmp_path, 5, timeouts_json="{}").keeps is True


def test_funnel_counts_the_unknown_apart(tmp_path):
    def call(task, attempt, verb, rank):
        path = f"b/{task}__{attempt:07d}"
        return {
            "trial_id": "x",
            "root": "jobs",
            "trial_path": path,
            "index": attempt,
            "tool": f"akm_{verb}",
            "status": "completed",
            "output_chars": 9,
            "output_head": "something",
            "akm_verb": verb,
            "akm_refs": ["knowledge/y", "knowledge/z", "knowledge/x"] if verb == "search" else ["knowledge/x"],
            "gold_rank": rank,
        }

    state = {"treatment_delivered": True, "tools_offered": True}
    rows = [
        *[trial("a", t, k, 0.0) for t in ("with-gold", "plain") for k in range(2)],
        trial("b", "with-gold", 0, 1.0, n_akm_calls=2, context_injected=True, **state),
        trial("b", "with-gold", 1, 0.0, n_akm_calls=0, context_injected=False, **state),
        trial("b", "plain", 0, 1.0, n_akm_calls=1, **state),
        trial("b", "plain", 1, None, treatment_delivered=False),
    ]
    calls = [call("with-gold", 0, "search", 3), call("with-gold", 0, "show", 1), call("plain", 0, "search", None)]
    data = dataset(tmp_path, rows, [{"task_name": "with-gold", "gold_ref": "knowledge/x"}], tool_calls=calls)
    control, treated = analyse(data, "a", "b").engagement
    found = {s.name: (s.yes, s.no, s.unknown) for s in treated.stages}
    assert found == {
        "delivered": (3, 1, 0),
        "offered": (3, 0, 1),
        "exposed": (1, 1, 2),
        "called": (2, 1, 1),
        "found": (1, 1, 2),
        "opened": (1, 1, 2),
        "wrote": (0, 2, 2),
    }
    assert (treated.n_used, treated.used, treated.n_unused, treated.unused) == (2, 1.0, 1, 0.0)
    assert {s.name for s in control.stages} == {"delivered", "offered", "exposed", "called"}
    assert (control.n_used, control.used) == (0, None)


def test_other_methods_and_equivalence(tmp_path, arms):
    rows = [*matrix("a", arms[0]), *matrix("b", arms[1])]
    r = analyse(dataset(tmp_path, rows), "a", "b", Options(margin=0.1))
    by_title = {m.title.split(",")[0]: m.result for m in r.other_methods}
    assert by_title["GEE"].value == pytest.approx(0.5801, abs=1e-4)
    assert by_title["Mixed logit"].value == pytest.approx(1.2554, abs=1e-3)
    assert by_title["Percentile bootstrap over tasks"].interval.low == pytest.approx(0.0526, abs=0.02)
    assert r.equivalence.p_noninferior == pytest.approx(3.162e-5, rel=1e-3)


def test_mcnemar_only_for_single_attempts(tmp_path):
    rows = [*matrix("a", [[1], [0], [0], [0], [0], [0], [0]]), *matrix("b", [[0], *[[1]] * 6])]
    r = analyse(dataset(tmp_path, rows), "a", "b")
    test = {m.title: m.result for m in r.other_methods}["McNemar, exact"]
    assert isinstance(test, Estimate)
    assert (test.value, test.p) == pytest.approx((5 / 7, 2 * (1 + 7) / 2**7))
    assert r.equivalence is None


def test_separated_arms_fit_no_model(tmp_path):
    rows = [*matrix("a", [[0, 0]] * 5), *matrix("b", [[1, 1]] * 5)]
    r = analyse(dataset(tmp_path, rows), "a", "b")
    assert all(isinstance(m.result, NotEstimable) for m in r.other_methods)


def test_families_are_compared_where_there_are_two(tmp_path, arms):
    rows = [*matrix("a", arms[0]), *matrix("b", arms[1])]
    tasks = [{"task_name": f"task-{i:02d}", "family": "lone" if i == 18 else f"rule-{i % 2}"} for i in range(19)]
    r = analyse(dataset(tmp_path, rows, tasks), "a", "b")
    found = {f.family: f for f in r.families}
    assert {name: f.n_tasks for name, f in found.items()} == {"rule-0": 9, "rule-1": 9, "lone": 1}
    assert isinstance(found["lone"].difference, NotEstimable)
    even = [(sum(b) - sum(a)) / 3 for a, b in list(zip(*arms, strict=True))[:18:2]]
    assert found["rule-0"].difference.value == pytest.approx(sum(even) / 9)
    assert [f.difference.value for f in r.families] == sorted((f.difference.value for f in r.families), reverse=True)
    page = render_page(r)
    assert "Difference by family" in page
    assert "Reward against cost" in page
    one = [{"task_name": f"task-{i:02d}", "family": "all"} for i in range(19)]
    assert analyse(dataset(tmp_path, rows, one), "a", "b").families == ()


def test_an_early_look_widens_the_interval(tmp_path, arms):
    rows = [*matrix("a", arms[0]), *matrix("b", arms[1])]
    data = dataset(tmp_path, rows)
    once, early = analyse(data, "a", "b"), analyse(data, "a", "b", Options(look="1/5"))
    assert (once.verdict.outcome, early.verdict.outcome) == ("improvement", "no-clear-difference")
    assert early.options.level == pytest.approx(0.999995, abs=1e-6)
    assert "99.9995% interval" in render_page(early)
    for bad in ("5", "3/2", "0/5", "a/b", "1/500"):
        with pytest.raises(UsageError, match="a look is written like"):
            analyse(data, "a", "b", Options(look=bad))


def several(tmp_path, differences, options=None, k=4):
    """Arms whose task means differ by these numbers of attempts out of k."""
    base, treated = ([[1] * max(0, way * d) + [0] * (k - max(0, way * d)) for d in differences] for way in (-1, 1))
    return analyse(dataset(tmp_path, [*matrix("a", base), *matrix("b", treated)]), "a", "b", options)


@pytest.mark.parametrize(
    ("differences", "options", "expected", "words"),
    [
        ([4, 4, 4, 2, 0, 0], None, ("better", False), "Probably better, not settled: the interval leaves out zero"),
        ([-4, -4, -4, -2, 0, 0], None, ("worse", False), "Probably worse, not settled"),
        ([4, 4, 4, 2, 4, 2], None, ("better", True), "The treatment does better."),
        ([-4, -4, -4, -2, -4, -2], None, ("worse", True), "The treatment does worse."),
        ([2, -2, 4, -4, 0, 0], None, ("open", True), "No clear difference."),
        (
            [-1, -1, -1, -1, -1, -1, -1, 0],
            Options(margin=0.4),
            ("worse", True),
            "The treatment does worse. A loss of more than 40 points is not shown.",
        ),
        (
            [-4, -4, -4, -2, -4, -2],
            Options(margin=0.1),
            ("worse", True),
            "The treatment does worse. A loss of more than 10 points is shown.",
        ),
        (
            [2, -2, 4, -4, 0, 0],
            Options(rule="non-inferior", margin=0.1),
            ("open", True),
            "No clear difference. A loss of more than 10 points is not ruled out.",
        ),
        (
            [4, 4, 4, 2, 4, 2],
            Options(rule="non-inferior", margin=0.1),
            ("better", True),
            "The treatment does better. A loss of more than 10 points is ruled out.",
        ),
    ],
)
def test_banner_is_never_surer_than_both_tests_together(tmp_path, differences, options, expected, words):
    r = several(tmp_path, differences, options)
    assert (r.verdict.direction, r.verdict.settled) == expected
    assert banner(r)[1].startswith(words)
    assert banner(r)[1] in render_page(r)
    document = verdict_document(r)
    assert (document["direction"], document["settled"]) == expected
    assert document["exit_code"] == (3 if document["outcome"] == "regression" else 0)
    assert bool(disagreement(r)) is (not expected[1])


def test_exact_test_alone_is_not_settled_either(tmp_path):
    r = several(tmp_path, [1, 1, 1, 1, 1, 10], k=10)
    assert r.headline.sign_flip.p == pytest.approx(2 / 64)
    assert (r.verdict.outcome, r.verdict.direction, r.verdict.settled) == ("no-clear-difference", "open", False)
    style, said = banner(r)
    assert style == "plain"
    assert said.startswith("Perhaps better, not settled: the exact test finds a difference (p = 0.031), the interval")


def test_no_answer_is_neither_settled_nor_not(tmp_path):
    r = analyse(dataset(tmp_path, [*matrix("a", [[1]]), *matrix("b", [[0]])]), "a", "b")
    assert (r.verdict.settled, banner(r)) == (None, ("warn", "Too little data to say anything."))
