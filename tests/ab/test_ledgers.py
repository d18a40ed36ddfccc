"""Ledgers that agree, and each way in which they can be made to disagree."""

from copy import deepcopy
from typing import Any

import pytest

from akm_harbor.ab.ledgers import MEANING, disagreements

from .uses import attempt

ASSET = "knowledge/x"


def call(index: int, tool: str, **over: Any) -> dict[str, Any]:
    verb = tool.removeprefix("akm_") if tool.startswith("akm_") else None
    query = "q" if verb in {"search", "curate"} else None
    return {
        "index": index,
        "step_id": index + 2,
        "call_id": f"call_{index}",
        "tool": tool,
        "status": "completed",
        "arguments_json": '{"query":"q"}' if query else f'{{"ref":"{ASSET}"}}' if verb else '{"command":"echo > a"}',
        "output_chars": 20,
        "output_head": "text of the asset",
        "error": None,
        "akm_verb": verb,
        "akm_query": query,
        "akm_refs": [ASSET] if verb else None,
        "gold_rank": 1 if verb else None,
        "source": "trajectory.json",
        **over,
    }


def event(line: int, index: int, tool: str, **over: Any) -> dict[str, Any]:
    refs = [ASSET] if tool == "akm_show" else []
    values = {"line": line, "event": "tool_observation", "call_id": f"call_{index}", "tool": tool, "status": "ok"}
    return {**values, "refs": refs, **over}


def usage(kind: str, *, automatic: bool | None = False, **over: Any) -> dict[str, Any]:
    asked = {"query": "q", "entry_ref": None} if kind in {"search", "curate"} else {"query": None}
    return {"event_type": kind, "source": "user", "automatic": automatic, "entry_ref": f"b//{ASSET}", **asked, **over}


@pytest.fixture
def agreeing():
    """One attempt: a curate, an opening, a write; the plugin curated and gave feedback by itself."""
    return {
        "calls": [call(0, "akm_curate"), call(1, "akm_show"), call(2, "bash")],
        "events": [
            {"line": 1, "event": "session_started", "call_id": None, "tool": None, "status": "ok", "refs": []},
            event(2, 0, "akm_curate"),
            event(3, 1, "akm_show"),
        ],
        "usage": [
            usage("curate", automatic=True, query="the whole instruction"),
            usage("curate"),
            usage("curate", entry_ref=f"b//{ASSET}"),
            usage("show"),
            usage("feedback", automatic=True),
        ],
        "requests": [{"kind": "main", "tools": ["akm_curate", "akm_show", "bash"]}],
    }


def codes(rows):
    return [d.code for d in disagreements(attempt(), **rows)]


def test_ledgers_that_agree_say_nothing(agreeing):
    assert codes(agreeing) == []


def _drop(rows, table, place):
    del rows[table][place]


PLANTED = {
    "not-in-ledger": lambda r: _drop(r, "events", 2),
    "only-in-ledger": lambda r: r["events"].append(event(4, 9, "akm_show")),
    "tool-differs": lambda r: r["events"][2].update(tool="akm_search"),
    "status-differs": lambda r: r["events"][2].update(status="failed"),
    "ref-differs": lambda r: r["events"][2].update(refs=["knowledge/y"]),
    "order-differs": lambda r: (r["events"][1].update(line=3), r["events"][2].update(line=2)),
    "not-in-usage": lambda r: _drop(r, "usage", 3),
    "only-in-usage": lambda r: r["usage"].append(usage("show", automatic=None, entry_ref="b//knowledge/y")),
    "ledger-absent": lambda r: r.update(usage=[]),
    "not-in-stream": lambda r: r["calls"][1].update(status=None),
    "called-unoffered": lambda r: r["requests"][0].update(tools=["akm_curate", "bash"]),
}


@pytest.mark.parametrize("code", PLANTED)
def test_a_planted_disagreement_is_the_only_one_found(agreeing, code):
    rows = deepcopy(agreeing)
    PLANTED[code](rows)
    (found,) = disagreements(attempt(), **rows)
    assert found.code == code
    assert len(found.says) == 2
    assert (found.root, found.trial_path, found.arm, found.task) == ("jobs", "job/trial", "akm", "task")


def test_every_code_is_met_and_explained():
    assert set(PLANTED) == set(MEANING)


def test_the_call_is_named_with_its_step(agreeing):
    _drop(agreeing, "events", 2)
    (found,) = disagreements(attempt(), **agreeing)
    assert (found.call_id, found.step, found.subject) == ("call_1", 3, f"akm_show {ASSET}")
    assert dict(found.says) == {"tool_calls": "called", "plugin_events": "no such call id"}


@pytest.mark.parametrize(
    "change",
    [
        # the plugin's own traffic
        lambda r: r["usage"].append(usage("curate", automatic=None, query="a summary of the folder")),
        lambda r: r["usage"].append(usage("show", source="audit", entry_ref="b//knowledge/y")),
        # nothing came back, so there is nothing to be counted
        lambda r: r["calls"].append(call(3, "bash", akm_verb="search", akm_query="vain", akm_refs=[])),
        # a shell that reads the bundle is in no ledger of akm's
        lambda r: r["calls"].append(call(3, "bash", akm_verb="read")),
        # no probe, no printed stream
        lambda r: r.update(requests=[]),
        lambda r: [c.update(status=None) for c in r["calls"]],
        # opencode calls it completed, but what came back says that akm refused
        lambda r: (
            r["calls"].append(call(3, "akm_feedback", output_head='{"ok":false,"error":"no akm"}')),
            r["requests"][0]["tools"].append("akm_feedback"),
            r["events"].append(event(4, 3, "akm_feedback", status="failed")),
        ),
        # other events of the same call
        lambda r: r["events"].append(event(4, 1, "akm_show", event="tool_ref_observed")),
    ],
)
def test_what_is_no_disagreement(agreeing, change):
    change(agreeing)
    assert codes(agreeing) == []


def test_one_ledger_for_a_shell_call_is_enough(agreeing):
    agreeing["calls"].append(call(3, "bash", akm_verb="show", akm_refs=["knowledge/z"]))
    assert codes(agreeing) == ["not-in-usage"]
    agreeing["usage"].append(usage("show", entry_ref="b//knowledge/z"))
    assert codes(agreeing) == []
