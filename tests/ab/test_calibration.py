"""Tasks are judged by interval, never by rate; a headline's reweightings are the sums one can do by hand."""

import json

import numpy as np
import pytest
from scipy import stats

from akm_harbor.ab.calibration import (
    CLASSES,
    Lines,
    calibrate,
    chance_to_miss,
    leaning,
    stated_rule,
    verdict_of,
)
from akm_harbor.ab.calibration_page import SECTIONS, render_calibration, render_section
from akm_harbor.ab.calibration_report import load, report
from akm_harbor.ab.composition import compositions, equal_weights
from akm_harbor.ab.result import Options
from akm_harbor.errors import UsageError
from akm_harbor.report.offline import external_references
from akm_harbor.stats.binomial import proportion
from akm_harbor.stats.results import Estimate, NotEstimable

from .support import dataset, matrix, trial

LINES = stated_rule(0.2, 0.8, 0.95)


def rewards(passes, n):
    return [1.0] * passes + [0.0] * (n - passes)


def kinds(n, **over):
    return [
        {
            "task_name": f"task-{i:02d}",
            "domain": "ab"[i % 2],
            "shape": "edit-existing",
            "metadata_json": json.dumps({"knowledge": "fictional" if i % 3 else "public"}),
            **over,
        }
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("passes", "n", "verdict", "leans"),
    [
        (0, 3, "unknown", "discriminating"),
        (0, 16, "unknown", "discriminating"),
        (0, 17, "discriminating", "discriminating"),
        (1, 40, "discriminating", "discriminating"),
        (2, 17, "unknown", "discriminating"),
        (1, 3, "unknown", "guessable"),
        (8, 17, "guessable", "guessable"),
        (3, 3, "guessable", "saturated"),
        (16, 16, "guessable", "saturated"),
        (17, 17, "saturated", "saturated"),
        (0, 1, "unknown", "discriminating"),
    ],
)
def test_the_rule_at_its_edges(passes, n, verdict, leans):
    rate = proportion(passes, n, "clopper-pearson")
    assert verdict_of(rate, LINES) == verdict
    assert leaning(rate, LINES) == leans


@pytest.mark.parametrize("low", [0.05, 0.1, 0.2, 0.5])
def test_attempts_asked_for_are_just_enough(low):
    lines = stated_rule(low, 0.9, 0.95)
    for n, clears in ((lines.to_clear, True), (lines.to_clear - 1, False)):
        assert (proportion(0, n, "clopper-pearson").interval.high <= low) is clears
    for n, full in ((lines.to_saturate, True), (lines.to_saturate - 1, False)):
        assert (proportion(n, n, "clopper-pearson").interval.low >= 0.9) is full


def test_no_task_is_called_wrongly_more_often_than_stated():
    """The rule's own error rate, by enumeration: a task at the guessing line, at the saturation line."""
    for n in (3, 5, 17, 40):
        counts = np.arange(n + 1)
        verdicts = [verdict_of(proportion(int(c), n, "clopper-pearson"), LINES) for c in counts]
        for truth, wrong in (
            (0.2, ("discriminating", "guessable", "saturated")),
            (0.8, ("saturated", "discriminating")),
        ):
            chance = sum(stats.binom.pmf(c, n, truth) for c, v in zip(counts, verdicts, strict=True) if v in wrong)
            assert chance <= 0.05
    assert chance_to_miss(0.2, 3) == pytest.approx(0.512)


def test_lines_must_be_in_order():
    for low, high in ((0.8, 0.2), (0, 0.5), (0.5, 1), (float("nan"), 0.5)):
        with pytest.raises(UsageError, match="cannot both hold"):
            stated_rule(low, high, 0.95)
    assert isinstance(LINES, Lines)


@pytest.fixture
def corpus(tmp_path):
    """Six tasks, 17 control attempts each: two never, one half, two always, one with errors and a part reward."""
    control = [rewards(0, 17), rewards(0, 17), rewards(8, 17), rewards(17, 17), rewards(17, 17), [0.5, 1.0]]
    treated = [[1.0] * 3, [1.0, 0.0, 0.0], [1.0] * 3, [1.0] * 3, [0.0] * 3, [1.0]]
    rows = [*matrix("control", control), *matrix("akm", treated)]
    rows.append(trial("control", "task-00", 90, None, exception_type="X", exception_cause="sandbox"))
    return dataset(tmp_path, rows, kinds(6))


def test_a_corpus_task_by_task(corpus):
    found = calibrate(corpus)
    assert (found.baseline, found.treatment) == ("control", "akm")
    by_task = {t.task: t for t in found.tasks}
    assert [by_task[f"task-{i:02d}"].verdict for i in range(6)] == [
        *["discriminating"] * 2,
        "guessable",
        *["saturated"] * 2,
        "unknown",
    ]
    assert found.verdicts == dict(zip(CLASSES, (2, 1, 2, 1), strict=True))
    first, part = by_task["task-00"], by_task["task-05"]
    assert (first.passes, first.n, first.n_errors, first.difference) == (0, 17, 1, 1.0)
    assert first.groups == {"domain": "a", "knowledge": "public", "shape": "edit-existing"}
    assert (part.passes, part.rate.reason, part.rate.value) == (None, "part-reward", 0.75)
    assert found.attempts == (2, 17)
    assert [s.grouping for s in found.splits] == ["domain", "knowledge"]  # one shape only: no split
    assert {g.name: g.n_tasks for g in found.splits[0].groups} == {"a": 3, "b": 3}
    assert found.splits[0].groups[0].verdicts["discriminating"] == 1


def test_policies_count_errors_as_asked(corpus):
    failed = calibrate(corpus, options=Options(policy="fail"))
    assert next(t for t in failed.tasks if t.task == "task-00").n == 18


def test_the_headline_is_the_reports(corpus):
    from akm_harbor.ab.analysis import analyse

    found, reported = calibrate(corpus), analyse(corpus, "control", "akm")
    assert found.headline == reported.headline.difference
    assert found.sign_flip == reported.headline.sign_flip
    assert found.mean == reported.baseline.mean


def test_reweighting_by_hand():
    tasks = [(0.5, {"k": "x"}), (0.3, {"k": "x"}), (0.1, {"k": "x"}), (-0.2, {"k": "y"}), (0.0, {"k": "y"}), (0.9, {})]
    (found,) = compositions(tasks, ("k", "nothing"), 0.95)
    assert found.headline.value == pytest.approx(0.14)
    assert found.n_unknown == 1
    assert found.equal.value == pytest.approx((0.3 - 0.1) / 2)
    assert found.any_mix == pytest.approx((-0.1, 0.3))
    assert [(p.name, p.n_tasks, round(p.points, 9)) for p in found.parts] == [("x", 3, 0.18), ("y", 2, -0.04)]
    assert sum(p.points for p in found.parts) == pytest.approx(found.headline.value)
    assert found.left_out == pytest.approx((-0.1, 0.3))
    # one-way analysis of variance by hand: F from scipy, omega squared from F
    f = stats.f_oneway([0.5, 0.3, 0.1], [-0.2, 0.0]).statistic
    assert found.between == pytest.approx((f - 1) / (f - 1 + 5))


def test_equal_weights_are_welchs():
    x, y = [0.5, 0.3, 0.1, 0.4], [-0.2, 0.1, 0.0]
    found = equal_weights([x, y], 0.9)
    test = stats.ttest_ind(x, [-v for v in y], equal_var=False)  # mean of x plus mean of y: twice ours
    interval = test.confidence_interval(0.9)
    assert (found.interval.low, found.interval.high) == pytest.approx((interval.low / 2, interval.high / 2))
    assert found.df == pytest.approx(test.df)


@pytest.mark.parametrize(
    ("groups", "reason"),
    [([[0.1, 0.2], [0.3]], "one-task"), ([[0.1, 0.1], [0.3, 0.3]], "constant-difference")],
)
def test_equal_weights_without_an_interval(groups, reason):
    found = equal_weights(groups, 0.95)
    assert isinstance(found, NotEstimable)
    assert found.reason == reason
    assert found.value is not None


def test_one_arm_is_enough(tmp_path, arms):
    found = calibrate(dataset(tmp_path, matrix("only", arms[0])))
    assert (found.baseline, found.treatment, found.headline, found.compositions) == ("only", None, None, ())
    assert found.verdicts["unknown"] + found.verdicts["guessable"] == 19
    page = render_calibration(found)
    assert "no treatment arm was named" in page.lower()
    assert "With fewer, nothing can be cleared" in page


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"baseline": "contrl"}, "no arm 'contrl'"),
        ({"baseline": "akm", "treatment": "akm"}, "two different arms"),
        ({"options": Options(policy="zero")}, "no error policy"),
        ({"low": 0.9}, "cannot both hold"),
    ],
)
def test_bad_requests(corpus, given, message):
    with pytest.raises(UsageError, match=message):
        calibrate(corpus, **given)


def test_a_task_without_a_counting_attempt(tmp_path):
    rows = [trial("control", "broken", k, None, exception_type="X") for k in range(3)]
    rows += matrix("control", [rewards(1, 3)] * 2)
    found = calibrate(dataset(tmp_path, rows))
    (broken,) = (t for t in found.tasks if t.task == "broken")
    assert (broken.n, broken.n_errors, broken.verdict, broken.rate.reason) == (0, 3, "unknown", "no-attempt")
    render_calibration(found)


def test_metadata_that_is_no_json(tmp_path, arms):
    bad = [{"task_name": f"task-{i:02d}", "metadata_json": text} for i, text in enumerate(("{", "[1]", "null"))]
    found = calibrate(dataset(tmp_path, matrix("control", arms[0]), bad))
    assert all(t.groups == {} for t in found.tasks)


def test_page_and_files(corpus, tmp_path):
    made = report([corpus], tmp_path / "out")
    html, plain = made.page.read_text(), json.loads(made.numbers.read_text())
    assert external_references(html) == []
    assert "Of 6 tasks: 2 discriminating, 1 guessable, 2 saturated, 1 unknown." in html
    assert plain["verdicts"]["discriminating"] == 2
    assert plain["compositions"][0]["parts"][0]["n_tasks"] == 3
    for section in ("headline", *SECTIONS):
        assert external_references(render_section(made.result, section)) == []
    assert isinstance(made.result.headline, Estimate)


def test_names_are_shown_harmless(tmp_path):
    name = "<img src=x onerror=alert(1)>"
    rows = [trial("control", name, k, float(k % 2)) for k in range(4)]
    path = dataset(tmp_path, [*rows, *matrix("control", [[1.0]])], [{"task_name": name, "domain": "<script>x"}])
    page = render_calibration(calibrate(path))
    assert "<img" not in page
    assert "<script" not in page


def test_notebook_parameters_as_text(corpus, tmp_path):
    as_text = load(str(corpus), "control", "akm", low="0.2", high="0.8", level="0.95", out=str(tmp_path / "a"))
    as_numbers = load(str(corpus), "control", "akm", low=0.2, high=0.8, level=0.95, out=str(tmp_path / "b"))
    assert as_text.result == as_numbers.result
    with pytest.raises(UsageError, match="must be numbers"):
        load(str(corpus), low="few")
