"""Workflow compliance as the verifiers left it."""

import json

from akm_harbor.ab.arms import load_trials, select_arm
from akm_harbor.ab.workflows import compliance

from .support import dataset, trial

LATE = {
    "id": "looked-up",
    "forbidden": False,
    "met": False,
    "weight": 1.0,
    "steps": [5, 3],
    "why": "came at the wrong time",
}
PRAISE = {"id": "praised", "forbidden": True, "met": False, "weight": 1.0, "steps": [7], "why": "happened"}
FINE = {"id": "opened", "forbidden": False, "met": True, "weight": 1.0, "steps": [2], "why": "happened"}
SKIPPED = {"id": "reported", "forbidden": False, "met": None, "weight": 1.0, "steps": [], "why": "does not apply"}


def judged(verdict, score, *items, name="lookup-before-write"):
    return json.dumps({"version": 1, "workflows": [{"id": name, "verdict": verdict, "score": score, "items": items}]})


def test_verdicts_scores_and_violations_with_their_steps(tmp_path):
    rows = [
        trial("akm", "t", 0, 1.0, compliance_json=judged("pass", 1.0, FINE)),
        trial("akm", "t", 1, 1.0, compliance_json=judged("partial", 0.5, FINE, LATE, PRAISE, SKIPPED)),
        trial("akm", "t", 2, 0.0, compliance_json=judged("not_applicable", None, SKIPPED)),
        trial("akm", "t", 3, 0.0),
        trial("control", "t", 0, 0.0, compliance_json='{"version": 1, "verdict": "not_applicable", "workflows": []}'),
    ]
    frame = load_trials(dataset(tmp_path, rows))
    got = compliance([select_arm(frame, name) for name in ("akm", "control")])
    (row,) = got.rows
    assert (row.arm, row.workflow, row.n, row.score) == ("akm", "lookup-before-write", 3, 0.75)
    assert row.verdicts == {"pass": 1, "partial": 1, "not_applicable": 1}
    late, praise = got.violations
    assert (late.trial_path, late.task, late.item, late.forbidden, late.steps) == (
        "akm/t__0000001", "t", "looked-up", False, (5, 3),
    )  # fmt: skip
    assert (praise.item, praise.forbidden, praise.steps, praise.why) == ("praised", True, (7,), "happened")


def test_a_file_that_holds_anything_is_no_reason_to_stop(tmp_path):
    odd = ["[]", "{", '{"workflows": 3}', '{"workflows": [1, {"id": 2}, {"id": "w", "items": [null, {"met": false}]}]}']
    rows = [trial("akm", "t", k, 1.0, compliance_json=text) for k, text in enumerate(odd)]
    frame = load_trials(dataset(tmp_path, rows))
    got = compliance([select_arm(frame, "akm")])
    assert [(r.workflow, r.n, r.score) for r in got.rows] == [("w", 1, None)]
    assert [(v.item, v.steps) for v in got.violations] == [("None", ())]
