import numpy as np
import pytest

from akm_harbor.canary.alerts import Cycle, Kind, Rule, Settings, evaluate
from akm_harbor.canary.alerts.calibrated import contrasts, design, recall_limits
from akm_harbor.canary.alerts.exact import correlations
from akm_harbor.canary.simulate.noise import Noise, calibrated_verdicts, draw
from tests.canary.alerts.cycles import START, cycle, series


def _last(cycles: list[Cycle], settings: Settings | None = None) -> list[Kind]:
    return [alert.kind for alert in evaluate(cycles, Rule.CALIBRATED, settings or Settings()).alerts[-1]]


def _without(number: int, *lost: int, **more: object) -> Cycle:
    return cycle(number, ranks={i: -1 if i in lost else 0 for i in range(40)}, **more)


def test_two_canaries_may_go_and_three_may_not() -> None:
    quiet = series([40] * 6)
    assert _last([*quiet, _without(6, 0, 1)]) == []
    assert _last([*quiet, *(_without(6 + i, 0, 1) for i in range(30))]) == []
    assert _last([*quiet, _without(6, 0, 1, 2)]) == [Kind.RECALL]
    assert _last([*quiet, _without(6, 0, 1, 2)], Settings(spared=3)) == []


def test_a_collapse_is_seen_from_the_third_cycle_on() -> None:
    assert evaluate(series([40, 20]), Rule.CALIBRATED).judged == (False, False)
    assert _last(series([40, 40, 30])) == [Kind.RECALL]


def test_it_matters_which_canaries_are_missed() -> None:
    """Twenty canaries flicker. Five more of them missed is chance; five dependable ones missed is not."""
    rng = np.random.default_rng(1)
    turns = [[int(canary) for canary in rng.permutation(20)] for _ in range(8)]
    usual = [_without(i, *turns[i][:10]) for i in range(7)]
    more_flicker = _without(7, *turns[7][:15])
    dependable = _without(7, *turns[7][:10], 30, 31, 32, 33, 34)
    assert more_flicker.hits == dependable.hits == 25
    assert _last([*usual, more_flicker]) == []
    assert _last([*usual, dependable]) == [Kind.RECALL]


def test_a_slow_decline_is_seen_though_no_window_shows_it() -> None:
    cycles = [_without(i, *range(max(0, (i - 20) // 10))) for i in range(80)]
    found = evaluate(cycles, Rule.CALIBRATED)
    assert [alert.kind for alert in found.alerts[-1]] == [Kind.DECLINE]
    assert "first 20 cycles of the set" in found.alerts[-1][0].detail
    assert not any(evaluate(cycles, Rule.AS_DESIGNED).alerts)


def test_the_alert_does_not_fade_as_the_window_sinks() -> None:
    cycles = [_without(i, *(range(10) if i >= 30 else ())) for i in range(90)]
    assert _last(cycles) == [Kind.DECLINE]
    assert not evaluate(cycles, Rule.AS_DESIGNED).alerts[-1]


def test_lost_canaries_are_named_the_most_lost_first() -> None:
    cycles = [*(_without(i, 7) if i == 2 else _without(i) for i in range(6)), _without(6, 3, 7, 11)]
    (alert,) = evaluate(cycles, Rule.CALIBRATED).alerts[-1]
    assert alert.lost == (3, 11, 7)
    assert alert.metrics["found"] == 37
    assert alert.p is not None
    assert alert.p < 0.02


def test_the_rate_is_the_users() -> None:
    cycles = [*series([40] * 6), _without(6, 0, 1, 2)]
    assert _last(cycles, Settings(rate=0.01)) == [Kind.RECALL]
    assert _last(cycles, Settings(rate=0.0001)) == []
    with pytest.raises(ValueError, match="rate"):
        Settings(rate=0.0)
    with pytest.raises(ValueError, match="window"):
        Settings(window=1)


def test_a_canary_that_was_not_always_asked_drops_out() -> None:
    cycles = series([40] * 6)
    cycles[3] = cycle(3, ranks=dict.fromkeys(range(3, 40), 0))
    assert _last([*cycles, _without(6, 0, 1, 2)]) == []
    assert _last([*cycles, _without(6, 10, 11, 12)]) == [Kind.RECALL]


def test_duplicates_are_judged_for_the_size_of_the_store() -> None:
    def store(total: int, duplicates: int, number: int) -> Cycle:
        return cycle(number, total=total, distinct=total - duplicates)

    small = [store(60, 0, i) for i in range(6)]
    assert _last([*small, store(60, 4, 6)]) == []  # as designed this is an alert
    assert _last([*small, store(60, 12, 6)]) == [Kind.ENTROPY]
    large = [store(10_000, 100, i) for i in range(6)]
    assert _last([*large, store(10_000, 150, 6)]) == []  # beyond chance, not worth a line
    assert _last([*large, store(10_000, 260, 6)]) == [Kind.ENTROPY]  # as designed this is none
    assert not evaluate([*large, store(10_000, 260, 6)], Rule.AS_DESIGNED).alerts[-1]


def test_growth_keeps_its_share_of_duplicates() -> None:
    assert _last([cycle(i, total=100 * 2**i, distinct=98 * 2**i) for i in range(8)]) == []


def test_shrinking_is_hygiene_unless_merges_pile_up() -> None:
    before = [cycle(i, total=400, distinct=400) for i in range(6)]
    assert _last([*before, cycle(6, total=250, distinct=250)]) == []
    assert _last([*before, cycle(6, total=250, distinct=250, over_generation=2)]) == [Kind.SHRINK]
    assert _last([*before, cycle(6, total=385, distinct=385, over_generation=2)]) == []


def test_churn_is_advice_and_never_beside_a_collapse() -> None:
    busy = series([40] * 6, accepted=6)
    assert _last([*busy, cycle(6, accepted=6)]) == [Kind.CHURN]
    assert _last([*busy, _without(6, 0, 1, 2, 3, accepted=6)]) == [Kind.RECALL]
    assert _last([*series([40] * 6, accepted=3), cycle(6)]) == []


def test_merge_floor_violations_are_facts() -> None:
    assert _last([cycle(0, violations=3)]) == [Kind.MERGE_FLOOR]
    assert _last([cycle(0, violations=2)]) == []


def test_contrasts_by_length() -> None:
    assert [len(contrasts(position, 5)) for position in (2, 6, 7, 23, 24, 60)] == [1, 1, 2, 2, 3, 3]
    for position in (7, 24, 60):
        for contrast in contrasts(position, 5):
            assert contrast.recent[1] == position + 1
            assert contrast.reference[1] <= contrast.recent[0]


def test_the_design_settles() -> None:
    for position in (2, 7, 30, 61, 62, 500):
        assert design(position, 5) == correlations(contrasts(position, 5))


def test_the_simulation_judges_as_the_rule_does() -> None:
    rng = np.random.default_rng(4)
    hits = draw(Noise(0.8).probabilities(16, rng), 26, rng)
    hits[:, :, -2:] &= rng.random((16, 40, 2)) < np.linspace(0.7, 1, 16)[:, None, None]
    fast = calibrated_verdicts(hits, Settings(rate=0.05))
    slow = [bool(_last(_cycles(one), Settings(rate=0.05))) for one in hits]
    assert fast.tolist() == slow
    assert 3 < sum(slow) < 13


def _cycles(hits: np.ndarray) -> list[Cycle]:
    return [
        cycle(t, ranks={i: 0 if found else -1 for i, found in enumerate(hits[:, t].tolist())})
        for t in range(hits.shape[1])
    ]


def test_the_band_of_the_chart_is_about_where_alerts_are() -> None:
    quiet = series([40] * 6)
    assert recall_limits([*quiet, cycle(6)])[-1] == pytest.approx(37.5 / 40)
    assert recall_limits(quiet[:2]) == [None, None]


def test_same_data_same_verdict() -> None:
    rng = np.random.default_rng(9)
    cycles = _cycles(draw(Noise(0.85).probabilities(1, rng), 40, rng)[0])
    assert evaluate(cycles, Rule.CALIBRATED) == evaluate(list(cycles), Rule.CALIBRATED)
    assert cycles[0].ts == START
