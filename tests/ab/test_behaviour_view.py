"""What the pages show of behaviour: from trials with akm calls to the sections of both pages."""

import dataclasses
import json

import pytest

from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.behaviour_view import ending, endings, first_look, shown_sections, stage_names
from akm_harbor.ab.funnel import FirstLook
from akm_harbor.ab.many import compare_arms
from akm_harbor.ab.many_page import render_many
from akm_harbor.ab.page import render_page, render_section
from akm_harbor.report.offline import external_references

from .support import dataset, matrix, trial

GOLD = "knowledge/x"


def call(path, index, tool, arguments, **over):
    return {
        "trial_id": "x",
        "root": "jobs",
        "trial_path": path,
        "index": index,
        "step_id": index + 2,
        "tool": tool,
        "status": "completed",
        "arguments_json": json.dumps(arguments),
        "output_head": "out",
        "output_chars": 3,
        **over,
    }


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two tasks; the treatment opens the gold asset and follows it, or finds nothing."""
    seen = {"treatment_delivered": True, "tools_offered": True, "context_injected": True}
    kept = {"id": "look-first", "verdict": "fail", "score": 0.5}
    broken = {"id": "search", "met": False, "forbidden": False, "steps": [4], "why": "wrote before <b>looking</b>"}
    compliance = json.dumps({"workflows": [{**kept, "items": [broken]}]})
    rows = [
        *[trial("a", t, 0, 0.0, n_akm_calls=0, tools_offered=False) for t in ("one", "two")],
        trial("b", "one", 0, 1.0, n_akm_calls=2, n_tool_calls=4, compliance_json=compliance, **seen),
        trial("b", "two", 0, 0.0, n_akm_calls=1, n_tool_calls=1, **seen),
    ]
    path = "b/one__0000000"
    calls = [
        call(path, 0, "bash", {"command": "ls"}),
        call(path, 1, "akm_search", {"query": "q"}, akm_verb="search", akm_refs=["s/y", GOLD], gold_rank=2),
        call(path, 2, "akm_show", {"ref": GOLD}, akm_verb="show", akm_refs=[GOLD], gold_rank=1),
        call(path, 3, "write", {"filePath": "/app/a", "content": "one\ntwo"}),
        call("b/two__0000000", 0, "akm_search", {"query": "z"}, akm_verb="search", akm_refs=["s/y"]),
    ]
    tests = [{**call("b/two__0000000", 0, "", {}), "name": "check", "status": "failed", "message": "no <i>port</i>"}]
    tests = [
        {k: row[k] for k in ("trial_id", "root", "trial_path", "index", "name", "status", "message")} for row in tests
    ]
    tasks = [{"task_name": t, "gold_ref": GOLD, "family": f} for t, f in (("one", "f/1"), ("two", "f/2"))]
    return dataset(tmp_path_factory.mktemp("seen"), rows, tasks, tool_calls=calls, tests=tests)


def test_a_page_leads_from_a_task_to_what_decided_its_trials(data):
    r = analyse(data, "a", "b")
    assert shown_sections(r.behaviour) == {"endings", "assets", "workflows", "ledgers"}
    page = render_page(r)
    assert external_references(page) == []
    trial_of = {m.trial_path: m for m in r.behaviour.modes}
    assert ending(trial_of["b/one__0000000"]) == (
        "Solved.",
        "The verifier accepted the result. Decided in calls 2, 3, 4.",
    )
    assert ending(trial_of["b/two__0000000"])[0] == "Looked, and the gold asset never came back."
    assert "Decided in call 1." in page
    assert page.count('class="mark decided"') == 4
    assert '<span class="plus">+one</span>' in page
    assert "no &lt;i&gt;port&lt;/i&gt;" in page
    assert "wrote before &lt;b&gt;looking&lt;/b&gt;" in page
    assert 'href="#workflows"' in page


def test_a_page_without_akm_leaves_its_sections_out(tmp_path):
    r = analyse(dataset(tmp_path, [*matrix("a", [[1], [0]]), *matrix("b", [[1], [1]])]), "a", "b")
    page = render_page(r)
    assert shown_sections(r.behaviour) == frozenset()
    assert 'id="assets"' not in page
    assert 'href="#assets"' not in page
    assert "No asset was in play" in render_section(r, "assets")  # a notebook's cell says so
    assert "No attempt left two ledgers" in render_section(r, "ledgers")
    assert "No verifier judged" in render_section(r, "workflows")


def test_the_page_of_many_arms_shows_the_same_behaviour(data):
    page = render_many(compare_arms(data, baseline="a"))
    assert external_references(page) == []
    for name in ("engagement", "endings", "assets", "workflows", "ledgers", "ranking", "contrasts"):
        assert f'id="{name}"' in page


def test_counts_and_ranks_in_few_words(data):
    seen = analyse(data, "a", "b").behaviour
    whole = [c for c in seen.mode_counts if c.family is None]
    assert {mode: numbers for mode, _, numbers in endings(whole)} == {
        "solved": [0, 1],
        "gold-absent": [0, 1],
        "no-treatment": [2, 0],
    }
    assert stage_names(seen.funnels)[0][0] == "delivered"
    assert stage_names([]) == []
    assert first_look(FirstLook(0, {}, 0, None)) == "\u2013"
    assert first_look(FirstLook(3, {2: 1}, 2, None)) == "absent (2 of 3 without)"
    assert first_look(FirstLook(3, {2: 3}, 0, 2.0)) == "2 (0 of 3 without)"


def test_many_calls_are_not_all_listed(data):
    mode = analyse(data, "a", "b").behaviour.modes[0]
    _, why = ending(dataclasses.replace(mode, calls=tuple(range(20))))
    assert why.endswith("Decided in calls 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, ….")


def test_placebos_stand_beside_the_funnel(tmp_path):
    rows = [
        *matrix("control", [[0, 0], [0, 1]], tools_offered=False),
        *matrix("akm", [[1, 1], [0, 1]], tools_offered=True, treatment_delivered=True),
        *matrix("empty-bundle", [[0, 0], [0, 1]], tools_offered=True),
    ]
    page = render_page(analyse(dataset(tmp_path, rows), "control", "akm"))
    assert "Against placebos" in page
    assert "<td>empty-bundle</td>" in page
