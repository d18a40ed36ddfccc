import numpy as np
import pytest
import statsmodels.api as sm
from scipy import linalg, stats

from akm_harbor.memory.clusters import clustered_mean, degrees_of_freedom, standard_error
from akm_harbor.stats.results import Estimate, NotEstimable


def by_matrices(values, clusters):
    """CR2 and Bell-McCaffrey's degrees of freedom as they are defined, with matrices: no closed form."""
    n = len(values)
    x = np.ones((n, 1))
    hat = x @ x.T / n
    residual = values - values.mean()
    groups = [np.flatnonzero(clusters == c) for c in np.unique(clusters)]
    variance, vectors = 0.0, []
    for group in groups:
        own = np.eye(len(group)) - hat[np.ix_(group, group)]
        root = linalg.inv(linalg.sqrtm(own).real)
        variance += float((x[group].T @ root @ residual[group])[0]) ** 2 / n**2
        vectors.append((np.eye(n) - hat)[:, group] @ root @ x[group] / n)
    vectors = np.hstack(vectors)
    cross = vectors.T @ vectors
    return np.sqrt(variance), np.trace(cross) ** 2 / np.trace(cross @ cross)


@pytest.mark.parametrize("sizes", [(3, 5, 9, 2), (4, 4, 4), (1, 30, 2, 2, 7), (10, 1)])
def test_the_closed_form_is_the_definition(sizes):
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    values = np.random.default_rng(2).normal(size=len(clusters)) + clusters
    se, df = by_matrices(values, clusters)
    assert standard_error(values, clusters, len(sizes)) == pytest.approx(se, rel=1e-9)
    assert degrees_of_freedom(sizes) == pytest.approx(df, rel=1e-9)


def test_histories_of_one_size_have_the_usual_degrees_of_freedom_and_error():
    clusters = np.repeat(np.arange(10), 12)
    values = np.random.default_rng(4).normal(size=120) + clusters / 3
    fit = sm.OLS(values, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": clusters})
    assert degrees_of_freedom([12] * 10) == pytest.approx(9)
    # statsmodels has the factor G/(G-1) * (N-1)/(N-1): equal to CR2 for clusters of one size
    assert standard_error(values, clusters, 10) == pytest.approx(float(fit.bse[0]), rel=1e-6)


def test_one_question_a_history_is_student_s_t():
    values = [0.0, 1.0, 1.0, 0.0, 1.0, 0.5]
    found = clustered_mean(values, [f"h{i}" for i in range(6)])
    expected = stats.ttest_1samp(values, 0)
    assert isinstance(found, Estimate)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.p == pytest.approx(expected.pvalue)


def test_order_and_names_do_not_matter():
    dice = np.random.default_rng(6)
    values, names = dice.random(50), np.array([f"h{i % 7}" for i in range(50)])
    mixed = dice.permutation(50)
    one = clustered_mean(values, names.tolist())
    two = clustered_mean(values[mixed], [f"x{n}" for n in names[mixed]])
    assert isinstance(one, Estimate)
    assert isinstance(two, Estimate)
    assert (one.value, one.se, one.df) == pytest.approx((two.value, two.se, two.df))


@pytest.mark.parametrize(
    ("values", "histories", "reason"),
    [
        ([], [], "no-question"),
        ([0.2, 0.9], ["h", "h"], "one-history"),
        ([1.0, 1.0, 1.0], ["a", "b", "c"], "all-tied"),
        ([0.0, 1.0, 0.0, 1.0], ["a", "a", "b", "b"], "all-tied"),
    ],
)
def test_what_cannot_be_estimated_says_so(values, histories, reason):
    found = clustered_mean(values, histories)
    assert isinstance(found, NotEstimable)
    assert found.reason == reason


def test_few_histories_are_noted():
    values = [0, 1, 0, 1, 1, 0.5]
    found = clustered_mean(values, ["a"] * 4 + ["b", "c"])
    assert isinstance(found, Estimate)
    assert "leans on the t distribution" in found.notes[0]


def test_the_interval_covers_at_the_sizes_of_locomo():
    rng = np.random.default_rng(7)
    sizes = [199, 105, 193, 260, 242, 158, 190, 239, 196, 204]
    names = np.repeat(np.arange(10), sizes).astype(str).tolist()
    covered = 0
    for _ in range(400):
        effect = np.repeat(rng.normal(0, 0.05, 10), sizes)
        found = clustered_mean(rng.normal(0, 0.5, len(names)) + effect, names)
        covered += found.interval.low <= 0 <= found.interval.high
    assert 0.92 <= covered / 400 <= 0.98
