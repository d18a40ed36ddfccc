import json

import pytest

from akm_harbor.trials.akm_calls import AkmCall, akm_call, bare_ref, gold_rank

HITS = json.dumps({"hits": [{"ref": "bench//skills/a"}, {"ref": "knowledge/b#part"}, {"name": "no ref"}]})


def test_search_and_curate_give_refs_in_rank_order() -> None:
    assert akm_call("akm_search", {"query": "q"}, HITS) == AkmCall(
        "search", "q", ("bench//skills/a", "knowledge/b#part"), answered=True
    )
    items = json.dumps({"items": [{"ref": "memories/x"}], "summary": "s"})
    assert akm_call("akm_curate", {"query": "q"}, items) == AkmCall("curate", "q", ("memories/x",), answered=True)


def test_called_but_empty_is_a_state_of_its_own() -> None:
    assert akm_call("akm_search", {"query": "q"}, '{"hits": [], "tip": "Index is empty"}') == AkmCall(
        "search", "q", (), answered=False
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "output", "refs", "answered"),
    [
        ("akm_show", {"ref": "skills/a"}, '{"type":"skill","ref":"skills/a","content":"text"}', ("skills/a",), True),
        (
            "akm_feedback",
            {"ref": "skills/a", "sentiment": "positive"},
            '{"ok": true, "ref": "skills/a"}',
            ("skills/a",),
            True,
        ),
        ("akm_remember", {"content": "c", "name": "n"}, '{"ok":true,"ref":"memories/n"}', ("n",), True),
        (
            "akm_show",
            {"ref": "skills/a"},
            '{"ok":false,"error":"not found","code":"ASSET_NOT_FOUND"}',
            ("skills/a",),
            False,
        ),
        ("akm_show", {"ref": "skills/a"}, "Error: AKM CLI not found", ("skills/a",), False),
        ("akm_show", {"ref": "skills/a"}, None, ("skills/a",), None),
    ],
)
def test_the_other_verbs(tool: str, arguments: dict, output: str | None, refs: tuple, answered: bool | None) -> None:
    call = akm_call(tool, arguments, output)
    assert call is not None
    assert (call.refs, call.answered) == (refs, answered)


def test_plain_text_output_gives_its_refs() -> None:
    call = akm_call(
        "akm_search", {"query": "q"}, "1. skills/deploy (score 0.9)\n2. bench//knowledge/api.v2\n3. skills/deploy"
    )
    assert call is not None
    assert call.refs == ("skills/deploy", "bench//knowledge/api.v2")


def test_the_command_line_in_a_shell_counts_too() -> None:
    call = akm_call("bash", {"command": "cd /app && akm search 'zorbl format' --limit 3 | head"}, HITS)
    assert call == AkmCall("search", "zorbl format", ("bench//skills/a", "knowledge/b#part"), answered=True)
    call = akm_call("bash", {"command": "/opt/x/bin/akm -q show skills/a"}, "text")
    assert call is not None
    assert (call.verb, call.refs) == ("show", ("skills/a",))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"command": "cat /opt/akm-harbor/bundle/knowledge/x.md"}),
        ("bash", {"command": 'ls "$AKM_BUNDLE_DIR"'}),
        ("read", {"filePath": "/opt/akm/bundle/knowledge/x.md"}),
        ("grep", {"pattern": "x", "path": "/srv/own/bundle"}),
    ],
)
def test_reading_the_bundle_past_akm_is_akm_use(tool: str, arguments: dict) -> None:
    call = akm_call(tool, arguments, "text", ["/srv/own/bundle"])
    assert call is not None
    assert call.verb == "read"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("bash", {"command": "grep -r akm ."}),
        ("bash", {"command": "echo akmsearch; makm search x"}),
        ("write", {"filePath": "/app/x", "content": "cat /opt/akm/bundle/x"}),
        ("bash", None),
        ("bash", "akm search x"),
        ("akm_unknown", {"query": "q"}),
        ("akm_", {}),
    ],
)
def test_what_has_nothing_to_do_with_akm(tool: str, arguments: object) -> None:
    assert akm_call(tool, arguments, "text") is None


def test_output_with_progress_lines_after_the_object() -> None:
    call = akm_call("akm_search", {"query": "q"}, HITS + "\nindexing done\n")
    assert call is not None
    assert len(call.refs) == 2


def test_hostile_arguments_and_outputs() -> None:
    assert akm_call("akm_search", {"query": ["q"]}, "{" * 10_000) is not None
    assert akm_call("akm_show", {"ref": {"a": 1}}, "[]") is not None
    assert akm_call("akm_search", [], '{"hits": {"a": 1}}') is not None


def test_gold_rank_ignores_bundle_and_fragment() -> None:
    assert bare_ref("bench//skills/x#part") == bare_ref("skills/x/SKILL.md") == "skills/x"
    assert bare_ref("knowledge/api.v2.md") == "knowledge/api.v2"
    assert gold_rank(["skills/a", "bench//knowledge/b#c"], ["knowledge/b"]) == 2
    assert gold_rank(["skills/a"], ["knowledge/b"]) is None
    assert gold_rank(["a", "b"], ["b", "a"]) == 1
