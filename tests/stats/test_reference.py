"""Every row of the reference file that the estimators cover, within its own tolerance."""

import numpy as np
import pytest

from akm_harbor.stats.binomial import arm_proportion, newcombe_difference, proportion, unbalanced, uniform_posterior
from akm_harbor.stats.bootstrap import bootstrap_mean
from akm_harbor.stats.bounds import TaskCounts, difference_bounds
from akm_harbor.stats.equivalence import equivalence
from akm_harbor.stats.mcnemar import mcnemar
from akm_harbor.stats.means import arm_mean, standard_errors, variance_components
from akm_harbor.stats.models import gee_log_odds, mixed_logit
from akm_harbor.stats.multiplicity import adjusted
from akm_harbor.stats.paired import paired_difference, paired_t, pairing_gain, task_differences
from akm_harbor.stats.passk import pass_at_k, pass_hat_k
from akm_harbor.stats.power import Components, minimum_detectable, sample_size
from akm_harbor.stats.ranking import ndcg, recall, reciprocal_rank
from akm_harbor.stats.ratios import geometric_ratio, ratio_of_means
from akm_harbor.stats.results import Estimate, NotEstimable
from akm_harbor.stats.signflip import sign_flip, sign_flip_attempts

COVERED = {
    "arm_mean_se_a",
    "icc_a",
    "paired_delta",
    "sign_flip_exact",
    "cluster_bootstrap_se_limit",
    "bootstrap_ci_delta",
    "darwin_maize",
    "binomial_intervals",
    "pass_at_k",
    "mcnemar_agresti",
    "multiplicity_bh1995",
    "miller_power",
    "tost_margin_0.1",
    "gee_fixture",
    "perfect_separation",
    "cost_ratio",
    "error_policy_bounds",
    "canary_rank_metrics",
}


def test_every_row_is_covered(cases):
    assert set(cases) == COVERED


def near(case):
    tolerance = case["tolerance"]
    return lambda expected: pytest.approx(expected, abs=tolerance, rel=tolerance)


def test_arm_mean_se_a(cases, arms):
    case, close = cases["arm_mean_se_a"], near(cases["arm_mean_se_a"])
    out = case["output"]
    mean, errors = arm_mean(arms[0]), standard_errors(arms[0])
    assert mean.value == close(out["mean"])
    assert mean.se == close(out["se_task_means"])
    assert [mean.interval.low, mean.interval.high] == close(out["ci95_t_df18"])
    assert errors.iid == close(out["se_iid_trials"])
    assert errors.clustered == close(out["se_clustered_miller"])
    assert errors.clustered_corrected == close(out["se_clustered_CoverCminus1"])
    assert errors.clustered_corrected == close(out["se_ols_cluster_corrected"])
    assert errors.design_effect == close(out["design_effect"])


def test_icc_a(cases, arms):
    out, close = cases["icc_a"]["output"], near(cases["icc_a"])
    found = variance_components(arms[0])
    assert (found.ms_between, found.ms_within, found.icc) == (close(out["msb"]), close(out["msw"]), close(out["icc1"]))
    assert (found.within, found.between) == (close(out["sigma2_within"]), close(out["omega2_between"]))


def test_paired_delta(cases, arms):
    out, close = cases["paired_delta"]["output"], near(cases["paired_delta"])
    found = paired_difference(*arms)
    assert (found.value, found.se, found.statistic, found.df, found.p) == tuple(
        map(close, (out["delta"], out["se"], out["t"], out["df"], out["p"]))
    )
    assert [found.interval.low, found.interval.high] == close(out["ci95"])
    gain = pairing_gain(*arms)
    assert (gain.correlation, gain.se_unpaired) == (close(out["corr"]), close(out["se_unpaired"]))
    d = task_differences(*arms)
    assert ((d > 1e-12).sum(), (d < -1e-12).sum()) == (out["n_pos"], out["n_neg"])


def test_sign_flip_exact(cases, arms):
    out, close = cases["sign_flip_exact"]["output"], near(cases["sign_flip_exact"])
    assert sign_flip_attempts(*arms).p == close(out["p"])
    assert sign_flip(task_differences(*arms)).p == close(out["scipy_permutation_test_p"])
    assert f"{out['min_attainable_p']:.3g}" in sign_flip_attempts(*arms).notes[0]


def test_darwin_maize(cases):
    case, close = cases["darwin_maize"], near(cases["darwin_maize"])
    out, d = case["output"], case["input"]["diffs"]
    exact, student = sign_flip(d), paired_t(d)
    assert exact.p == close(out["p_two_sided"])
    assert exact.p * 2**15 == pytest.approx(out["count_two_sided"])
    assert (student.statistic, student.p) == (close(out["t"]), close(out["p_t"]))


def test_cluster_bootstrap_se_limit(cases, arms):
    out, close = cases["cluster_bootstrap_se_limit"]["output"], near(cases["cluster_bootstrap_se_limit"])
    found = bootstrap_mean(task_differences(*arms), resamples=100)
    assert found.se == close(out["se_boot_limit"])
    assert found.se / paired_difference(*arms).se == close(out["ratio_to_t_se"])


@pytest.mark.parametrize("method", ["percentile", "basic", "BCa"])
def test_bootstrap_ci_delta(cases, arms, method):
    case = cases["bootstrap_ci_delta"]
    out, lattice = case["output"][method], 1 / 57 + case["tolerance"]  # the mean moves in steps of 1/57
    found = bootstrap_mean(task_differences(*arms), method, resamples=20_000)
    assert found.interval.low == pytest.approx(out["lo_mean"], abs=lattice)
    assert found.interval.high == pytest.approx(out["hi_mean"], abs=lattice)
    assert ("worst" in " ".join(found.notes)) == (method == "BCa")


NAMES = {
    "wilson": "wilson",
    "beta": "clopper-pearson",
    "jeffreys": "jeffreys",
    "agresti_coull": "agresti-coull",
    "normal": "normal",
}


def test_binomial_intervals(cases):
    case, close = cases["binomial_intervals"], near(cases["binomial_intervals"])
    for text in case["input"]["cases"]:
        s, n = map(int, text.split("/"))
        for theirs, ours in NAMES.items():
            found, expected = proportion(s, n, ours), case["output"][text][theirs]
            if theirs == "normal" and s in {0, n}:
                assert isinstance(found, NotEstimable)  # the reference has an interval without width
            else:
                assert [found.interval.low, found.interval.high] == close(expected), (text, theirs)
        bayes = uniform_posterior(s, n)
        assert [bayes.interval.low, bayes.interval.high] == close(case["output"][text]["beta_uniform_prior"])
        assert bayes.value == close(case["output"][text]["posterior_mean_uniform"])
    for text, rows in case["output"]["published_newcombe1998"].items():
        s, n = map(int, text.split("/"))
        for name, method in (("wilson", "wilson"), ("cp", "clopper-pearson")):
            found = proportion(s, n, method)
            assert [found.interval.low, found.interval.high] == pytest.approx(rows[name], abs=5.1e-5)


def test_newcombe_1998_difference():
    found = newcombe_difference(48, 80, 56, 70)
    assert [found.interval.low, found.interval.high] == pytest.approx([0.0524, 0.3339], abs=5e-5)


def test_pass_at_k(cases):
    out, close = cases["pass_at_k"]["output"], near(cases["pass_at_k"])
    for name, function in (("pass_at_k", pass_at_k), ("pass_hat_k", pass_hat_k)):
        for nck, expected in out[name].items():
            assert function(*map(int, nck.split(","))) == close(expected), (name, nck)
    for nck, biased in out["naive_plugin_1_minus_1mp_k"].items():
        assert pass_at_k(*map(int, nck.split(","))) > biased


def test_mcnemar_agresti(cases):
    case, close = cases["mcnemar_agresti"], near(cases["mcnemar_agresti"])
    table, out = case["input"]["table"], case["output"]
    for name in ("uncorrected", "corrected"):
        found = mcnemar(table, name)
        assert (found.statistic, found.p) == (close(out[name]["stat"]), close(out[name]["p"]))
    assert mcnemar(table, "exact").p == close(out["exact"]["p"])
    uncorrected = mcnemar(table, "uncorrected")
    assert -np.sqrt(uncorrected.statistic) == close(out["z"])


def test_multiplicity_bh1995(cases):
    case, close = cases["multiplicity_bh1995"], near(cases["multiplicity_bh1995"])
    for method, expected in case["output"].items():
        found = adjusted(case["input"]["p"], method)
        assert list(found) == close(expected["adj"])
        assert sum(p <= 0.05 for p in found) == expected["n_reject"]


def test_miller_power(cases):
    case, close = cases["miller_power"], near(cases["miller_power"])
    out, omega2 = case["output"], case["input"]["omega2"]
    none, some = Components(omega2, 0, 0, "reference"), Components(omega2, 1 / 6, 1 / 6, "reference")
    assert sample_size(0.03, none).value == close(out["n_delta03_sigma0"])
    assert sample_size(0.03, some, 1, 1).value == close(out["n_delta03_sigma2_1_6_K1"])
    assert sample_size(0.03, some, 10, 10).value == close(out["n_delta03_sigma2_1_6_K10"])

    def mde(n, k):
        return minimum_detectable(n, some, k, k, student=False).value

    assert mde(198, 1) == close(out["mde_n198_sigma2_1_6_K1"])
    assert mde(198, 10) == close(out["mde_n198_K10"])
    for n in (19, 46, 89, 500):
        for k, expected in out[f"mde_n{n}"].items():
            assert mde(n, int(k[1:])) == close(expected), (n, k)
            assert minimum_detectable(n, some, int(k[1:]), int(k[1:])).value > expected  # Student is larger


def test_tost_margin(cases, arms):
    case, close = cases["tost_margin_0.1"], near(cases["tost_margin_0.1"])
    out, found = case["output"], equivalence(task_differences(*arms), case["input"]["margin"])
    assert found.p_equivalent == close(out["p_tost"])
    assert (found.t_low, found.p_noninferior) == (close(out["t_low"]), close(out["p_low_noninferior"]))
    assert (found.t_high, found.p_nonsuperior) == (close(out["t_up"]), close(out["p_up"]))
    assert [found.interval.low, found.interval.high] == close(out["ci90"])
    assert (found.p_equivalent <= 0.05) == out["equivalent_at_05"]


def test_gee_fixture(cases, arms):
    out, close = cases["gee_fixture"]["output"], near(cases["gee_fixture"])
    reduced, robust = gee_log_odds(*arms), gee_log_odds(*arms, covariance="robust")
    assert reduced.value == close(out["gee_exch_coef"])
    assert (reduced.se, reduced.p) == (close(out["gee_bias_reduced_se"]), close(out["gee_bias_reduced_p"]))
    assert (robust.se, robust.p) == (close(out["gee_exch_se_robust"]), close(out["gee_exch_p"]))
    mixed = mixed_logit(*arms)
    assert mixed.value == pytest.approx(1.2554, abs=1e-3)
    assert mixed.se == pytest.approx(0.4156, abs=1e-3)


def test_perfect_separation_is_never_fitted():
    """0/9 against 9/9: statsmodels answers with a coefficient of 49 and a standard error of 0.82."""
    for fit in (gee_log_odds, mixed_logit):
        found = fit([[0]] * 9, [[1]] * 9)
        assert isinstance(found, NotEstimable)
        assert found.reason == "separation"
    assert unbalanced(0, 9, 9, 9).p == pytest.approx(4.1135335252982315e-05)


def test_cost_ratio(cases):
    case, close = cases["cost_ratio"], near(cases["cost_ratio"])
    out, a, b = case["output"], case["input"]["cost_a"], case["input"]["cost_b"]
    bill, typical = ratio_of_means(a, b), geometric_ratio(a, b)
    assert (bill.value, bill.se) == (close(out["ratio_of_means"]), close(out["delta_se"]))
    assert [bill.interval.low, bill.interval.high] == close(out["fieller95"])
    assert (typical.value, typical.p) == (close(out["geo_mean_ratio"]), close(out["p_logratio"]))
    assert [typical.interval.low, typical.interval.high] == close(out["geo_ci95"])


def test_error_policy_bounds(cases):
    case, close = cases["error_policy_bounds"], near(cases["error_policy_bounds"])
    (pass_a, bad_a, n_a), (pass_b, bad_b, n_b) = case["input"]["a"], case["input"]["b"]
    a, b = TaskCounts(pass_a, n_a - bad_a, bad_a), TaskCounts(pass_b, n_b - bad_b, bad_b)
    found, out = difference_bounds([a], [b]), case["output"]
    assert (found.worst, found.best) == (close(out["worst_case_for_b"]), close(out["best_case_for_b"]))
    for name, fill in (("errors_as_fail", 0.0), ("errors_as_pass", 1.0)):
        assert [a.mean(fill), b.mean(fill), b.mean(fill) - a.mean(fill)] == close(out[name])
    kept = a.known / a.n_known, b.known / b.n_known
    assert [*kept, kept[1] - kept[0]] == close(out["errors_excluded"])


def test_canary_rank_metrics(cases):
    for rank, expected in cases["canary_rank_metrics"]["output"].items():
        position = int(rank) if int(rank) > 0 else None
        found = recall(position, 10), reciprocal_rank(position, 10), ndcg(position, 10)
        assert found == pytest.approx((expected["recall"], expected["rr"], expected["ndcg"]), abs=1e-12)


def test_small_n_coverage_is_what_the_field_was_told(arms):
    """Wilson on pooled attempts is far too short; on the effective sample size it is not."""
    pooled = proportion(29, 57)
    effective = arm_proportion(arms[0])
    assert isinstance(effective, Estimate)
    wide = effective.interval.high - effective.interval.low
    assert wide > 1.3 * (pooled.interval.high - pooled.interval.low)
