"""What one row of tool_calls was."""

import json
from typing import Any

import pytest

from akm_harbor.ab.use import use_of

SHOWN = '{"type":"knowledge","ref":"knowledge/x","content":"text"}'


def call(tool: str, arguments: dict[str, Any], output: str | None = "some output", **over: Any) -> dict[str, Any]:
    return {
        "index": 3,
        "step_id": 5,
        "call_id": "call_1",
        "tool": tool,
        "status": "completed",
        "arguments_json": json.dumps(arguments),
        "output_chars": None if output is None else len(output),
        "output_head": output,
        "error": None,
        "akm_verb": None,
        "akm_query": None,
        "akm_refs": None,
        "gold_rank": None,
        **over,
    }


CAT = {"command": "cat /opt/akm-harbor/bundle/knowledge/x.md"}
READ = {"akm_verb": "read", "akm_refs": ["knowledge/x.md"], "gold_rank": 1.0}


@pytest.mark.parametrize(
    ("row", "kind", "refs", "answered"),
    [
        (
            call("akm_search", {"query": "q"}, akm_verb="search", akm_query="q", akm_refs=["b//knowledge/x"]),
            "lookup",
            ("knowledge/x",),
            True,
        ),
        (call("akm_search", {"query": "q"}, akm_verb="search", akm_query="q", akm_refs=[]), "lookup", (), False),
        (
            call("akm_show", {"ref": "knowledge/x"}, SHOWN, akm_verb="show", akm_refs=["knowledge/x"], gold_rank=1),
            "open",
            ("knowledge/x",),
            True,
        ),
        (
            call("akm_show", {"ref": "k/x"}, '{"ok":false,"error":"no"}', akm_verb="show", akm_refs=["k/x"]),
            "open",
            ("k/x",),
            False,
        ),
        (call("akm_show", {"ref": "k/x"}, status="error", akm_verb="show", akm_refs=["k/x"]), "open", ("k/x",), False),
        (call("bash", CAT, "text", **READ), "open", ("knowledge/x",), True),
        (call("bash", CAT, "cat: /opt/x.md: No such file or directory", **READ), "open", ("knowledge/x",), False),
        (call("bash", {"command": "ls /opt/akm/bundle"}, akm_verb="read", akm_refs=[]), "lookup", (), False),
        (
            call("grep", {"path": "/opt/akm/bundle"}, akm_verb="read", akm_refs=["knowledge/x.md"]),
            "lookup",
            ("knowledge/x",),
            True,
        ),
        (call("akm_feedback", {"ref": "k/x"}, akm_verb="feedback", akm_refs=["k/x"]), "other", ("k/x",), True),
        (call("write", {"filePath": "/app/a", "content": "x"}), "write", (), True),
        (call("bash", {"command": "echo x > a.txt"}, ""), "write", (), True),
        (call("bash", {"command": "echo x > a.txt"}, "", status="error"), "write", (), False),
    ],
)
def test_kinds(row, kind, refs, answered):
    use = use_of(row)
    assert use is not None
    assert (use.kind, use.refs, use.answered, use.step) == (kind, refs, answered, 5)


@pytest.mark.parametrize("row", [call("bash", {"command": "ls"}), call("read", {"filePath": "/app/a"})])
def test_a_call_that_neither_looks_nor_writes_is_none(row):
    assert use_of(row) is None


def test_withheld_words_are_whole_words_of_what_was_written():
    row = call("bash", {"command": "printf 'nib:\\n  flow: 2\\n--seals' > a"})
    assert use_of(row, ["nib", "flow", "--seal", "pool"]).words == ("nib", "flow")
    # arguments that were cut when collected are no JSON any more
    cut = call("write", {}, arguments_json='{"filePath":"/app/a","content":"nib: 1…')
    assert (use_of(cut, ["nib"]).kind, use_of(cut, ["nib"]).words) == ("write", ("nib",))
