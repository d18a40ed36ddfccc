import pytest

from akm_harbor.canary.alerts import Cycle, Kind, Rule, akm, designed, evaluate
from tests.canary.alerts.cycles import cycle, series


def _kinds(history: list[Cycle], current: Cycle) -> list[Kind]:
    return [alert.kind for alert in designed.evaluate(history, current)]


def test_recall_fires_at_the_very_boundary_where_floating_point_does_not() -> None:
    history = series([38] * 5)
    at, above = cycle(9, 32), cycle(9, 33)
    assert 0.95 - 0.15 < 0.8  # why akm's own rule stays silent
    assert _kinds(history, at) == [Kind.RECALL]
    assert _kinds(history, above) == []
    assert akm.evaluate(history, at) == []


def test_the_median_of_the_window_not_the_cycle_before() -> None:
    assert _kinds(series([40, 40, 40, 40, 20]), cycle(9, 34)) == [Kind.RECALL]
    assert _kinds(series([40, 20, 20, 20, 40]), cycle(9, 20)) == []


def test_no_verdict_on_a_collapse_before_the_window_is_full() -> None:
    assert _kinds(series([40] * 4), cycle(9, 0)) == []
    assert _kinds([], cycle(0, violations=1)) == [Kind.MERGE_FLOOR]


@pytest.mark.parametrize(
    ("distinct", "now", "fires"),
    [
        ([100, 99, 98, 97, 96], 95, True),
        ([100, 99, 98, 97, 96], 96, False),
        ([100, 99, 99, 99, 99], 95, True),
        ([100, 97, 98, 97, 96], 95, False),
    ],
    ids=["at-0.05", "above", "flat-parts", "one-rise"],
)
def test_entropy(distinct: list[int], now: int, *, fires: bool) -> None:
    history = [cycle(i, distinct=count) for i, count in enumerate(distinct)]
    assert _kinds(history, cycle(9, distinct=now)) == ([Kind.ENTROPY] if fires else [])


def test_shrink_needs_both_fewer_memories_and_more_over_generation() -> None:
    history = [cycle(i, memories=100) for i in range(5)]
    assert _kinds(history, cycle(9, memories=79, over_generation=1)) == [Kind.SHRINK]
    assert _kinds(history, cycle(9, memories=80, over_generation=1)) == []
    assert _kinds(history, cycle(9, memories=79)) == []


def test_churn() -> None:
    history = series([40] * 5, accepted=5)
    assert _kinds(history, cycle(9, 40, accepted=5)) == [Kind.CHURN]
    assert _kinds(history, cycle(9, 39)) == []  # one canary of 40 is 0.025
    assert _kinds(series([40] * 5, accepted=4), cycle(9, 40)) == []
    assert _kinds(history, cycle(9, 40, distinct=98)) == []


def test_two_sets_never_judge_each_other() -> None:
    cycles = [*series([40] * 5), *[cycle(5 + i, 10, set_id="t") for i in range(5)]]
    found = evaluate(cycles, Rule.AS_DESIGNED)
    assert not any(found.alerts)
    assert found.judged == (False,) * 10
    assert evaluate([*cycles, cycle(20, 2, set_id="t")], Rule.AS_DESIGNED).alerts[-1][0].kind is Kind.RECALL


def test_a_store_asked_in_another_way_begins_anew() -> None:
    cycles = [
        *series([40] * 5, asked=("entry-json", "10")),
        *[cycle(9 + i, 9, asked=("units", "10")) for i in range(3)],
    ]
    for rule in Rule:
        assert not any(evaluate(cycles, rule).alerts)
