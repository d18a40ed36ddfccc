import json

import numpy as np
import pytest

from akm_harbor.ab.many import PLAN, Planned, compare_arms, parse_contrast, plan_of
from akm_harbor.ab.many_page import render_many, write_many
from akm_harbor.ab.result import Options
from akm_harbor.errors import UsageError
from akm_harbor.report.offline import external_references

from .eight import ARMS
from .support import dataset, matrix, trial


@pytest.fixture
def data(tmp_path, arms):
    late = {"status": "scored_with_error", "exception_type": "AgentTimeoutError"}
    rows = [*matrix("control", arms[0]), *matrix("akm", arms[1]), *matrix("same", arms[0])]
    rows += [r if i % 2 else {**r, **late} for i, r in enumerate(matrix("late", [[1, 1, 1]] * 19))]
    rows += [trial("far", "elsewhere", 0, 1.0), trial("none", "t", 0, None, status="install_only")]
    return dataset(tmp_path, rows)


def test_places_change_with_the_policy(data):
    r = compare_arms(data)
    assert [a.name for a in r.arms] == ["far", "late", "akm", "control", "same"]
    late = next(a for a in r.arms if a.name == "late")
    assert (late.ranks["keep-reward"], late.ranks["fail"], late.n_errors) == (1, 5, 29)
    assert late.means["fail"] == pytest.approx(28 / 57)
    assert r.empty == ("none",)
    assert r.contrasts == ()


def test_contrasts_are_the_paired_differences_with_holm(data):
    r = compare_arms(data, baseline="control")
    found = {c.arm: c for c in r.contrasts}
    assert set(found) == {"akm", "far", "late", "same"}
    assert found["akm"].difference.value == pytest.approx(0.140350877)
    assert found["akm"].sign_flip.p == pytest.approx(0.021484375)
    assert found["akm"].p_holm == pytest.approx(0.021484375)  # two tests, the other one is smaller
    assert found["late"].p_holm == pytest.approx(2 * found["late"].sign_flip.p)
    assert (found["same"].p_holm, found["far"].n_tasks) == (None, 0)


def test_planned_contrasts_are_those_and_no_others(data):
    plan = [Planned("late", "akm", "Is late better?"), Planned("akm", "control")]
    got = compare_arms(data, contrasts=plan)
    assert [(c.arm, c.versus, c.question) for c in got.contrasts] == [
        ("late", "akm", "Is late better?"),
        ("akm", "control", ""),
    ]
    late, akm = got.contrasts
    assert akm.difference.value == pytest.approx(0.140350877)
    ps = sorted((late.sign_flip.p, akm.sign_flip.p))
    assert sorted((late.p_holm, akm.p_holm)) == pytest.approx([2 * ps[0], max(2 * ps[0], ps[1])])
    assert got.baseline is None


def test_the_plan_is_cut_to_the_arms_that_are_there(data, tmp_path):
    assert plan_of(data) == ((PLAN[0],), None)
    four = [*matrix("akm", [[1], [0]]), *matrix("control", [[0], [0]])]
    four += [*matrix("injection-only", [[0], [0]]), *matrix("tools-only", [[1], [0]])]
    plan, cells = plan_of(dataset(tmp_path / "four", four))
    assert [(p.arm, p.versus) for p in plan] == [
        ("akm", "control"), ("tools-only", "control"), ("injection-only", "control"),
    ]  # fmt: skip
    assert cells == ("akm", "injection-only", "tools-only", "control")
    assert {n for p in PLAN for n in (p.arm, p.versus)} == set(ARMS)
    with pytest.raises(UsageError, match="none of the planned contrasts"):
        plan_of(data, ["late", "same"])


def test_a_contrast_as_typed():
    assert parse_contrast(" akm : control ") == PLAN[0]
    assert parse_contrast("a:b") == Planned("a", "b")
    for bad in ("a", "a:", ":b", "a:a"):
        with pytest.raises(UsageError, match="ARM:VERSUS"):
            parse_contrast(bad)


def test_factorial_is_by_task(tmp_path):
    rng = np.random.default_rng(2)
    p = {"both": 0.9, "inject": 0.7, "tools": 0.5, "neither": 0.3}
    rows = [row for arm, rate in p.items() for row in matrix(arm, rng.binomial(1, rate, (200, 2)).tolist())]
    r = compare_arms(dataset(tmp_path, rows), factorial=("both", "inject", "tools", "neither"))
    first, second, interaction = (e.result for e in r.factorial if e.kind != "simple")
    assert first.value == pytest.approx(0.4, abs=0.06)
    assert second.value == pytest.approx(0.2, abs=0.06)
    assert interaction.interval.low < 0 < interaction.interval.high
    assert "Two factors" in render_many(r)


def test_page_and_json(data, tmp_path):
    page = write_many(compare_arms(data, baseline="control", only=["akm", "late"]), tmp_path / "out").read_text()
    assert external_references(page) == []
    assert "read the corrected one" in page
    found = json.loads((tmp_path / "out/arms.json").read_text())
    assert [a["name"] for a in found["arms"]] == ["late", "akm", "control"]


def test_hostile_names_are_inert(tmp_path):
    name = "<script>alert(1)</script>\u202e"
    rows = [*matrix(name, [[1], [0], [1]]), *matrix("control", [[1], [1], [0]])]
    page = render_many(compare_arms(dataset(tmp_path, rows), baseline="control"))
    assert "<script" not in page
    assert "\u202e" not in page


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"baseline": "contrl"}, "no arm 'contrl'"),
        ({"only": ["amk"]}, "no arm 'amk'"),
        ({"baseline": "none"}, "has no attempt"),
        ({"contrasts": [Planned("akm", "cntrol")]}, "no arm 'cntrol'"),
        ({"contrasts": [Planned("akm", "none")]}, "has no attempt"),
        ({"contrasts": [PLAN[0]], "baseline": "late"}, "exclude each other"),
        ({"factorial": ("akm", "late", "same", "cntrol")}, "no arm 'cntrol'"),
        ({"options": Options(by="submission")}, "no submission has an attempt"),
    ],
)
def test_bad_requests(data, given, message):
    with pytest.raises(UsageError, match=message):
        compare_arms(data, **given)


def test_prefixed_names_need_a_decision(tmp_path):
    rows = [trial("a", f"bench/{t}", 0, 1.0) for t in "xy"] + [trial("b", t, 0, 0.0) for t in "xy"]
    data = dataset(tmp_path, rows)
    assert compare_arms(data, baseline="a").contrasts[0].n_tasks == 0
    assert compare_arms(data, Options(strip_prefix=True), baseline="a").contrasts[0].n_tasks == 2
