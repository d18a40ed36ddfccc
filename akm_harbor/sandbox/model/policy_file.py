"""Read a policy file; every mistake in it is named with file, line and key."""

import difflib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import yaml

from akm_harbor.errors import AkmHarborError
from akm_harbor.sandbox.model.policy import (
    BUILT_IN_VALUES,
    PLACEHOLDER,
    Call,
    Cut,
    Delivered,
    Fault,
    Names,
    Policy,
    Rule,
    Turn,
    names_match,
    regex,
)
from akm_harbor.yaml_text import compose, doubled

Place = tuple[str | int, ...]
"""Where something is in the file, e.g. `("rules", 0, "turns", 1)`."""

_STRUCTS = (Policy, Rule, Turn, Call, Cut, Delivered, Fault)
_KEYS = sorted({field.encode_name for struct in _STRUCTS for field in msgspec.structs.fields(struct)})
_AT = re.compile(r"^(?P<what>.*?)(?: - at `(?P<at>[^`]*)`)?$", re.DOTALL)
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]")
_MAX_BYTES = 4 << 20


def load_policy(path: Path) -> Policy:
    """Read and check a policy file.

    Raises:
        AkmHarborError: with file, line and key of everything that is wrong.
    """
    root, data = _read(path)
    try:
        policy = msgspec.convert(data, Policy)
    except msgspec.ValidationError as error:
        raise _shape_error(path, root, str(error)) from None
    wrong = list(_problems(policy))
    if wrong:
        lines = [f"line {_line(root, place)}, {_key(place)}: {what}" for place, what in wrong]
        message = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} mistakes in the policy:", *lines])
        raise AkmHarborError(message, path=path)
    return policy


def _read(path: Path) -> tuple[yaml.Node, object]:
    """The YAML node tree (it knows the lines) and the plain data."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise AkmHarborError(f"cannot read the policy ({error.strerror})", path=path) from None
    if len(raw) > _MAX_BYTES:
        raise AkmHarborError(f"a policy of {len(raw)} bytes is more than the {_MAX_BYTES} allowed", path=path)
    try:
        root, data = compose(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise AkmHarborError("not UTF-8 text", path=path) from None
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise AkmHarborError(f"{line}not valid YAML: {error.problem}", path=path) from None
    except yaml.YAMLError as error:
        raise AkmHarborError(f"not valid YAML: {error}", path=path) from None
    if root is None:
        raise AkmHarborError("the policy is empty", path=path, hint="It needs at least `version: 1` and `tasks:`.")
    twice = doubled(root)
    if twice is not None:
        raise AkmHarborError(f"line {twice[1]}: `{twice[0]}` is given twice", path=path)
    return root, data


def _shape_error(path: Path, root: yaml.Node, text: str) -> AkmHarborError:
    """Turn msgspec's message and JSON path into one with a line."""
    found = _AT.match(text)
    what, at = (found["what"], found["at"] or "$") if found else (text, "$")
    place: Place = tuple(name or int(index) for name, index in _STEP.findall(at))
    hint = None
    if "Expected `str`, got `bool`" in what:
        hint = "YAML reads a bare yes, no, on or off as true or false: put it in quotes."
    unknown = re.search(r"unknown field `([^`]+)`", what)
    if unknown:
        near = difflib.get_close_matches(unknown[1], _KEYS, n=1)
        hint = f"Did you mean `{near[0]}`?" if near else "See docs/model.md for the keys of a policy."
        what, place = f"unknown key `{unknown[1]}`", (*place, unknown[1])
    return AkmHarborError(f"line {_line(root, place)}, {_key(place)}: {what}", path=path, hint=hint)


def _line(root: yaml.Node, place: Place) -> int:
    """The line of a place; of its nearest parent that exists, if it does not."""
    node, line = root, root.start_mark.line + 1
    for step in place:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == step), None)
            if pair is None:
                break
            node, line = pair[1], pair[0].start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            node = node.value[step]
            line = node.start_mark.line + 1
        else:
            break
    return line


def _key(place: Place) -> str:
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
    return f"`{text.lstrip('.')}`" if text else "the policy"


def _problems(policy: Policy) -> Iterator[tuple[Place, str]]:
    """Everything a schema cannot say: regexes, names, placeholders, turns that can't be reached."""
    if not policy.tasks:
        yield ("tasks",), "no task is declared"
    for name, pattern in policy.tasks.items():
        yield from _regex_problems(("tasks", name), pattern)
    names: set[str] = set()
    for index, rule in enumerate(policy.rules):
        if rule.name in names:
            yield ("rules", index, "name"), f"two rules are named `{rule.name}`"
        names.add(rule.name)
        yield from _task_problems(("rules", index, "task"), rule.task, policy)
        yield from _rule_problems(("rules", index), rule)
    for index, fault in enumerate(policy.faults):
        yield from _task_problems(("faults", index, "task"), fault.task, policy)
    yield from _turn_problems(("default",), policy.default, set())
    if policy.default.calls:
        yield ("default", "call"), "the default must end the conversation, so it cannot call a tool"


def _rule_problems(place: Place, rule: Rule) -> Iterator[tuple[Place, str]]:
    for key in ("system", "tool_result", "text"):
        pattern = getattr(rule.delivered, key)
        if pattern is not None:
            yield from _regex_problems((*place, "delivered", key), pattern)
    known: set[str] = set()
    for index, turn in enumerate(rule.turns):
        here: Place = (*place, "turns", index)
        yield from _turn_problems(here, turn, known)
        if not turn.calls and index < len(rule.turns) - 1:
            yield here, "a turn without a call ends the conversation: the turns after it are never played"


def _turn_problems(place: Place, turn: Turn, known: set[str]) -> Iterator[tuple[Place, str]]:
    if not turn.say and not turn.calls:
        yield place, "a turn must `say` something or `call` a tool"
    for name, cut in turn.cut.items():
        yield from _regex_problems((*place, "cut", name, "pattern"), cut.pattern, max_groups=1)
        if cut.tool is not None and cut.source != "tool_result":
            yield (*place, "cut", name, "tool"), "`tool` goes with `from: tool_result` only"
        if name in BUILT_IN_VALUES:
            yield (*place, "cut", name), f"`{name}` is the name of a built-in value"
        known.add(name)
    for key, value in (("say", turn.say), ("call", [call.args for call in turn.calls])):
        for name in sorted(_placeholders(value) - known - BUILT_IN_VALUES):
            yield (*place, key), f"`{{{{{name}}}}}` is not cut in this turn or an earlier one of its rule"


def _placeholders(value: object) -> set[str]:
    if isinstance(value, str):
        return set(PLACEHOLDER.findall(value))
    if isinstance(value, dict):
        return {name for item in value.values() for name in _placeholders(item)}
    if isinstance(value, list):
        return {name for item in value for name in _placeholders(item)}
    return set()


def _regex_problems(place: Place, pattern: str, *, max_groups: int | None = None) -> Iterator[tuple[Place, str]]:
    try:
        compiled = regex(pattern)
    except re.error as error:
        yield place, f"not a valid regex: {error}"
        return
    if max_groups is not None and compiled.groups > max_groups:
        yield place, f"at most one group can be the value, this has {compiled.groups}; use `(?:…)` for the others"


def _task_problems(place: Place, wanted: Names, policy: Policy) -> Iterator[tuple[Place, str]]:
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        if pattern != "*" and not any(names_match(pattern, name) for name in policy.tasks):
            near = difflib.get_close_matches(pattern, policy.tasks, n=1)
            yield place, f"no declared task fits `{pattern}`" + (f"; did you mean `{near[0]}`?" if near else "")
