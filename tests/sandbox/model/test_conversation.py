"""What is played depends on what was delivered; attempts differ, and in the same way every time."""

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from akm_harbor.sandbox.model import ScriptedModel

Serve = Callable[..., ScriptedModel]
Log = Callable[[], list[dict[str, Any]]]

TASK = "paint the shed\n"


def test_a_value_from_the_system_text_is_used(serve: Serve, client: Any) -> None:
    agent = client(serve().port)
    agent.say("system", "House rule: the colour is ochre.")
    assert agent.run(TASK, []) == [
        'bash {"command": "echo ochre > wall", "description": "paint"}',
        "Painted ochre.",
    ]


def test_a_value_comes_out_of_a_tool_result(serve: Serve, client: Any) -> None:
    agent = client(serve().port, tools=["bash", "akm_search"])
    told = agent.run(TASK, ["the colour is teal"])
    assert told[0] == 'akm_search {"query": "colour"}'
    assert "echo teal" in told[1]
    assert told[2] == "Painted teal."


def test_an_empty_look_up_falls_back_to_a_guess(serve: Serve, client: Any) -> None:
    agent = client(serve().port, tools=["bash", "akm_search"])
    told = agent.run(TASK, ["no hits"])
    assert [line.split()[0] for line in told] == ["akm_search", "bash", "Painted."]
    assert "white" in told[1]


def test_without_the_tool_there_is_no_look_up(serve: Serve, client: Any) -> None:
    assert "white" in client(serve().port).run(TASK, [])[0]


def test_an_injection_seen_once_is_remembered(serve: Serve, client: Any) -> None:
    """The plugin injects into the first request only."""
    agent = client(serve().port, session="s1", tools=["bash", "akm_search"])
    agent.say("system", "nothing")
    agent.say("system", "the colour is plum")
    agent.say("user", TASK)
    agent.ask()
    agent.messages.pop(1)
    call = agent.messages[-1]["tool_calls"][0]
    agent.say("tool", "", tool_call_id=call["id"])
    assert agent.ask()["content"] == "Painted plum."


def test_a_rule_that_could_not_begin_applies_later(serve: Serve, client: Any) -> None:
    text = """
version: 1
tasks: {go: go}
rules:
  - name: knows
    turns: [{cut: {word: {from: tool_result, pattern: 'word=(.+)'}}, say: 'it is {{word}}'}]
  - name: asks
    turns: [{call: {tool: bash, args: {command: ask}}}]
"""
    assert client(serve(text).port).run("go", ["word=tern"])[1:] == ["it is tern"]


def test_an_unknown_task_gets_the_default(serve: Serve, client: Any) -> None:
    assert client(serve().port).run("water the plants", []) == ["I have no rule for this request."]


def test_rules_can_be_for_one_arm(serve: Serve, client: Any) -> None:
    text = """
version: 1
tasks: {hello: hello}
rules:
  - {name: one, arm: control, turns: [{say: 'control {{attempt}}'}]}
  - {name: two, arm: 'akm*', turns: [{say: 'akm {{arm}}'}]}
"""
    port = serve(text).port
    assert client(port, arm="control").run("hello", []) == ["control 1"]
    assert client(port, arm="akm-tools").run("hello", []) == ["akm akm-tools"]
    assert client(port, arm=None).run("hello", []) == ["I have no rule for this request."]


def test_attempts_differ_and_repeat(serve: Serve, client: Any) -> None:
    def outcomes() -> list[bool]:
        port = serve().port
        return [client(port, session=f"s{n}").run("try your luck", []) == ["yes"] for n in range(24)]

    first = outcomes()
    assert first == outcomes()
    assert 6 <= sum(first) <= 18


def test_success_is_drawn_for_each_arm_by_itself(serve: Serve, client: Any) -> None:
    port = serve().port
    by_arm = {
        arm: [client(port, arm=arm, session=f"{arm}{n}").run("try your luck", []) for n in range(16)]
        for arm in ("control", "akm")
    }
    assert by_arm["control"] != by_arm["akm"]


def test_concurrent_sessions_are_distinct_attempts(serve: Serve, client: Any, log_lines: Log) -> None:
    port, alone = serve().port, serve().port
    told: list[list[str]] = []

    def play(number: int) -> None:
        told.append(client(port, session=f"s{number}").run("try your luck", []))

    threads = [threading.Thread(target=play, args=(n,)) for n in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [client(alone, session=f"a{n}").run("try your luck", []) for n in range(24)]
    assert Counter(map(str, told)) == Counter(map(str, expected))
    assert sorted(line["attempt"] for line in log_lines()) == sorted([*range(1, 25), *range(1, 25)])


def test_a_repeated_request_gets_the_same_answer(serve: Serve, client: Any) -> None:
    agent = client(serve().port, session="s1")
    agent.say("user", TASK)
    first = agent.ask()
    agent.messages.pop()
    assert agent.ask() == first


def test_without_a_session_header_the_call_ids_tell(serve: Serve, client: Any, log_lines: Log) -> None:
    port = serve().port
    for _ in range(2):
        client(port).run(TASK, [])
    assert [(line["attempt"], line["turn"]) for line in log_lines()] == [(1, 0), (1, 1), (2, 0), (2, 1)]


def test_a_title_request_is_no_attempt_of_its_own(serve: Serve, client: Any, log_lines: Log) -> None:
    port = serve().port
    title = client(port, session="s1", tools=[])
    title.say("system", "You are a title generator.")
    title.say("user", "Generate a title for this conversation:\n")
    title.say("user", TASK)
    assert title.ask()["content"] == "A title"
    client(port, session="s1").run(TASK, [])
    lines = log_lines()
    assert [line["kind"] for line in lines] == ["title", "main", "main"]
    assert {line["attempt"] for line in lines} == {1}


def test_a_subagent_is_no_attempt(serve: Serve, client: Any, log_lines: Log) -> None:
    port = serve().port
    client(port, session="s1").run(TASK, [])
    child = client(port, session="s2")
    child.say("user", TASK)
    child.post(child.body(), {"x-parent-session-id": "s1"}).read()
    client(port, session="s3").run(TASK, [])
    assert [(line["task"], line["attempt"]) for line in log_lines()] == [
        ("paint", 1),
        ("paint", 1),
        (None, 1),
        ("paint", 2),
        ("paint", 2),
    ]
