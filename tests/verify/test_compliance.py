"""Scoring workflows on events, and what cannot be scored."""

import json
import sqlite3

import pytest

from akm_harbor.corpus.sync import read_specification, shipped_specifications
from akm_harbor.verify.compliance import Facts, check_specification, judge_workflow, score
from akm_harbor.verify.events import events_of
from akm_harbor.verify.outcome import BrokenVerifierError
from akm_harbor.verify.trajectory import read_trajectory

from .support import lay, step, trajectory

SHOWN = '{"ref":"skills/x","content":"..."}'
LOOK = ("akm_search", {"query": "x"}, '{"hits":[]}')
SHOW = ("akm_show", {"ref": "skills/x"}, SHOWN)
SHOW_OTHER = ("akm_show", {"ref": "skills/y"}, SHOWN)
WRITE = ("write", {"filePath": "/app/f", "content": "x"})
FAILED = ("bash", {"command": "sh check.sh"}, "CHECK FAILED: no")
GOOD = ("akm_feedback", {"ref": "skills/x", "sentiment": "positive"}, '{"ok":true}')
BAD = ("akm_feedback", {"ref": "skills/x", "sentiment": "negative", "note": "lacks a flag"}, '{"ok":true}')
BAD_MUTE = ("akm_feedback", {"ref": "skills/x", "sentiment": "negative"}, '{"ok":true}')
REMEMBER = ("akm_remember", {"content": "x"}, '{"ok":true}')


def shipped(name):
    from importlib.resources import files

    return read_specification(files("akm_harbor.verify") / "specs" / f"{name}.yaml")


def judge(tmp_path, name, *steps, gold="skills/x", abstention=False, right=True):
    events = events_of(read_trajectory(lay(tmp_path / "agent", trajectory(*steps)) / "trajectory.json"))
    result = judge_workflow(events, shipped(name), Facts(gold, abstention, right))
    return result["verdict"], result


CASES = [
    ("lookup-before-write", [[LOOK], [WRITE]], "pass"),
    ("lookup-before-write", [[WRITE], [LOOK]], "fail"),
    ("lookup-before-write", [[LOOK, WRITE]], "fail"),
    ("lookup-before-write", [[WRITE]], "fail"),
    ("lookup-before-write", [[LOOK]], "pass"),
    ("lookup-before-write", [[("read", {"filePath": "/app/f"})]], "not_applicable"),
    ("right-asset-opened", [[LOOK], [SHOW], [WRITE]], "pass"),
    ("right-asset-opened", [[LOOK], [SHOW_OTHER], [WRITE]], "fail"),
    ("right-asset-opened", [[WRITE], [SHOW]], "fail"),
    ("right-asset-opened", [[("akm_show", {"ref": "skills/x"}, None)], [WRITE]], "fail"),
    ("feedback-after-use", [[SHOW], [WRITE], [GOOD]], "pass"),
    ("feedback-after-use", [[SHOW], [GOOD], [WRITE]], "partial"),
    ("feedback-after-use", [[SHOW], [WRITE]], "partial"),
    ("feedback-after-use", [[WRITE]], "fail"),
    ("negative-feedback-on-failure", [[SHOW], [WRITE], [FAILED], [BAD], [WRITE]], "pass"),
    ("negative-feedback-on-failure", [[SHOW], [WRITE], [FAILED], [BAD_MUTE]], "fail"),
    ("negative-feedback-on-failure", [[SHOW], [WRITE], [FAILED], [GOOD]], "fail"),
    ("negative-feedback-on-failure", [[SHOW], [WRITE], [BAD], [FAILED]], "fail"),
    ("negative-feedback-on-failure", [[SHOW], [WRITE]], "not_applicable"),
    ("revisit-after-repeated-failure", [[FAILED], [FAILED], [BAD], [LOOK]], "pass"),
    ("revisit-after-repeated-failure", [[FAILED], [BAD], [LOOK], [FAILED]], "fail"),
    ("revisit-after-repeated-failure", [[FAILED], [FAILED], [LOOK]], "partial"),
    ("revisit-after-repeated-failure", [[FAILED], [WRITE]], "not_applicable"),
]


@pytest.mark.parametrize(("name", "steps", "verdict"), CASES)
def test_shipped_workflows(tmp_path, name, steps, verdict):
    assert judge(tmp_path, name, *(step(n, *calls) for n, calls in enumerate(steps, 2)))[0] == verdict


def test_abstention_is_honoured(tmp_path):
    quiet = [step(2, WRITE)]
    assert judge(tmp_path, "lookup-before-write", *quiet, gold="", abstention=True)[0] == "not_applicable"
    assert judge(tmp_path, "abstention-honoured", *quiet, gold="", abstention=True)[0] == "pass"
    looked = [step(2, LOOK), step(3, WRITE)]
    assert judge(tmp_path, "abstention-honoured", *looked, gold="", abstention=True)[0] == "pass"
    praised = [step(2, SHOW_OTHER), step(3, WRITE), step(4, GOOD)]
    assert judge(tmp_path, "abstention-honoured", *praised, gold="", abstention=True)[0] == "partial"
    both = [*praised, step(5, REMEMBER)]
    assert judge(tmp_path, "abstention-honoured", *both, gold="", abstention=True)[0] == "fail"
    assert judge(tmp_path, "abstention-honoured", *both)[0] == "not_applicable"


def test_the_steps_that_decided_are_named(tmp_path):
    verdict, result = judge(tmp_path, "right-asset-opened", step(2, WRITE), step(3, SHOW))
    (item,) = result["items"]
    assert (verdict, item["steps"], item["why"]) == ("fail", [3, 2], "came at the wrong time")
    _, result = judge(tmp_path, "right-asset-opened", step(2, LOOK), step(3, SHOW), step(4, WRITE))
    assert result["items"][0]["steps"] == [3]
    assert result["score"] == 1.0


def test_weights_make_the_score(tmp_path):
    _, result = judge(tmp_path, "feedback-after-use", step(2, SHOW), step(3, WRITE))
    assert result["score"] == pytest.approx(2 / 4)  # opened 1 and not too early 1, of these and feedback 2


SEQUENCE = {
    "id": "steps",
    "events": {"kept": {"event": "write", "matches": "press.1"}, "changed": {"event": "write", "matches": "edition"}},
    "required": [{"id": "all", "sequence": ["kept", "changed"]}],
}


def test_a_sequence_is_played_in_order(tmp_path):
    keep = ("bash", {"command": "cp press.yaml press.1.yaml"})
    change = ("edit", {"filePath": "/app/press.yaml", "newString": "edition: 2"})
    for steps, verdict in (([keep, change], "pass"), ([change, keep], "fail"), ([keep], "fail")):
        made = trajectory(*(step(n, call) for n, call in enumerate(steps, 2)))
        events = events_of(read_trajectory(lay(tmp_path / "agent", made) / "trajectory.json"))
        assert judge_workflow(events, SEQUENCE, Facts())["verdict"] == verdict


@pytest.mark.parametrize(
    ("spec", "complaint"),
    [
        ([], "a mapping with an `id`"),
        ({"id": "x"}, "nothing is required"),
        ({"id": "x", "requires": []}, "unknown key `requires`"),
        ({"id": "x", "required": [{"id": "a"}]}, "either `event` or `sequence`"),
        ({"id": "x", "required": [{"id": "a", "event": "write", "befor": "x"}]}, "unknown key `befor`"),
        ({"id": "x", "required": [{"id": "a", "event": "write", "when": {"arm": 1}}]}, "unknown condition `arm`"),
        ({"id": "x", "required": [{"id": "a", "event": "write", "matches": "("}]}, "not a regular expression"),
    ],
)
def test_wrong_specifications_are_named(spec, complaint):
    assert any(complaint in line for line in check_specification(spec))
    with pytest.raises(BrokenVerifierError):
        judge_workflow([], spec, Facts())


def test_shipped_specifications_are_sound():
    assert shipped_specifications() == sorted({name for name, _, _ in CASES} | {"abstention-honoured"})


PLAN = {"task": {"gold_ref": "skills/x", "abstention": False}, "workflows": [shipped("lookup-before-write")]}
HOSTILE = {
    "empty": ("", "is empty"),
    "blank": (" \n", "is empty"),
    "cut": (json.dumps(trajectory(step(2, WRITE)))[:-40], "cut off"),
    "no steps": ("{}", "no steps"),
    "a list": ("[]", "no steps"),
    "steps are a mapping": ('{"steps": {"a": 1}}', "no steps"),
    "a step is text": ('{"steps": ["x"]}', "do not rise"),
    "ids fall": (json.dumps({"steps": [{"step_id": 2, "source": "agent"}, {"step_id": 1}]}), "do not rise"),
    "id is huge": ('{"steps": [{"step_id": 1' + "0" * 400 + ', "source": "agent"}]}', "do not rise"),
    "id has 5,000 digits": ('{"steps": [{"step_id": ' + "1" * 5000 + "}]}", ""),
    "id is true": ('{"steps": [{"step_id": true, "source": "agent"}]}', "do not rise"),
    "only the user": (json.dumps({"steps": [{"step_id": 1, "source": "user"}]}), "made no step"),
    "nested": ('{"steps": ' + "[" * 200_000 + "}", "too deeply"),
    "calls are text": ('{"steps": [{"step_id": 1, "source": "agent", "tool_calls": "x"}]}', "not a list"),
    "a call is a number": ('{"steps": [{"step_id": 1, "source": "agent", "tool_calls": [1]}]}', "no function_name"),
    "results are text": (
        '{"steps": [{"step_id": 1, "source": "agent", "tool_calls": [], "observation": "x"}]}',
        "not a list of results",
    ),
    "fewer steps than claimed": (
        json.dumps({**trajectory(step(2, WRITE)), "final_metrics": {"total_steps": 9}}),
        "claims 9 steps, holds 2",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_scored_says_why(tmp_path, name):
    text, why = HOSTILE[name]
    result = score(PLAN, lay(tmp_path / "agent", text), akm_expected=True, right=True)
    assert result["verdict"] == "unscorable"
    assert result["score"] is None
    assert why in result["reason"]
    assert result["reason"]


def test_hostile_content_is_still_scored(tmp_path):
    deep = {"steps": [{"step_id": 1, "source": "agent", "tool_calls": []}]}
    nasty = trajectory(
        step(2, ("akm_search", {"query": "\ud800\x00" * 9}, "[" * 50_000)),
        step(3, ("write", {"filePath": ["not", "text"], "content": None})),
    )
    assert score(PLAN, lay(tmp_path / "a", nasty), akm_expected=True, right=False)["verdict"] == "pass"
    assert score(PLAN, lay(tmp_path / "b", deep), akm_expected=True, right=True)["verdict"] == "not_applicable"


def test_missing_and_odd_files(tmp_path):
    (tmp_path / "none").mkdir()
    assert score(PLAN, tmp_path / "none", akm_expected=True, right=True)["reason"] == "the trial has no trajectory.json"
    (tmp_path / "dir" / "trajectory.json").mkdir(parents=True)
    assert "not a regular file" in score(PLAN, tmp_path / "dir", akm_expected=True, right=True)["reason"]
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "trajectory.json").symlink_to("/etc/passwd")
    assert "not a regular file" in score(PLAN, tmp_path / "link", akm_expected=True, right=True)["reason"]
    (tmp_path / "bytes").mkdir()
    (tmp_path / "bytes" / "trajectory.json").write_bytes(b"\xff\xfe")
    assert "cannot be read" in score(PLAN, tmp_path / "bytes", akm_expected=True, right=True)["reason"]


def test_arms_without_akm_are_not_judged(tmp_path):
    agent = lay(tmp_path / "agent", trajectory(step(2, WRITE)), akm_expected=None)
    assert score(PLAN, agent, akm_expected=False, right=True)["reason"] == "this arm has no akm"
    assert score(PLAN, agent, akm_expected=None, right=True)["reason"] == "nothing shows that the agent had akm"
    assert score(PLAN, agent, akm_expected=True, right=True)["verdict"] == "fail"


def test_state_db_is_counted_never_ordered(tmp_path):
    agent = lay(tmp_path / "agent", trajectory(step(2, LOOK), step(3, WRITE)), akm_expected=None)
    (agent / "akm").mkdir()
    with sqlite3.connect(agent / "akm" / "state.db") as link:
        link.execute("CREATE TABLE usage_events (event_type TEXT, source TEXT)")
        link.executemany("INSERT INTO usage_events VALUES (?, ?)", [("search", "user"), ("search", "audit")])
    link.close()
    result = score(PLAN, agent, akm_expected=None, right=True)
    assert (result["verdict"], result["akm_usage"]) == ("pass", {"search": 1})
    (agent / "akm" / "state.db").write_bytes(b"not a database" * 99)
    assert score(PLAN, agent, akm_expected=True, right=True)["akm_usage"] is None
