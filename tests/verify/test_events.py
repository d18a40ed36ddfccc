"""What tool calls were."""

import pytest

from akm_harbor.verify.events import concept_id, events_of_call
from akm_harbor.verify.trajectory import Call

SHOWN = '{"type":"skill","ref":"skills/x","content":"..."}'


def kinds(tool, arguments, result="(no output)"):
    return [event.kind for event in events_of_call(Call(2, 0, tool, arguments, result))]


@pytest.mark.parametrize(
    ("ref", "concept"),
    [
        ("skills/x", "skills/x"),
        ("bundle//skills/x#part", "skills/x"),
        ("skill:x", "skills/x"),
        ("memory:x", "memories/x"),
        ("local//knowledge:x", "knowledge/x"),
        ("skills/x/SKILL.md", "skills/x"),
        ("knowledge/x.md", "knowledge/x"),
    ],
)
def test_references(ref, concept):
    assert concept_id(ref) == concept


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("echo x > out.txt", ["run", "write"]),
        ("cat <<'EOF' > out.txt\nakm search x > y\nEOF", ["run", "write"]),
        ("cat <<'EOF'\nakm search x > y\nEOF", ["run"]),
        ("grep 'a > b' file", ["run"]),
        ("ls -l 2>/dev/null >/dev/null", ["run"]),
        ("cmd > /tmp/log", ["run"]),
        ("sed -n 1p f", ["run"]),
        ("sed -i s/a/b/ f", ["run", "write"]),
        ("cp a b && ls", ["run", "write"]),
        ("python3 -c \"open('f', 'w').write('x')\"", ["run", "write"]),
        ("node -e 'a => b'", ["run"]),
        ("bash -c 'echo x > f'", ["run", "write"]),
        ("akm search retry backoff", ["run", "search", "lookup"]),
        ("cd /app && akm curate 'retry' | head", ["run", "curate", "lookup"]),
        ("/opt/akm-harbor/toolchain/bin/akm show skills/x", ["run", "show", "lookup"]),
        ("cat /opt/akm-harbor/bundle/skills/x/SKILL.md", ["run", "show", "lookup"]),
        ("akm feedback skills/x --negative --reason 'old'", ["run", "feedback"]),
        ("akm workflow next workflows/deploy", ["run", "workflow"]),
        ("echo 'akm search x'", ["run"]),
        ("an 'open quote", ["run"]),
    ],
)
def test_shell_commands(command, expected):
    assert kinds("bash", {"command": command}) == expected


def test_tools():
    assert kinds("write", {"filePath": "/app/x", "content": "y"}) == ["write"]
    assert kinds("write", {"filePath": "/tmp/x", "content": "y"}) == []
    assert kinds("read", {"filePath": "/app/x"}) == ["read"]
    assert kinds("read", {"filePath": "/opt/akm-harbor/bundle/knowledge/x.md"}) == ["read", "show", "lookup"]
    assert kinds("akm_curate", {"query": "x"}) == ["curate", "lookup"]
    assert kinds("akm_show", {"ref": "skills/x"}, SHOWN) == ["show", "lookup"]
    assert kinds("todowrite", {}) == ["todowrite"]
    assert kinds("akm_show", {"ref": 7}) == ["show", "lookup"]


def test_details_of_feedback():
    (event,) = events_of_call(
        Call(2, 0, "akm_feedback", {"ref": "x//skills/y", "sentiment": "Negative", "note": "old"}, "{}")
    )
    assert (event.ref, event.sentiment, event.reason) == ("skills/y", "negative", "old")
    events = events_of_call(Call(2, 0, "bash", {"command": "akm feedback skill:y --negative --reason=old"}, "{}"))
    assert [(e.ref, e.sentiment, e.reason) for e in events if e.kind == "feedback"] == [("skills/y", "negative", "old")]


@pytest.mark.parametrize("result", [None, "", '{"ok":false,"error":"no such asset"}', "Error: not found"])
def test_a_failed_show_opened_nothing(result):
    assert not any(event.ok for event in events_of_call(Call(2, 0, "akm_show", {"ref": "skills/x"}, result)))


def test_an_akm_that_is_not_there_shows_nothing():
    events = events_of_call(
        Call(2, 0, "bash", {"command": "akm show skills/x"}, "/bin/bash: line 1: akm: command not found")
    )
    assert [event.kind for event in events if event.ok] == []


def test_an_empty_hit_list_is_still_a_look_up():
    assert all(event.ok for event in events_of_call(Call(2, 0, "akm_search", {"query": "x"}, '{"hits":[]}')))


def test_hostile_commands_take_no_time():
    import time

    started = time.monotonic()
    for text in ("open(" * 20_000, "/opt/akm/bundle/" * 2_000, "sed " + "-a " * 9_000, "'" * 9_999, ">" * 20_000):
        kinds("bash", {"command": text})
    assert time.monotonic() - started < 5
