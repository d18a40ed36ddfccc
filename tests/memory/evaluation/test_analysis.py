import json

import numpy as np
import pandas as pd
import pytest

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.evaluation.accuracy import ALL, choose_baseline, differences, per_question, scores
from akm_harbor.memory.evaluation.analysis import Options, analyse
from akm_harbor.memory.evaluation.page import SECTIONS, leader, render_page, render_section
from akm_harbor.memory.evaluation.panels import panels, shared_protocol
from akm_harbor.memory.evaluation.sources import Sources, gather
from akm_harbor.memory.evaluation.verdict import verdict
from akm_harbor.report.offline import external_references
from akm_harbor.report.verdict import to_plain
from akm_harbor.stats.results import Estimate
from tests.memory.evaluation.support import manifest, protocol, study, trials

ARMS = {"none": 0.1, "oracle": 0.95, "bm25": 0.6, "akm": 0.8}
FAST = Options(replicates=200)


def result(*studies):
    return analyse(Sources(studies, ()), FAST)


def test_a_question_counts_once_however_often_it_was_asked():
    frame = trials({"bm25": 0.5}, repeats=3, judge_repeats=2)
    table = per_question(frame)
    assert len(table) == 80
    assert table["score"].mean() == pytest.approx(frame["score_official"].mean())


def test_scores_by_type_and_overall():
    found = {(s.arm, s.group): s for s in scores(trials(ARMS), 0.95)}
    assert {group for _, group in found} == {ALL, "a", "b"}
    overall, parts = found["akm", ALL], [found["akm", "a"], found["akm", "b"]]
    assert overall.n == sum(part.n for part in parts) == 80
    assert overall.value.value == pytest.approx(np.mean([part.value.value for part in parts]))
    assert (overall.ctx_tokens, overall.in_tok, overall.usd) == (100, 120, pytest.approx(0.001))


def test_differences_are_paired_by_question():
    frame = trials(ARMS)
    frame = frame[~((frame["arm"] == "akm") & (frame["question_id"] == "h0/q0"))]
    found = {(d.arm, d.group): d for d in differences(frame, "bm25", 0.95)}
    whole = found["akm", ALL]
    a, b = (frame[frame["arm"] == arm].set_index("question_id")["score_official"] for arm in ("akm", "bm25"))
    expected = (a - b).dropna()
    assert (whole.n, whole.value.value) == (79, pytest.approx(expected.mean()))
    assert (whole.better, whole.worse) == ((expected > 0).sum(), (expected < 0).sum())
    assert whole.p_holm is not None
    assert found["none", ALL].p_holm is None
    assert ("bm25", ALL) not in found


def test_budgets_are_never_compared_with_each_other():
    frame = pd.concat([trials({"bm25": 0.5}), trials({"bm25": 0.5, "akm": 0.9}, budget=400)], ignore_index=True)
    assert {d.budget for d in differences(frame, "bm25", 0.95)} == {400}


def test_missing_scores_are_bounded_not_guessed():
    frame = trials({"bm25": 0.5})
    frame.loc[:9, "score_official"] = np.nan
    frame.loc[:3, "status"] = "undecided"
    frame.loc[4:9, "status"] = "reader-failed"
    one = scores(frame, 0.95)[0]
    assert (one.undecided, one.failed, one.n, one.asked) == (4, 6, 70, 80)
    right = frame["score_official"].sum()
    assert (one.low, one.high) == (pytest.approx(right / 80), pytest.approx((right + 10) / 80))


def test_an_unknown_price_is_none_not_zero():
    frame = trials({"bm25": 0.5})
    frame.loc[5, "reader_usd"] = np.nan
    assert scores(frame, 0.95)[0].usd is None


def test_the_baseline():
    assert choose_baseline(["none", "akm", "bm25"], "") == "bm25"
    assert choose_baseline(["none", "oracle", "akm"], "") == "akm"
    assert choose_baseline(["none"], "") == "none"
    with pytest.raises(UsageError, match="no arm 'x'"):
        choose_baseline(["akm"], "x")


def test_variance_is_shown_with_a_dash_where_nothing_was_repeated(tmp_path):
    frame = trials({"bm25": 0.5, "akm": 0.6}, repeats=2)
    once = result(study(tmp_path, trials({"bm25": 0.5, "akm": 0.6})))
    twice = result(study(tmp_path, frame))
    assert [v.reader for v in once.panels[0].variance] == [None, None]
    assert all(v.reader is not None and v.reader > 0 for v in twice.panels[0].variance)
    assert f"{twice.panels[0].variance[0].reader:.4f}" in render_section(twice, "variance")
    assert 'class="number">\u2013</td>' in render_section(once, "variance")


def test_studies_of_one_protocol_share_a_panel_and_arms_keep_apart(tmp_path):
    one = study(tmp_path, trials({"bm25": 0.5}), name="first")
    filled = {"400": protocol(budget=400, depth=100, id="x")}
    two = study(tmp_path, trials({"bm25": 0.5, "akm": 0.6}, budget=400), name="second", protocols=filled)
    found, refused = panels([one, two])
    assert refused == []
    assert len(found) == 1
    assert list(dict.fromkeys(found[0].rows["arm"])) == ["bm25", "bm25 (second)", "akm"]
    assert found[0].protocol["depth"] == 100


@pytest.mark.parametrize(
    "change", [{"scorer": "other"}, {"reader_prompt_sha256": "0" * 64}, {"judge_model": "j"}, {"sample": "40 of 80"}]
)
def test_another_protocol_is_kept_apart_with_the_reason(tmp_path, change):
    one = study(tmp_path, trials(ARMS))
    two = study(tmp_path, trials(ARMS), protocols={"as-is": protocol(**change)})
    shown = result(one, two)
    assert len(shown.panels) == 2
    (refusal,) = shown.refusals
    assert (refusal.first, refusal.second) == (1, 2)
    assert [reason.partition(":")[0] for reason in refusal.reasons] == list(change)
    assert "not comparable, because" in render_section(shown, "protocol")
    assert verdict(shown)["comparable"] is False


def test_filled_contexts_of_another_depth_are_kept_apart(tmp_path):
    at = [{"400": protocol(budget=400, depth=depth)} for depth in (100, 50)]
    found, refused = panels([study(tmp_path, trials(ARMS, budget=400), protocols=p) for p in at])
    assert len(found) == 2
    assert [r.partition(":")[0] for r in refused[0].reasons] == ["depth"]


def test_a_shared_protocol_leaves_the_budget_out():
    shared = shared_protocol(manifest(protocols={"as-is": protocol(), "400": protocol(budget=400, depth=100)}))
    assert "budget" not in shared
    assert shared["depth"] == 100


def test_floor_ceiling_and_audit(tmp_path):
    frame = trials(ARMS)
    frame.loc[frame["question_id"].isin(["h0/q0", "h1/q1"]), "audit_flag"] = "wrong key"
    frame.loc[frame["arm"] == "akm", "score_official"] = 1.0
    shown = result(study(tmp_path, frame, dataset={"audit_source": "somebody"}))
    (panel,) = shown.panels
    assert panel.floor == pytest.approx(frame[frame["arm"] == "none"]["score_official"].mean())
    assert panel.ceiling == pytest.approx(frame[frame["arm"] == "oracle"]["score_official"].mean())
    assert panel.audit is not None
    assert panel.audit.ceiling == pytest.approx(78 / 80)
    text = render_section(shown, "audit")
    assert "2 of 80" in text
    frame["score_official"] = 1.0 - 0.01 * (frame["question_id"] == "h3/q3")
    above = result(study(tmp_path, frame, dataset={"audit_source": "somebody"})).panels[0]
    assert above.audit is not None
    assert "akm" in above.audit.above


def test_every_section_and_every_chart_has_floor_and_ceiling(tmp_path):
    frame = pd.concat([trials(ARMS), trials(ARMS, budget=400)], ignore_index=True)
    shown = result(study(tmp_path, frame))
    html = render_page(shown)
    assert external_references(html) == []
    for name in SECTIONS:
        assert f'id="{name}"' in html
        assert external_references(render_section(shown, name)) == []
    for name in ("accuracy", "types", "differences", "tokens"):
        section = render_section(shown, name)
        drawn = section.count("<svg")
        assert drawn >= 1
        assert section.count("otted") >= drawn, name


def test_names_from_a_study_are_escaped(tmp_path):
    bad = '<script>alert(1)</script>"><img src=x>'
    frame = trials({bad: 0.5, "bm25": 0.6}, types=(bad, "b"))
    shown = result(study(tmp_path, frame, name=bad, stopped=bad, complete=False))
    html = render_page(shown)
    assert "<script" not in html
    assert "<img" not in html
    assert "Incomplete" in html


def test_one_arm_one_history_and_no_score_at_all_can_be_shown(tmp_path):
    lone = trials({"akm": 0.5}, histories=1)
    nothing = trials({"akm": 0.5, "bm25": 0.5})
    nothing["score_official"] = np.nan
    nothing["status"] = "not-run"
    for frame in (lone, nothing):
        shown = result(study(tmp_path, frame))
        html = render_page(shown)
        assert "nan" not in html.lower().replace("nancy", "")
        json.dumps(to_plain(verdict(shown)), allow_nan=False)
        assert leader(shown.panels[0].differences)[0] == "warn"


def test_the_verdict_holds_the_numbers_of_the_page(tmp_path):
    shown = result(study(tmp_path, trials(ARMS)))
    plain = to_plain(verdict(shown))
    (panel,) = plain["panels"]
    akm = next(s for s in panel["scores"] if s["arm"] == "akm" and s["group"] == ALL)
    assert f"{akm['value']['value']:.3f}" in render_section(shown, "accuracy")
    assert panel["baseline"] == "bm25"
    assert len(plain["coverage"]) == 11


def test_options_that_are_none():
    for bad in ({"level": 1.0}, {"level": 0.2}, {"replicates": 3}):
        with pytest.raises(UsageError):
            Options(**bad)


def test_sources_that_are_none(tmp_path):
    with pytest.raises(AkmHarborError, match="holds no memory study"):
        gather([tmp_path])
    (tmp_path / "manifest.json").write_text('{"kind": "else"}')
    with pytest.raises(UsageError, match="kind 'else'"):
        gather([tmp_path])


def test_a_difference_is_an_estimate_with_ten_histories():
    found = next(d for d in differences(trials(ARMS), "bm25", 0.9) if d.arm == "akm" and d.group == ALL)
    assert isinstance(found.value, Estimate)
    assert found.value.interval is not None
    assert found.value.interval.level == 0.9
