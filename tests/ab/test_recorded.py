"""Recorded trials of the eight arms: one is followed by hand, step by step; ledgers are edited and the edits found."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from akm_harbor.ab.arms import arm_names, load_trials, select_arm
from akm_harbor.ab.behaviour import Behaviour, behaviour
from akm_harbor.ab.many import compare_arms
from akm_harbor.ab.policies import KEEP_REWARD
from akm_harbor.trials import collect

from .eight import ARMS, TASKS, Scripted, observed

RECORDED = Path(__file__).parents[1] / "data" / "ab" / "eight"


def read(job: Path, folder: Path) -> Behaviour:
    collect([job], folder / "dataset")
    trials = load_trials(folder / "dataset")
    return behaviour(folder / "dataset", [select_arm(trials, name) for name in arm_names(trials)], KEEP_REWARD)


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return read(RECORDED, tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def copied(tmp_path):
    return Path(shutil.copytree(RECORDED, tmp_path / "eight"))


def place(seen: Behaviour, arm: str, task: str) -> int:
    """Where the one recorded trial of an arm and a task stands."""
    (found,) = (i for i, t in enumerate(seen.trials) if t.arm == arm and t.task.endswith(f"--{task}"))
    return found


MODES = {
    ("control", "keep-cores"): ("no-treatment", ()),
    ("akm", "widen-pool"): ("solved", (2, 3, 4)),
    ("akm", "keep-cores"): ("followed-failed", (3, 4)),
    ("akm", "health-probe"): ("solved", (2, 3)),  # by cat
    ("akm", "push-image"): ("found-not-opened", (2,)),
    ("akm", "feature-branch"): ("never-looked", ()),
    ("akm", "lean-canary"): ("opened-wrong", (2, 3)),
    ("akm", "restart-policy"): ("not-delivered", ()),
    ("tools-only", "turn-key"): ("opened-ignored", (3, 4)),
    ("tools-only", "scale-by-cpu"): ("gold-absent", (2,)),
    ("akm-write-gate", "publish-port"): ("gold-low", (2,)),
    ("oracle-context", "turn-key"): ("opened-ignored", (2,)),
    ("empty-bundle", "keep-cores"): ("gold-absent", (2,)),
    ("irrelevant-bundle", "health-probe"): ("gold-absent", (2,)),
    ("injection-only", "widen-pool"): ("solved", (2, 3)),  # by typing akm
}


@pytest.mark.parametrize("trial", MODES, ids="/".join)
def test_the_mode_of_a_recorded_trial_and_its_steps(seen, trial):
    mode = seen.modes[place(seen, *trial)]
    assert (mode.mode, mode.steps) == MODES[trial]


def test_nothing_else_was_recorded_and_every_arm_was(seen):
    assert len(seen.trials) == len(MODES)
    assert {arm for arm, _ in MODES} == set(ARMS)


def test_each_is_one_of_the_attempts_that_were_scripted(seen):
    table = Scripted().table()
    planted = ("akm", TASKS["restart-policy"])
    for cell, told in observed(seen).items():
        assert cell == planted or told <= table[cell]


def test_one_trial_followed_by_hand(seen):
    """tools-only/turn-key. Its trajectory: curate, show the command line's page, write a drillbit 1 command."""
    trial = seen.trials[place(seen, "tools-only", "turn-key")]
    look, opened, wrote = trial.uses
    assert (look.step, look.kind, look.verb, look.text) == (2, "lookup", "curate", "drillbit 2 command line")
    assert look.refs[:2] == ("skills/drillbit", "knowledge/drillbit-command-line")
    assert look.gold_rank == 2
    assert (opened.step, opened.kind, opened.refs) == (3, "open", ("knowledge/drillbit-command-line",))
    assert (wrote.step, wrote.kind, wrote.words) == (4, "write", ())
    assert "drillbit rotate --key invoices" in wrote.text
    assert trial.gold == ("knowledge/drillbit-command-line",)
    assert trial.withheld == ("turn:key", "--cut", "--overlap", "--seal")
    assert (trial.score, trial.delivered, trial.offered, trial.exposed) == (0.0, True, True, False)
    assert (trial.called, trial.found, trial.opened, trial.wrote) == (True, True, True, True)
    mode = seen.modes[place(seen, "tools-only", "turn-key")]
    assert (mode.mode, mode.steps, mode.calls) == ("opened-ignored", (3, 4), (1, 2))
    assert mode.why == (
        "knowledge/drillbit-command-line was opened, "
        "but what was written holds 0 of 4 words that only the bundle tells."
    )
    mine = {u.asset: u for u in seen.asset_uses if u.trial_path == trial.trial_path}
    gold = mine["knowledge/drillbit-command-line"]
    assert (gold.how, gold.steps, gold.gold) == ("opened", (2, 3), True)
    assert gold.ledgers == ("akm_usage", "plugin_events", "tool_calls")
    assert {a for a, u in mine.items() if u.how == "returned"} == set(look.refs) - {gold.asset}
    assert all(u.steps == (2,) for a, u in mine.items() if a in look.refs and a != gold.asset)


def test_a_violated_workflow_with_its_steps(seen):
    """akm-write-gate/publish-port looked (step 2), opened nothing, edited (step 3)."""
    trial = seen.trials[place(seen, "akm-write-gate", "publish-port")]
    mine = [v for v in seen.compliance.violations if v.trial_path == trial.trial_path]
    assert [(v.workflow, v.item, v.forbidden, v.steps, v.why) for v in mine] == [
        ("right-asset-opened", "gold-opened", False, (3,), "never happened")
    ]
    rows = {r.workflow: (r.n, r.verdicts, r.score) for r in seen.compliance.rows if r.arm == "akm-write-gate"}
    assert rows == {"lookup-before-write": (1, {"pass": 1}, 1.0), "right-asset-opened": (1, {"fail": 1}, 0.0)}


def test_the_ledgers_agree_as_recorded(seen):
    assert [r.disagreements for r in seen.ledgers] == [()] * len(ARMS)
    akm = next(r for r in seen.ledgers if r.arm == "akm")
    assert (akm.n_trials, akm.n_compared) == (7, 7)
    assert akm.n_calls == akm.n_agreeing == 8
    assert akm.automatic["feedback"] == 3  # one for each asset opened by akm_show, and none of the model's
    assert akm.automatic["curate"] > 0


def test_older_recordings_agree_too(tmp_path):
    """Broken, healthy and placebo treatments of two capture generations: nothing is told of them that is not so."""
    data = RECORDED.parents[1]
    for folder in (data / "p0", data / "jobs" / "p0"):
        ledgers = read(folder, tmp_path / folder.parent.name).ledgers
        assert sum(r.n_calls for r in ledgers) == 11
        assert [d for r in ledgers for d in r.disagreements] == []


def test_an_edited_ledger_is_found(copied, tmp_path, seen):
    trial = seen.trials[place(seen, "akm", "widen-pool")].trial_path.rpartition("/")[2]
    ledger = copied / trial / "agent" / "akm" / "ledger" / "events.jsonl"
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    (shown,) = (x for x in lines if x["event"] == "tool_observation" and x["input"]["tool"] == "akm_show")
    call_id = shown["input"]["callID"]
    shown["input"]["callID"] = "call_forged"
    ledger.write_text("".join(json.dumps(x) + "\n" for x in lines))
    found = [d for r in read(copied, tmp_path).ledgers for d in r.disagreements]
    assert [(d.trial_path.rpartition("/")[2], d.call_id, d.step, d.code) for d in found] == [
        (trial, call_id, 3, "not-in-ledger"),
        (trial, "call_forged", None, "only-in-ledger"),
    ]


def test_an_edited_state_db_is_found(copied, tmp_path, seen):
    trial = seen.trials[place(seen, "akm", "keep-cores")].trial_path.rpartition("/")[2]
    database = sqlite3.connect(copied / trial / "agent" / "akm" / "state.db")
    database.execute("update usage_events set entry_ref = 'bench//knowledge/other' where event_type = 'show'")
    database.commit()
    database.close()
    found = [d for r in read(copied, tmp_path).ledgers for d in r.disagreements]
    assert [(d.trial_path.rpartition("/")[2], d.step, d.code, d.subject) for d in found] == [
        (trial, 3, "not-in-usage", "akm_show knowledge/drillbit-command-line"),
        (trial, None, "only-in-usage", "akm show knowledge/other"),
    ]


def test_many_arms_hold_the_behaviour(tmp_path, seen):
    collect([RECORDED], tmp_path / "dataset")
    got = compare_arms(tmp_path / "dataset", baseline="control")
    assert got.behaviour == seen
    assert [e.uptake for e in got.complier] == ["called", "opened"]
    # one shared task: there is no interval, and it says so
    assert {e.effect.reason for e in got.complier} == {"one-task"}
    delivered = {a.name: a.delivered for a in got.arms}
    assert delivered["akm"] == pytest.approx(6 / 7)
    assert delivered["empty-bundle"] == delivered["oracle-context"] == 1.0
    assert delivered["control"] is None
