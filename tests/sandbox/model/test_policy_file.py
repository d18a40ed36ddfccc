"""A policy is read, or every mistake in it is named with line and key."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.sandbox.model import load_policy

Write = Callable[..., Path]
HEAD = "version: 1\ntasks:\n  make: make\n"


def test_a_good_policy_loads(policy_file: Write) -> None:
    policy = load_policy(policy_file())
    assert list(policy.tasks) == ["paint", "fail"]
    assert policy.rules[0].turns[0].cut["colour"].source == "text"
    assert policy.task_of('"please paint the fence\n"') == "paint"
    assert policy.task_of("something else") is None


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        ("version: 2\ntasks: {a: a}\n", 1, "version"),
        ("version: 1\n", 1, "tasks"),
        (HEAD + "rulez: []\n", 4, "Did you mean `rules`?"),
        (HEAD + "rules:\n  - {name: a, turns: [{say: no}]}\n", 5, "in quotes"),
        (HEAD + "rules:\n  - name: a\n    turns: []\n", 6, "`rules[0].turns`"),
        (HEAD + "rules:\n  - name: a\n    success: 1.5\n    turns: [{say: x}]\n", 6, "`rules[0].success`"),
        (HEAD + "rules:\n  - name: a\n    turns: [{say: x, call: 3}]\n", 6, "`rules[0].turns[0].call`"),
        (HEAD + "rules:\n  - name: a\n    turns: [{say: '{{x}}'}]\n", 6, "`{{x}}` is not cut"),
        (HEAD + "rules:\n  - name: a\n    turns:\n      - {say: x}\n      - {say: y}\n", 7, "never played"),
        (HEAD + "rules:\n  - name: a\n    turns: [{}]\n", 6, "must `say` something or `call`"),
        (HEAD + "rules:\n  - name: a\n    task: meke\n    turns: [{say: x}]\n", 6, "did you mean `make`"),
        (HEAD + "rules:\n  - {name: a, turns: [{say: x}]}\n  - {name: a, turns: [{say: x}]}\n", 6, "two rules"),
        (HEAD + "rules:\n  - name: a\n    delivered: {system: '('}\n    turns: [{say: x}]\n", 6, "not a valid regex"),
        (HEAD + "rules:\n  - name: a\n    turns: [{say: x, cut: {v: {from: text, pattern: '(a)(b)'}}}]\n", 6, "group"),
        (HEAD + "rules:\n  - name: a\n    turns: [{say: x, cut: {arm: {from: text, pattern: a}}}]\n", 6, "built-in"),
        (HEAD + "rules:\n  - name: a\n    turns: [{say: x, cut: {v: {from: nowhere, pattern: a}}}]\n", 6, "from"),
        (HEAD + "faults:\n  - kind: explosion\n", 5, "`faults[0].kind`"),
        (HEAD + "faults:\n  - kind: stall\n    task: nope\n", 6, "no declared task fits `nope`"),
        (HEAD + "faults:\n  - kind: stall\n    attempts: [0]\n", 6, "`faults[0].attempts[0]`"),
        (HEAD + "default:\n  call: {tool: bash}\n", 5, "must end the conversation"),
        (HEAD + "seed: 1\nseed: 2\n", 5, "`seed` is given twice"),
        ("version: 1\ntasks: {}\n", 2, "no task is declared"),
        ("version: 1\ntasks: [\n", 3, "not valid YAML"),
    ],
)
def test_a_mistake_is_named_with_line_and_key(policy_file: Write, text: str, line: int, told: str) -> None:
    path = policy_file(text)
    with pytest.raises(AkmHarborError) as raised:
        load_policy(path)
    assert f"{path}: line {line}" in str(raised.value)
    assert told in str(raised.value)


def test_all_mistakes_are_told_at_once(policy_file: Write) -> None:
    path = policy_file(HEAD + "rules:\n  - name: a\n    task: x\n    turns: [{}]\n")
    with pytest.raises(AkmHarborError, match="2 mistakes") as raised:
        load_policy(path)
    assert "no declared task fits `x`" in str(raised.value)
    assert "must `say` something" in str(raised.value)


@pytest.mark.parametrize("raw", [b"", b"# nothing\n", b"\xff\xfe\x00", b"- a\n- b\n", b"just text", b"&a [*a]"])
def test_what_is_no_policy_at_all_is_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "policy.yaml"
    path.write_bytes(raw)
    with pytest.raises(AkmHarborError, match=r"policy\.yaml: "):
        load_policy(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(AkmHarborError, match="cannot read the policy"):
        load_policy(tmp_path / "nowhere.yaml")


def test_the_policy_in_the_docs_is_right(policy_file: Write) -> None:
    page = Path(__file__).parents[3] / "docs" / "model.md"
    blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    example, faults = (block for block in blocks if block.startswith(("version:", "faults:")))
    policy = load_policy(policy_file(example + faults))
    assert (len(policy.rules), len(policy.faults)) == (3, 2)
