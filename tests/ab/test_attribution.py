"""Which asset was in play, told by which ledger, and success with and without it."""

import pytest

from akm_harbor.ab.arms import load_trials, select_arm
from akm_harbor.ab.attribution import asset_rows, asset_uses
from akm_harbor.ab.policies import KEEP_REWARD
from akm_harbor.ab.use import read_uses
from akm_harbor.stats.results import Estimate, NotEstimable

from .support import dataset, trial

TASKS = [{"task_name": "t", "gold_ref": "knowledge/gold", "family": "f"}]


def call(attempt, index, verb, *refs):
    return {
        "trial_id": "x",
        "root": "jobs",
        "trial_path": f"akm/t__{attempt:07d}",
        "index": index,
        "step_id": index + 2,
        "tool": f"akm_{verb}",
        "output_chars": 9,
        "output_head": "something",
        "akm_verb": verb,
        "akm_refs": refs,
    }


def used(attempt, kind, ref, *, automatic):
    trial_path = f"akm/t__{attempt:07d}"
    return {
        "trial_id": "x", "root": "jobs", "trial_path": trial_path,
        "event_type": kind, "entry_ref": f"b//{ref}", "automatic": automatic,
    }  # fmt: skip


@pytest.fixture
def read(tmp_path):
    rows = [trial("akm", "t", k, float(k < 2), n_akm_calls=int(k < 3), treatment_delivered=True) for k in range(4)]
    calls = [call(k, 0, "search", "b//knowledge/gold", "knowledge/other#part") for k in range(3)]
    calls += [call(0, 1, "show", "knowledge/gold"), call(1, 1, "show", "knowledge/gold")]
    calls += [call(2, 1, "show", "knowledge/other")]
    usage = [used(0, "show", "knowledge/gold", automatic=False), used(3, "curate", "knowledge/third", automatic=True)]
    usage += [used(0, "feedback", "knowledge/gold", automatic=True)]
    events = [
        {
            "trial_id": "x",
            "root": "jobs",
            "trial_path": "akm/t__0000003",
            "line": 1,
            "event": "prompt_recall",
            "refs": ["knowledge/gold"],
        }
    ]
    data = dataset(tmp_path, rows, TASKS, tool_calls=calls, akm_usage=usage, plugin_events=events)
    trials = read_uses(data, [select_arm(load_trials(data), "akm")], KEEP_REWARD)
    return trials, asset_uses(data, trials)


def test_the_strongest_way_and_every_ledger_that_names_it(read):
    _, uses = read
    got = {(u.trial_path[-1], u.asset): (u.how, u.steps, u.ledgers, u.gold) for u in uses}
    assert got == {
        ("0", "knowledge/gold"): ("opened", (2, 3), ("akm_usage", "tool_calls"), True),
        ("0", "knowledge/other"): ("returned", (2,), ("tool_calls",), False),
        ("1", "knowledge/gold"): ("opened", (2, 3), ("tool_calls",), True),
        ("1", "knowledge/other"): ("returned", (2,), ("tool_calls",), False),
        ("2", "knowledge/gold"): ("returned", (2,), ("tool_calls",), True),
        ("2", "knowledge/other"): ("opened", (2, 3), ("tool_calls",), False),
        ("3", "knowledge/gold"): ("recalled", (), ("plugin_events",), True),
        ("3", "knowledge/third"): ("recalled", (), ("akm_usage",), False),
    }


def test_success_with_and_without(read):
    trials, uses = read
    gold, other, third = asset_rows(trials, uses, 0.95)
    assert (gold.asset, gold.gold_for, gold.n_opened, gold.n_returned, gold.n_recalled) == (
        "knowledge/gold",
        ("t",),
        2,
        1,
        1,
    )
    assert (gold.n_with, gold.with_rate.value, gold.n_without, gold.without_rate.value) == (2, 1.0, 2, 0.0)
    assert isinstance(gold.difference, Estimate)
    # Newcombe 1998, by hand: Wilson limits of 2/2 and 0/2
    assert (gold.difference.value, gold.difference.interval.low) == (1.0, pytest.approx(0.0696, abs=1e-3))
    assert (other.n_with, other.n_without, other.difference.value) == (1, 3, pytest.approx(-2 / 3))
    assert (third.asset, third.n_opened, third.n_with) == ("knowledge/third", 0, 0)
    assert isinstance(third.with_rate, NotEstimable)
    assert isinstance(third.difference, NotEstimable)
