"""What each rule says of stores that change in known ways, each cycle a real index file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from akm_harbor.canary.alerts import Kind, Rule, Settings, evaluate
from akm_harbor.canary.simulate import scenarios
from akm_harbor.canary.simulate.scenarios import SCENARIOS, Run, play

SEES_CHURN = (Rule.CALIBRATED, Rule.AS_DESIGNED)


def _kinds(run: Run, rule: Rule, settings: Settings | None = None) -> list[set[Kind]]:
    return [{alert.kind for alert in alerts} for alerts in evaluate(run.cycles, rule, settings or Settings()).alerts]


def test_the_designs_collapse_survives_the_faithful_pass_and_is_seen_by_the_fourth(tmp_path: Path) -> None:
    run = scenarios.design_collapse(tmp_path)
    recall = [row["mean_recall"] for row in run.rows]
    assert recall[2] >= recall[1] - 0.05
    assert recall[3] > recall[4] > recall[5]
    assert run.rows[-1]["distinct_content_ratio"] < run.rows[1]["distinct_content_ratio"]
    for rule in Rule:
        found = _kinds(run, rule, Settings(window=2))
        assert not any(found[:3]), rule
        assert any(kind.is_collapse for kinds in found[3:6] for kind in kinds), rule


def test_merge_following_is_what_saves_the_faithful_pass(tmp_path: Path) -> None:
    run = scenarios.design_collapse(tmp_path)
    third = run.rows[2]["run_id"]
    through = [row for row in run.ranks if row["run_id"] == third and row["hit_by"] == "xref"]
    assert len(through) == 9


def test_churn_gives_exactly_churn(tmp_path: Path) -> None:
    run = scenarios.churn(tmp_path)
    for rule in Rule:
        found = set().union(*_kinds(run, rule))
        assert found == ({Kind.CHURN} if rule in SEES_CHURN else set()), rule


@pytest.mark.parametrize("scenario", [scenarios.faithful_merge, scenarios.rename, scenarios.reindex])
def test_what_is_legitimate_gives_none(tmp_path: Path, scenario: Callable[[Path], Run]) -> None:
    run = scenario(tmp_path)
    for rule in Rule:
        assert not any(_kinds(run, rule)), rule


def test_growth_to_five_thousand_assets_gives_none(tmp_path: Path) -> None:
    run = scenarios.growth(tmp_path)
    assert run.rows[0]["store_total"] == 60
    assert run.rows[-1]["store_total"] >= 5000
    for rule in Rule:
        assert not any(_kinds(run, rule)), rule


@pytest.mark.parametrize("scenario", [scenarios.lossy_merge, scenarios.bland_rewording])
def test_decay_is_seen_by_the_calibrated_rule_no_later_than_by_the_others(
    tmp_path: Path, scenario: Callable[[Path], Run]
) -> None:
    run = scenario(tmp_path)
    first = {}
    for rule in Rule:
        found = [i for i, kinds in enumerate(_kinds(run, rule)) if any(kind.is_collapse for kind in kinds)]
        assert found, rule
        first[rule] = found[0]
    assert first[Rule.CALIBRATED] <= min(first.values())


def test_every_scenario_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {name: SCENARIOS[name] for name in ("churn", "re-index")}
    monkeypatch.setattr(scenarios, "SCENARIOS", small)
    assert [run.label for run in play(tmp_path)] == list(small)
    assert {"design-collapse", "hygiene", "growth"} <= SCENARIOS.keys()
