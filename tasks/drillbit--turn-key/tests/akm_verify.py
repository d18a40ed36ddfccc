#!/usr/bin/env python3
"""Checks, rewards and workflow compliance inside a task's container. Generated: do not edit.

Made from akm_harbor/verify by `akm-harbor corpus sync`; standard library only, Python 3.9 and up.
sha256 of what follows the imports: cd2a8a0203d3ff26deb1a2bbfc8332b35591ea97b24e509c8bc3b2e936e6a68b
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import shlex
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace
from pathlib import Path
from typing import Any
from typing import Optional

# --- outcome ---


RIGHT = 0
WRONG = 1
BROKEN = 2

DETAILS_ENV = "AKM_VERIFY_DETAILS"
LOGS_ENV = "AKM_VERIFY_LOGS"


class BrokenVerifierError(Exception):
    """The verifier cannot tell whether the answer is right."""


def logs_dir() -> Path:
    """Where Harbor collects what a verifier writes."""
    return Path(os.environ.get(LOGS_ENV, "/logs/verifier"))


def write_atomic(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of it.

    A link or a file that the agent planted under that name is replaced, not followed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, atomically; text that is not valid Unicode is escaped."""
    write_atomic(path, json.dumps(value, indent=1, sort_keys=True, ensure_ascii=True) + "\n")


def clear_reward() -> None:
    """Remove reward files that were there before the verifier ran."""
    for name in ("reward.json", "reward.txt"):
        path = logs_dir() / name
        if path.is_symlink() or path.exists():
            path.unlink()


def write_reward(*, right: bool) -> None:
    """Write the reward: one key, 0 or 1."""
    write_atomic(logs_dir() / "reward.json", json.dumps({"reward": int(right)}) + "\n")


def note(check: str, complaints: list[str]) -> int:
    """Print what a check found, keep it for details.json, and give its exit code."""
    for line in complaints or ["ok"]:
        print(f"{check}: {line}", flush=True)  # noqa: T201  (goes to test-stdout.txt)
    target = os.environ.get(DETAILS_ENV)
    if target:
        with Path(target).open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"check": check, "ok": not complaints, "complaints": complaints}) + "\n")
    return WRONG if complaints else RIGHT


def read_notes(path: Path) -> list[dict[str, Any]]:
    """The checks noted so far, in order."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


# --- answers ---


ANSWER_LIMIT = 1_000_000


class WrongAnswerError(Exception):
    """The answer is wrong, and why."""


def read_answer(path: str | Path, limit: int = ANSWER_LIMIT) -> str:
    """The text of a file the agent wrote.

    Links, pipes and devices are refused: a link could point at the verifier's own files, and a
    pipe would hang it.

    Args:
        path: the file, as the task names it.
        limit: largest size read, bytes.

    Raises:
        WrongAnswerError: it is missing, not a regular file, too large or not UTF-8.
    """
    file = Path(path)
    try:
        mode = file.lstat()
    except OSError:
        raise WrongAnswerError(f"{path} is missing") from None
    if any(parent.is_symlink() for parent in file.parents):
        raise WrongAnswerError(f"{path} lies behind a link")
    if not stat.S_ISREG(mode.st_mode):
        raise WrongAnswerError(f"{path} is not a regular file")
    if mode.st_size > limit:
        raise WrongAnswerError(f"{path} is larger than {limit} bytes")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise WrongAnswerError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise WrongAnswerError(f"{path} is not UTF-8 text") from None


# --- shell ---


_SHELL_TOKEN = re.compile(
    r"""(?P<blank>[ \t]+)
    |(?P<comment>\#[^\n]*)
    |(?P<newline>\n)
    |(?P<operator>&&|\|\||>>|<<|[;|&<>()])
    |(?P<word>(?:[^\s'"\\;|&<>()]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+)
    |(?P<bad>.)""",
    re.VERBOSE | re.DOTALL,
)
_QUOTED_PART = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)|([^'"\\]+)""", re.DOTALL)


class UnreadableCommandError(ValueError):
    """Text that is not a list of simple commands."""


@dataclass(frozen=True)
class Option:
    """One option a command must or may have.

    Attributes:
        names: its spellings, e.g. `-n` and `--name`.
        value: the wanted value; None for a switch.
        kind: `is` equal, `matches` a full regular expression match, `set` several values in any order.
    """

    names: tuple[str, ...]
    value: str | None = None
    kind: str = "is"

    def accepts(self, given: list[str]) -> bool:
        """Whether the values given on the command line are the wanted ones."""
        if self.value is None:
            return not given
        if self.kind == "set":
            return sorted(given) == sorted(shlex.split(self.value))
        if len(given) != 1:
            return False
        if self.kind == "matches":
            return re.fullmatch(self.value, given[0]) is not None
        return given[0] == self.value


def parse_option(text: str) -> Option:
    """Read an option as verifiers write it.

    `--yes` a switch, `-n|--name=myrg` a value, `--query~=REGEX` a pattern, `--tags+=a b` a set.

    Raises:
        ValueError: a name that does not begin with a dash.
    """
    head, equals, value = text.partition("=")
    kind = {"~": "matches", "+": "set"}.get(head[-1:], "is") if equals else "is"
    names = tuple((head[:-1] if kind != "is" else head).split("|"))
    if not all(name.startswith("-") and len(name) > 1 for name in names):
        raise ValueError(f"not an option: {text!r}")
    return Option(names, value if equals else None, kind)


def _unquote(word: str) -> str:
    parts: list[str] = []
    for single, double, escaped, plain in _QUOTED_PART.findall(word):
        parts.append(single or re.sub(r'\\(["\\$`])', r"\1", double) or escaped or plain)
    return "".join(parts)


def split_commands(text: str) -> list[list[str]]:
    """Split a script into simple commands, each a list of unquoted words.

    Comments and blank lines are dropped, continued lines joined, line ends and `;` separate.

    Raises:
        UnreadableCommandError: pipes, redirections, `&&`, substitutions or open quotes: the task
            asked for plain commands.
    """
    commands: list[list[str]] = []
    words: list[str] = []
    for match in _SHELL_TOKEN.finditer(text.replace("\\\n", "")):
        kind, piece = match.lastgroup, match.group()
        if kind == "word":
            if "`" in piece or "$(" in piece:
                raise UnreadableCommandError(f"a command substitution: {piece}")
            words.append(_unquote(piece))
        elif kind == "newline" or piece == ";":
            if words:
                commands.append(words)
            words = []
        elif kind == "operator":
            raise UnreadableCommandError(f"an operator that was not asked for: {piece}")
        elif kind == "bad":
            raise UnreadableCommandError(f"an open quote or escape: {piece}")
    if words:
        commands.append(words)
    return commands


def _find_option(token: str, options: list[Option]) -> tuple[Option, str | None] | None:
    """The option a token is, and the value attached to it, if any."""
    name, equals, attached = token.partition("=")
    for option in options:
        if name in option.names and (not equals or option.value is not None):
            return option, attached if equals else None
    for option in options:
        for short in option.names:
            joined = len(short) == 2 and len(token) > 2 and token.startswith(short) and not token.startswith("--")
            if joined and option.value is not None:
                return option, token[2:].removeprefix("=")
    return None


def match_command(given: list[str], words: list[str], required: list[Option], allowed: list[Option]) -> list[str]:
    """Compare one command with what was asked.

    Args:
        given: the command's words, e.g. from `split_commands`.
        words: the program, its subcommands and positional values, in order.
        required: options that must be there, each once.
        allowed: options that may be there, each at most once.

    Returns:
        What is wrong with it, empty if nothing.
    """
    options = [*required, *allowed]
    positional: list[str] = []
    seen: list[tuple[Option, list[str]]] = []
    complaints: list[str] = []
    rest = list(given)
    while rest:
        token = rest.pop(0)
        found = _find_option(token, options)
        if found is None:
            positional.append(token)
            continue
        option, attached = found
        values = [] if attached is None else [attached]
        if option.value is not None and attached is None:
            while rest and not (rest[0].startswith("-") and _find_option(rest[0], options)):
                values.append(rest.pop(0))
                if option.kind != "set":
                    break
        seen.append((option, values))
    if positional != words:
        complaints.append(f"words are {shlex.join(positional)!r}, asked for {shlex.join(words)!r}")
    for option, values in seen:
        if not option.accepts(values):
            complaints.append(f"{option.names[-1]} has the wrong value {' '.join(values)!r}")
    names = [option.names for option, _ in seen]
    complaints += [f"{one.names[-1]} is missing" for one in required if one.names not in names]
    complaints += [
        f"{name[-1]} is given {names.count(name)} times" for name in dict.fromkeys(names) if names.count(name) > 1
    ]
    return complaints


# --- documents ---


def _no_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"key {key!r} is given twice")
        result[key] = value
    return result


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _parse_yaml(text: str) -> Any:
    try:
        yaml = importlib.import_module("yaml")
    except ImportError:
        raise BrokenVerifierError("the image lacks PyYAML, which this verifier needs") from None

    class Loader(yaml.SafeLoader):  # type: ignore[name-defined,misc]
        """A safe loader that refuses a key given twice."""

    def mapping(loader: Any, node: Any) -> dict[Any, Any]:
        plain = (key for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge")
        keys = [loader.construct_object(key, deep=True) for key in plain]
        doubled = [key for key in keys if keys.count(key) > 1]
        if doubled:
            raise ValueError(f"key {doubled[0]!r} is given twice")
        loader.flatten_mapping(node)
        return {loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value}

    Loader.add_constructor("tag:yaml.org,2002:map", mapping)
    try:
        return yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, TypeError) as error:
        raise ValueError(str(error)) from None


def _parse_toml(text: str) -> Any:
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name).loads(text)
        except ImportError:
            continue
    raise BrokenVerifierError("the image lacks tomllib (Python 3.11) and tomli, which this verifier needs")


def parse_document(text: str, kind: str) -> Any:
    """Parse text as `yaml`, `json` or `toml`, refusing doubled keys.

    Raises:
        ValueError: it is not one document of that kind.
        BrokenVerifierError: the kind is unknown, or the image lacks its parser.
    """
    try:
        if kind == "json":
            return json.loads(text, object_pairs_hook=_no_double_keys, parse_constant=_no_constant)
        if kind in ("yaml", "yml"):
            return _parse_yaml(text)
        if kind == "toml":
            return _parse_toml(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    raise BrokenVerifierError(f"unknown kind of document: {kind!r}")


def load_document(path: str | Path, kind: str | None = None) -> Any:
    """Parse a file the agent wrote; the kind comes from its suffix unless given.

    Raises:
        WrongAnswerError: the file is missing or not one valid document.
    """
    text = read_answer(path)
    try:
        return parse_document(text, kind or Path(path).suffix.lstrip(".").lower())
    except ValueError as error:
        raise WrongAnswerError(f"{path} is not valid: {error}") from None


def _kind_name(value: Any) -> str:
    return "nothing" if value is None else type(value).__name__


def _show(value: Any) -> str:
    text = json.dumps(value, default=str, sort_keys=True)
    return text if len(text) <= 80 else text[:77] + "..."


def compare(given: Any, wanted: Any, where: str = "$", *, partly: bool = False) -> list[str]:
    """Where two documents differ.

    Types count (`1` is neither `"1"` nor `true`); the order of keys does not, the order of lists does.

    Args:
        given: what the agent wrote.
        wanted: what the task asks.
        where: path of the value, for the message.
        partly: let mappings hold more keys than wanted; lists must still be equally long.

    Returns:
        One line per difference, at most 20.
    """
    if isinstance(wanted, dict) and isinstance(given, dict):
        lines = [f"{where}.{key} is missing" for key in wanted if key not in given]
        if not partly:
            lines += [f"{where}.{key} was not asked for" for key in given if key not in wanted]
        for key in wanted:
            if key in given:
                lines += compare(given[key], wanted[key], f"{where}.{key}", partly=partly)
    elif isinstance(wanted, list) and isinstance(given, list):
        lines = [] if len(wanted) == len(given) else [f"{where} has {len(given)} items, not {len(wanted)}"]
        for index in range(min(len(wanted), len(given))):
            lines += compare(given[index], wanted[index], f"{where}[{index}]", partly=partly)
    elif type(given) is not type(wanted):
        lines = [f"{where} is {_kind_name(given)} {_show(given)}, not {_kind_name(wanted)} {_show(wanted)}"]
    else:
        lines = [] if given == wanted else [f"{where} is {_show(given)}, not {_show(wanted)}"]
    return lines[:20]


# --- trajectory ---


TRAJECTORY_LIMIT = 64_000_000
TEXT_LIMIT = 100_000


class UnscorableError(Exception):
    """The trajectory cannot be judged, and why."""


@dataclass(frozen=True)
class Call:
    """One tool call.

    Attributes:
        step: the ATIF step it was made in. Calls of one step were decided together.
        index: its place within the step.
        tool: the tool's name.
        arguments: its arguments.
        result: what came back; None when the trajectory holds no result, which for opencode means
            that the tool failed or never ended.
    """

    step: int
    index: int
    tool: str
    arguments: dict[str, Any]
    result: Optional[str]  # noqa: UP045  (evaluated by dataclasses on Python 3.9)


@dataclass(frozen=True)
class Trajectory:
    """What compliance needs of a trajectory.

    Attributes:
        calls: all tool calls, in order.
        last_step: id of the last step.
    """

    calls: tuple[Call, ...]
    last_step: int


def _read_json(path: Path) -> Any:
    try:
        mode = path.lstat()
    except OSError:
        raise UnscorableError("the trial has no trajectory.json") from None
    if not stat.S_ISREG(mode.st_mode):
        raise UnscorableError("trajectory.json is not a regular file")
    if mode.st_size > TRAJECTORY_LIMIT:
        raise UnscorableError(f"trajectory.json is larger than {TRAJECTORY_LIMIT} bytes")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnscorableError(f"trajectory.json cannot be read: {error}") from None
    if not text.strip():
        raise UnscorableError("trajectory.json is empty")
    try:
        return json.loads(text)
    except RecursionError:
        raise UnscorableError("trajectory.json is nested too deeply") from None
    except ValueError as error:
        raise UnscorableError(f"trajectory.json is not valid JSON (cut off?): {error}") from None


def _text(content: Any) -> str:
    """A result's text; ATIF allows a string or a list of parts."""
    if isinstance(content, str):
        return content[:TEXT_LIMIT]
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))[:TEXT_LIMIT]
    return ""


def _results(step: dict[str, Any], step_id: int) -> dict[str, str]:
    observation = step.get("observation")
    if observation is None:
        return {}
    results = observation.get("results") if isinstance(observation, dict) else None
    if not isinstance(results, list):
        raise UnscorableError(f"step {step_id}: observation is not a list of results")
    found: dict[str, str] = {}
    for result in results:
        if isinstance(result, dict) and isinstance(result.get("source_call_id"), str):
            found[result["source_call_id"]] = _text(result.get("content"))
    return found


def _calls(step: dict[str, Any], step_id: int) -> list[Call]:
    given = step.get("tool_calls")
    if given is None:
        return []
    if not isinstance(given, list):
        raise UnscorableError(f"step {step_id}: tool_calls is not a list")
    results = _results(step, step_id)
    calls = []
    for index, call in enumerate(given):
        tool = call.get("function_name") if isinstance(call, dict) else None
        if not isinstance(tool, str):
            raise UnscorableError(f"step {step_id}: call {index} has no function_name")
        arguments = call.get("arguments")
        call_id = call.get("tool_call_id")
        result = results.get(call_id) if isinstance(call_id, str) else None
        calls.append(Call(step_id, index, tool, arguments if isinstance(arguments, dict) else {}, result))
    return calls


def read_trajectory(path: Path) -> Trajectory:
    """Read an ATIF trajectory (v1.0 to v1.8).

    Raises:
        UnscorableError: missing, empty, cut off, of the wrong shape, or without a single agent step.
    """
    document = _read_json(path)
    steps = document.get("steps") if isinstance(document, dict) else None
    if not isinstance(steps, list) or not steps:
        raise UnscorableError("trajectory.json holds no steps")
    calls: list[Call] = []
    last, agent_steps = 0, 0
    for step in steps:
        step_id = step.get("step_id") if isinstance(step, dict) else None
        if not isinstance(step_id, int) or isinstance(step_id, bool) or not last < step_id < 2**53:
            raise UnscorableError(f"step ids do not rise: {str(step_id)[:40]!r} after {last}")
        last = step_id
        agent_steps += step.get("source") == "agent"
        calls += _calls(step, step_id)
    if not agent_steps:
        raise UnscorableError("the agent made no step")
    final = document.get("final_metrics")
    claimed = final.get("total_steps") if isinstance(final, dict) else None
    if isinstance(claimed, int) and claimed > len(steps):
        raise UnscorableError(f"cut off: claims {claimed} steps, holds {len(steps)}")
    return Trajectory(tuple(calls), last)


# --- events ---


_WRITING_TOOLS = ("write", "edit", "multiedit", "patch", "apply_patch")
_READING_TOOLS = ("read", "grep", "glob", "list")
_AKM_TOOLS = ("search", "curate", "show", "feedback", "remember")
_BUNDLE_FILE = re.compile(r"/opt/akm(?:-harbor)?/bundle/([\w./-]{1,200}?\.\w{1,20})")
_REDIRECTION = re.compile(r"(?<![0-9&<>=-])(?:1|&)?>>?\|?\s*([^\s;|&<>()]+)")
_HEREDOC = re.compile(r"(<<-?\s*['\"]?(\w+)['\"]?[^\n]*)\n.*?(?:\n\s*\2(?=\s|$)|$)", re.DOTALL)
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_NESTED_SHELL = re.compile(r"\b(?:ba|da|z)?sh\s+-\w*c\b|\beval\b")
_WRITING_PROGRAMS = re.compile(
    r"(?:^|[;&|(]\s*|\bsudo\s+)(?:tee|cp|mv|rm|touch|install|truncate|dd|patch|ln|ed"
    r"|sed\s+(?:-\w+\s+)*-[a-zA-Z]*i|perl\s+(?:-\w+\s+)*-[a-zA-Z]*i"
    r"|git\s+(?:apply|commit|checkout|restore|mv|rm))\b",
    re.MULTILINE,
)
_WRITING_CODE = re.compile(r"open\([^)]{0,200}['\"][wax]\+?b?['\"]|write_text\(|writeFile")
_SEPARATORS = {"&&", "||", "|", ";", "&", "\n", "(", ")"}
_TYPE_DIRS = {
    "skill": "skills", "command": "commands", "agent": "agents", "memory": "memories", "script": "scripts",
    "workflow": "workflows", "lesson": "lessons", "fact": "facts",
}  # fmt: skip


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Attributes:
        kind: its name in the vocabulary.
        step: the ATIF step.
        ok: whether it brought something back; False for an error or an empty result.
        ref: the asset it is about, as a concept id, else "".
        sentiment: `positive`, `negative` or "".
        reason: the reason given with feedback, or "".
        action: `start`, `next`, `complete` ... of a workflow command, or "".
        text: arguments and result, for the matchers of a specification.
    """

    kind: str
    step: int
    ok: bool = True
    ref: str = ""
    sentiment: str = ""
    reason: str = ""
    action: str = ""
    text: str = ""


def concept_id(ref: str) -> str:
    """A ref without its bundle and fragment, in the plural grammar: `skill:x` becomes `skills/x`."""
    bare = ref.strip().split("//")[-1].split("#")[0].strip("/")
    head, colon, name = bare.partition(":")
    if colon:
        bare = f"{_TYPE_DIRS.get(head, head)}/{name}"
    bare = re.sub(r"/SKILL\.md$", "", bare)
    return re.sub(r"\.md$", "", bare)


_NOT_FOUND = re.compile(r"(?:\bakm|No such file)[^\n]{0,80}(?:not found|or directory)")


def _failed(result: str | None) -> bool:
    """Whether a tool's result says that it failed or found nothing."""
    if result is None or not result.strip():
        return True
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        if _NOT_FOUND.search(result[:400]):
            return True
        return bool(re.match(r"\s*(?:error\b|\{\s*\"?(?:ok\"?\s*:\s*false|error))", result, re.IGNORECASE))
    return isinstance(value, dict) and (value.get("ok") is False or ("error" in value and "content" not in value))


def _string(arguments: dict[str, Any], *names: str) -> str:
    for name in names:
        if isinstance(arguments.get(name), str):
            return str(arguments[name])
    return ""


def _opened(verb: str, step: int, *, ok: bool, ref: str, text: str) -> list[Event]:
    """The events of a `show` (opening an asset is looking as well) or of a `remember`."""
    events = [Event(verb, step, ok, ref, text=text)]
    return [*events, Event("lookup", step, ok, ref, text=text)] if verb == "show" else events


def _tool_event(verb: str, call: Call, text: str) -> list[Event]:
    step, ok = call.step, not _failed(call.result)
    if verb in ("search", "curate"):
        return [Event(verb, step, ok, text=text), Event("lookup", step, ok, text=text)]
    ref = concept_id(_string(call.arguments, "ref"))
    if verb == "feedback":
        sentiment = _string(call.arguments, "sentiment", "signal").lower()
        reason = _string(call.arguments, "note", "reason")
        return [Event("feedback", step, ok, ref, sentiment, reason, text=text)]
    return _opened(verb, step, ok=ok, ref=ref, text=text)


def _simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command of a shell line; a line that cannot be split gives none."""
    lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=";&|()")
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if word in _SEPARATORS or set(word) <= set(";&|()"):
                commands.append([])
            else:
                commands[-1].append(word)
    except ValueError:
        return []
    return [words for words in commands if words]


def _option(words: list[str], *names: str) -> str:
    for index, word in enumerate(words):
        head, equals, value = word.partition("=")
        if head in names:
            return value if equals else (words[index + 1] if index + 1 < len(words) else "")
    return ""


def _akm_command(words: list[str], step: int, *, ok: bool, text: str) -> list[Event]:
    """The event of one `akm ...` command typed into the shell."""
    verb = next((word for word in words[1:] if not word.startswith("-")), "")
    rest = words[words.index(verb) + 1 :] if verb else []
    target = next((word for word in rest if not word.startswith("-")), "")
    if verb in ("search", "curate"):
        return [Event(verb, step, ok, text=text), Event("lookup", step, ok, text=text)]
    if verb == "feedback":
        sentiment = "positive" if "--positive" in rest else "negative" if "--negative" in rest else ""
        reason = _option(rest, "--reason", "--note")
        return [Event("feedback", step, ok, concept_id(target), sentiment, reason, text=text)]
    if verb == "workflow":
        names = [word for word in rest if not word.startswith("-")]
        return [Event("workflow", step, ok, concept_id(names[1]) if names[1:] else "", action=target, text=text)]
    return _opened(verb, step, ok=ok, ref=concept_id(target), text=text) if verb in ("show", "remember") else []


def _without_prose(command: str) -> str:
    """A command without here-document bodies and without quoted text that is not a plain path."""
    bare = _HEREDOC.sub(r"\1", command)
    if _NESTED_SHELL.search(bare):
        return bare

    def quoted(match: re.Match[str]) -> str:
        inner = match.group()[1:-1]
        return inner if re.fullmatch(r"[\w./-]{1,300}", inner) else "QUOTED"

    return _QUOTED.sub(quoted, bare)


def _writes(command: str) -> bool:
    """Whether a shell command changes a file outside /tmp, /dev and /logs."""
    bare = _without_prose(command)
    if any(not target.startswith(("/tmp/", "/dev/", "/logs/")) for target in _REDIRECTION.findall(bare)):  # noqa: S108
        return True
    return bool(_WRITING_PROGRAMS.search(bare) or _WRITING_CODE.search(command))


def _shell_events(call: Call, text: str) -> list[Event]:
    command = _string(call.arguments, "command", "cmd")[:20_000]
    ok = not _failed(call.result)
    events = [Event("run", call.step, ok, text=text)]
    for words in _simple_commands(_HEREDOC.sub(r"\1", command)):
        if words[0].rsplit("/", 1)[-1] == "akm":
            events += _akm_command(words, call.step, ok=ok, text=text)
    if _writes(command):
        events.append(Event("write", call.step, ok, text=text))
    for name in dict.fromkeys(_BUNDLE_FILE.findall(command)):
        events += _opened("show", call.step, ok=ok, ref=concept_id(name), text=text)
    return events


def events_of_call(call: Call) -> list[Event]:
    """The events of one tool call; a tool outside the vocabulary gives one event of its own name."""
    text = json.dumps(call.arguments, ensure_ascii=False, default=str)[:20_000] + "\n" + (call.result or "")[:20_000]
    name = call.tool.lower()
    if name.startswith("akm_") and name[4:] in _AKM_TOOLS:
        return _tool_event(name[4:], call, text)
    if name == "bash":
        return _shell_events(call, text)
    path = _string(call.arguments, "filePath", "path", "file")
    if name in _WRITING_TOOLS:
        return [] if path.startswith("/tmp/") else [Event("write", call.step, not _failed(call.result), text=text)]  # noqa: S108
    if name in _READING_TOOLS:
        ok = not _failed(call.result)
        events = [Event("read", call.step, ok, text=text)]
        for found in _BUNDLE_FILE.findall(path):
            events += _opened("show", call.step, ok=ok, ref=concept_id(found), text=text)
        return events
    return [Event(name, call.step, not _failed(call.result), text=text)]


def events_of(trajectory: Trajectory) -> list[Event]:
    """All events of a trajectory, in the order of its steps."""
    return [event for call in trajectory.calls for event in events_of_call(call)]


# --- compliance ---


PASS = "pass"  # noqa: S105  (a verdict)
PARTIAL = "partial"
FAIL = "fail"
NOT_APPLICABLE = "not_applicable"
UNSCORABLE = "unscorable"

_MATCHER_KEYS = {"event", "ref", "sentiment", "reason", "action", "matches", "ok"}
_ITEM_KEYS = _MATCHER_KEYS | {"id", "sequence", "before", "after", "min", "weight", "when"}
_WHEN_KEYS = {"gold", "abstention", "outcome"}


@dataclass(frozen=True)
class Facts:
    """What is known of the trial besides its trajectory.

    Attributes:
        gold_ref: concept id of the asset that answers the task, "" if none does.
        abstention: nothing in the bundle helps, and the agent should notice.
        right: whether the answer was right; None when the verifier broke.
    """

    gold_ref: str = ""
    abstention: bool = False
    right: bool | None = None


@dataclass(frozen=True)
class Judged:
    """One required or forbidden item: met, not met, or (None) nothing to judge it by."""

    name: str
    weight: float
    met: bool | None
    steps: tuple[int, ...]
    why: str
    forbidden: bool = False


def _as_matcher(value: Any, own: Mapping[str, Any]) -> dict[str, Any]:
    """A matcher from its name or mapping, with the events that the specification declares."""
    given: dict[str, Any] = {"event": value} if isinstance(value, str) else dict(value)
    declared = own.get(given.get("event", ""))
    return {**declared, **{k: v for k, v in given.items() if k != "event"}} if declared else given


def _fits(event: Event, matcher: Mapping[str, Any], facts: Facts, *, need_ok: bool) -> bool:
    if event.kind != matcher.get("event"):
        return False
    if (need_ok or "ok" in matcher) and event.ok is not matcher.get("ok", True):
        return False
    wanted = matcher.get("ref")
    if wanted is not None and event.ref != (facts.gold_ref if wanted == "$gold" else concept_id(wanted)):
        return False
    if any(matcher.get(name) not in (None, getattr(event, name)) for name in ("sentiment", "action")):
        return False
    if "reason" in matcher and bool(event.reason.strip()) is not matcher["reason"]:
        return False
    return "matches" not in matcher or re.search(matcher["matches"], event.text) is not None


def _anchor(events: Sequence[Event], anchor: Any, own: Mapping[str, Any], facts: Facts) -> int | None:
    """The step of an anchor: its first event, or the one that `nth` names (-1 is the last)."""
    matcher = _as_matcher(anchor, own)
    nth = int(matcher.pop("nth", 1))
    steps = [event.step for event in events if _fits(event, matcher, facts, need_ok=False)]
    place = nth - 1 if nth > 0 else nth
    return steps[place] if -len(steps) <= place < len(steps) else None


def _window(
    events: Sequence[Event], item: Mapping[str, Any], own: Mapping[str, Any], facts: Facts
) -> tuple[float, float, str]:
    """The open interval of steps an item is about, and which anchor is absent, if one is."""
    low, high, absent = 0.0, float("inf"), ""
    if "after" in item:
        step = _anchor(events, item["after"], own, facts)
        low, absent = (float(step), absent) if step is not None else (high, "after")
    if "before" in item:
        step = _anchor(events, item["before"], own, facts)
        high, absent = (float(step), absent) if step is not None else (high, absent or "before")
    return low, high, absent


def _sequence_steps(
    events: Sequence[Event], sequence: Sequence[Any], own: Mapping[str, Any], facts: Facts
) -> tuple[list[int], int]:
    """The earliest strictly rising steps that play a sequence, and how much of it was played."""
    steps: list[int] = []
    for value in sequence:
        matcher = _as_matcher(value, own)
        last = steps[-1] if steps else 0
        later = [e.step for e in events if e.step > last and _fits(e, matcher, facts, need_ok=True)]
        if not later:
            break
        steps.append(min(later))
    return steps, len(steps)


def _judge_required(events: Sequence[Event], item: Mapping[str, Any], own: Mapping[str, Any], facts: Facts) -> Judged:
    weight, name = float(item.get("weight", 1)), str(item["id"])
    if "sequence" in item:
        steps, played = _sequence_steps(events, item["sequence"], own, facts)
        wanted = len(item["sequence"])
        return Judged(name, weight, played == wanted, tuple(steps), f"{played} of {wanted} steps, in order")
    low, high, absent = _window(events, item, own, facts)
    matcher = _as_matcher({k: v for k, v in item.items() if k in _MATCHER_KEYS}, own)
    steps = sorted({e.step for e in events if _fits(e, matcher, facts, need_ok=True)})
    inside = [step for step in steps if low < step < high]
    enough = len(inside) >= int(item.get("min", 1))
    if absent == "after" or (absent == "before" and not enough):
        return Judged(name, weight, None, (), f"the `{absent}` event never happened")
    anchors = tuple(int(step) for step in (low, high) if 0 < step < float("inf"))
    why = "happened" if enough else "came at the wrong time" if steps else "never happened"
    return Judged(name, weight, enough, tuple(inside) if enough else (*steps, *anchors), why)


def _judge_forbidden(events: Sequence[Event], item: Mapping[str, Any], own: Mapping[str, Any], facts: Facts) -> Judged:
    weight, name = float(item.get("weight", 1)), str(item["id"])
    low, high, absent = _window(events, item, own, facts)
    if absent == "after":
        return Judged(name, weight, None, (), "the `after` event never happened", forbidden=True)
    matcher = _as_matcher({k: v for k, v in item.items() if k in _MATCHER_KEYS}, own)
    steps = sorted({e.step for e in events if low < e.step < high and _fits(e, matcher, facts, need_ok=False)})
    return Judged(name, weight, not steps, tuple(steps), "happened" if steps else "did not happen", forbidden=True)


def _applies(when: Mapping[str, Any], facts: Facts) -> bool:
    outcome = {True: "right", False: "wrong", None: "broken"}[facts.right]
    known = {"gold": bool(facts.gold_ref), "abstention": facts.abstention, "outcome": outcome}
    return all(known[key] == value for key, value in when.items())


def _verdict(judged: Sequence[Judged]) -> tuple[str, float | None]:
    needed = [item for item in judged if item.met is not None]
    required = [item for item in needed if not item.forbidden]
    broken = [item for item in needed if item.forbidden and not item.met]
    had_required = any(not item.forbidden for item in judged)
    if not needed or (had_required and not required and not broken):
        return NOT_APPLICABLE, None
    total = sum(item.weight for item in needed)
    score = sum(item.weight for item in needed if item.met) / total if total else 0.0
    if all(item.met for item in needed):
        return PASS, score
    if not any(item.met for item in (required or needed)):
        return FAIL, score
    return PARTIAL, score


def check_specification(spec: Any) -> list[str]:
    """What is wrong with a specification, empty if nothing."""
    if not isinstance(spec, dict) or not isinstance(spec.get("id"), str):
        return ["a specification is a mapping with an `id`"]
    name = spec["id"]
    unknown = spec.keys() - {"id", "title", "why", "when", "events", "required", "forbidden"}
    lines = [f"{name}: unknown key `{key}`" for key in sorted(unknown)]
    items = [*(spec.get("required") or []), *(spec.get("forbidden") or [])]
    if not items:
        lines.append(f"{name}: nothing is required or forbidden")
    for item in items:
        if not isinstance(item, dict) or "id" not in item or ("event" in item) == ("sequence" in item):
            lines.append(f"{name}: an item needs an `id` and either `event` or `sequence`")
            continue
        lines += [f"{name}.{item['id']}: unknown key `{key}`" for key in sorted(item.keys() - _ITEM_KEYS)]
        lines += [
            f"{name}.{item['id']}: unknown condition `{k}`" for k in sorted(item.get("when", {}).keys() - _WHEN_KEYS)
        ]
    for matcher in [*(spec.get("events") or {}).values(), *(item for item in items if isinstance(item, dict))]:
        try:
            re.compile(matcher.get("matches", ""))
        except (re.error, TypeError):
            lines.append(f"{name}: not a regular expression: {matcher.get('matches')!r}")
    return lines


def judge_workflow(events: Sequence[Event], spec: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    """Judge one specification.

    Args:
        events: a trajectory's events, in order.
        spec: the specification.
        facts: what else is known of the trial.

    Returns:
        `id`, `verdict`, `score` (0 to 1, None when there is none) and `items`, each with the
        numbers of the steps that decided it.

    Raises:
        BrokenVerifierError: the specification itself is wrong.
    """
    wrong = check_specification(spec)
    if wrong:
        raise BrokenVerifierError("; ".join(wrong))
    own = spec.get("events") or {}
    judged: list[Judged] = []
    for key, judge in (("required", _judge_required), ("forbidden", _judge_forbidden)):
        for item in spec.get(key) or []:
            one = judge(events, item, own, facts)
            if not _applies({**spec.get("when", {}), **item.get("when", {})}, facts):
                one = replace(one, met=None, steps=(), why="does not apply to this trial")
            judged.append(one)
    verdict, score = _verdict(judged)
    items = [
        {"id": j.name, "forbidden": j.forbidden, "met": j.met, "weight": j.weight, "steps": list(j.steps), "why": j.why}
        for j in judged
    ]
    return {"id": spec["id"], "verdict": verdict, "score": score, "items": items}


def overall(workflows: Sequence[Mapping[str, Any]]) -> tuple[str, float | None]:
    """The worst verdict of several, and their mean score; those that do not apply do not count."""
    verdicts = [workflow["verdict"] for workflow in workflows]
    scores = [workflow["score"] for workflow in workflows if workflow["score"] is not None]
    worst = next((v for v in (FAIL, PARTIAL, PASS) if v in verdicts), NOT_APPLICABLE)
    return worst, sum(scores) / len(scores) if scores else None


def akm_usage(state_db: Path) -> dict[str, int] | None:
    """How often akm itself counted each kind of use; None without a readable state.db.

    Counts only: akm's clock has whole seconds, so nothing here decides an order.
    """
    if state_db.is_symlink() or not state_db.is_file() or state_db.stat().st_size > 256_000_000:
        return None
    try:
        link = sqlite3.connect(f"{state_db.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        try:
            rows = link.execute(
                "SELECT event_type, COUNT(*) FROM usage_events WHERE source = 'user' GROUP BY event_type"
            ).fetchall()
        finally:
            link.close()
    except sqlite3.Error:
        return None
    return {str(kind): int(count) for kind, count in rows}


def score(
    plan: Mapping[str, Any], agent_logs: Path, *, akm_expected: bool | None, right: bool | None
) -> dict[str, Any]:
    """Score a task's workflows on a trial's logs.

    Args:
        plan: `tests/compliance.json` of the task: `task` (gold_ref, abstention) and `workflows`.
        agent_logs: the trial's agent folder, with trajectory.json.
        akm_expected: whether the arm had akm; None to tell by the evidence.
        right: whether the answer was right.

    Returns:
        What goes to compliance.json: `verdict`, `score`, `reason`, `workflows`, `akm_usage`.
    """
    task = plan.get("task", {})
    facts = Facts(concept_id(task.get("gold_ref") or ""), bool(task.get("abstention")), right)
    usage = akm_usage(agent_logs / "akm" / "state.db")
    result: dict[str, Any] = {"version": 1, "verdict": NOT_APPLICABLE, "score": None, "reason": "", "workflows": []}
    result["akm_usage"] = usage
    if akm_expected is False:
        return {**result, "reason": "this arm has no akm"}
    try:
        trajectory = read_trajectory(agent_logs / "trajectory.json")
        events = events_of(trajectory)
        called = any(event.kind in ("lookup", "show", "feedback", "remember", "workflow") for event in events)
        if akm_expected is None and usage is None and not called:
            return {**result, "reason": "nothing shows that the agent had akm"}
        workflows = [judge_workflow(events, spec, facts) for spec in plan.get("workflows", [])]
    except (UnscorableError, RecursionError) as error:
        reason = str(error) if isinstance(error, UnscorableError) else "trajectory.json is nested too deeply"
        return {**result, "verdict": UNSCORABLE, "reason": reason}
    verdict, value = overall(workflows)
    result["steps"], result["calls"] = trajectory.last_step, len(trajectory.calls)
    return {**result, "verdict": verdict, "score": value, "workflows": workflows}


# --- ctrf ---


_STATUS = {"passed": "passed", "failed": "failed", "skipped": "skipped"}


class CtrfPlugin:
    """Collects one result per test and writes `ctrf.json` when the session ends."""

    def __init__(self, version: str) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.started = time.time()
        self.version = version
        self.broken = False

    def pytest_runtest_makereport(self, call: Any) -> None:
        """A test that cannot tell right from wrong says so by its exception."""
        if call.excinfo is not None and call.excinfo.typename == "BrokenVerifierError":
            self.broken = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Keep the worst phase of each test."""
        test = self.tests.setdefault(report.nodeid, {"name": report.nodeid, "status": "passed", "duration": 0})
        test["duration"] += round(report.duration * 1000)
        if report.outcome != "passed" and test["status"] != "failed":
            test["status"] = _STATUS.get(report.outcome, "other")
            message = str(getattr(report, "longreprtext", "")).strip()
            test["message"] = message.splitlines()[-1][:500] if message else ""

    def pytest_collectreport(self, report: Any) -> None:
        """A module that cannot be collected is a failed test of its own."""
        if report.failed:
            message = str(getattr(report, "longreprtext", "")).strip()
            self.tests[report.nodeid] = {
                "name": report.nodeid or "collection", "status": "failed", "duration": 0, "message": message[-500:],
            }  # fmt: skip

    def pytest_sessionfinish(self) -> None:
        """Write the report."""
        tests = list(self.tests.values())
        summary: dict[str, Any] = {"tests": len(tests)}
        for status in ("passed", "failed", "pending", "skipped", "other"):
            summary[status] = sum(test["status"] == status for test in tests)
        summary["start"], summary["stop"] = round(self.started * 1000), round(time.time() * 1000)
        results = {"tool": {"name": "pytest", "version": self.version}, "summary": summary, "tests": tests}
        write_json(logs_dir() / "ctrf.json", {"reportFormat": "CTRF", "specVersion": "0.0.0", "results": results})
        for test in tests:
            note(test["name"], [test.get("message") or test["status"]] if test["status"] != "passed" else [])


def run_pytest(tests: Path) -> int:
    """Run a task's test modules, out of reach of anything the workspace could shadow.

    Returns:
        pytest's own exit code: 0 all passed, 1 some failed, 2 and up it could not tell.
    """
    import pytest

    os.environ.pop("PYTEST_ADDOPTS", None)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    plugin = CtrfPlugin(pytest.__version__)
    options = ["-q", "--tb=line", "--color=no", "-p", "no:cacheprovider", f"--rootdir={tests}", "-c", os.devnull]
    code = int(pytest.main([*options, str(tests)], plugins=[plugin]))
    return BROKEN if plugin.broken else code


# --- main ---


AGENT_LOGS_ENV = "AKM_VERIFY_AGENT_LOGS"
REWARD_COMPLIANCE_ENV = "AKM_HARBOR_COMPLIANCE_IN_REWARD"


def _commands_of(path: str) -> list[list[str]]:
    try:
        return split_commands(read_answer(path))
    except UnreadableCommandError as error:
        raise WrongAnswerError(f"{path}: {error}") from None


def _check_command(args: argparse.Namespace) -> list[str]:
    commands = _commands_of(args.file)
    if len(commands) != args.of:
        return [f"{args.file} holds {len(commands)} commands, not {args.of}"]
    words = shlex.split(args.words)
    required = [parse_option(text) for text in args.options if not text.startswith("?")]
    allowed = [parse_option(text[1:]) for text in args.options if text.startswith("?")]
    if args.nth is not None:
        return match_command(commands[args.nth - 1], words, required, allowed)
    results = [match_command(command, words, required, allowed) for command in commands]
    return [] if [] in results else min(results, key=len)


def _check_document(args: argparse.Namespace) -> list[str]:
    given = load_document(args.file, args.kind)
    source = Path(args.equals or args.holds)
    wanted = parse_document(source.read_text(encoding="utf-8"), source.suffix.lstrip("."))
    return compare(given, wanted, partly=args.equals is None)


def _check_text(args: argparse.Namespace) -> list[str]:
    given = [line.rstrip() for line in read_answer(args.file).strip().splitlines()]
    wanted = [line.rstrip() for line in Path(args.equals).read_text(encoding="utf-8").strip().splitlines()]
    if given == wanted:
        return []
    place = next((i for i, (a, b) in enumerate(zip(given, wanted)) if a != b), min(len(given), len(wanted)))
    return [f"{args.file} differs from what is asked at line {place + 1}"]


def capture_says(agent_logs: Path) -> dict[str, Any]:
    """The agent's own capture.json, written by the harness after the run; empty without one."""
    try:
        value = json.loads(read_answer(agent_logs / "akm" / "capture.json"))
    except (WrongAnswerError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def score_compliance(here: Path, *, right: bool | None) -> dict[str, Any] | None:
    """Score the task's workflows, if it declares any."""
    plan = here / "compliance.json"
    if not plan.exists():
        return None
    agent_logs = Path(os.environ.get(AGENT_LOGS_ENV, "/logs/agent"))
    expected = capture_says(agent_logs).get("akm_expected")
    return score(
        json.loads(plan.read_text(encoding="utf-8")),
        agent_logs,
        akm_expected=expected if isinstance(expected, bool) else None,
        right=right,
    )


def _compliance_counts() -> bool:
    wish = os.environ.get(REWARD_COMPLIANCE_ENV, "")
    agent_logs = Path(os.environ.get(AGENT_LOGS_ENV, "/logs/agent"))
    return wish.lower() in ("1", "on", "true", "yes") or capture_says(agent_logs).get("compliance_in_reward") is True


def finish(code: int, here: Path, details: Path) -> int:
    """Write details.json, compliance.json and, unless the verifier broke, the reward."""
    right = {RIGHT: True, WRONG: False}.get(code)
    report: dict[str, Any] = {
        "version": 1,
        "exit_code": code,
        "checks": read_notes(details),
        "compliance_counted": False,
    }
    compliance = score_compliance(here, right=right)
    if compliance is not None:
        write_json(logs_dir() / "compliance.json", compliance)
        if right and _compliance_counts():
            report["compliance_counted"] = True
            right = compliance["verdict"] in (PASS, NOT_APPLICABLE, UNSCORABLE)
    write_json(logs_dir() / "details.json", report)
    if right is None:
        print(f"the verifier itself failed (exit code {code}): no reward is written", file=sys.stderr)  # noqa: T201
        return BROKEN
    write_reward(right=right)
    return 0


def _judge(args: argparse.Namespace, here: Path) -> int:
    clear_reward()
    if not Path(args.workdir).is_dir() or Path(args.workdir).is_symlink():
        return finish(note("workspace", [f"{args.workdir} is not a folder any more"]), here, Path(os.devnull))
    os.chdir(args.workdir)
    with tempfile.TemporaryDirectory() as folder:
        details = Path(folder, "details.jsonl")
        os.environ[DETAILS_ENV] = str(details)
        if args.action == "pytest":
            code = run_pytest(here)
        else:
            check = shlex.join([sys.executable, "-I", str(here / Path(__file__).name)])
            command = args.command[1:] if args.command[:1] == ["--"] else args.command
            code = subprocess.run(command, check=False, env={**os.environ, "CHECK": check}).returncode
        return finish(code, here, details)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="akm_verify.py")
    actions = parser.add_subparsers(dest="action", required=True)
    run, tests = actions.add_parser("run"), actions.add_parser("pytest")
    for judge in (run, tests):
        judge.add_argument("--in", dest="workdir", default=".", help="the workspace")
    run.add_argument("command", nargs=argparse.REMAINDER)
    actions.add_parser("compliance")
    actions.add_parser("reward").add_argument("value", choices=("0", "1"))
    actions.add_parser("tokens").add_argument("file")
    command = actions.add_parser("command")
    command.add_argument("file")
    command.add_argument("words", help="program, subcommands and positional values")
    command.add_argument("options", nargs="*", help="after --: options that must be there, or may be (?--name=value)")
    command.add_argument("--of", type=int, default=1, help="how many commands the file holds")
    command.add_argument("--nth", type=int, help="which of them is meant; any, if not given")
    document = actions.add_parser("document")
    document.add_argument("file")
    document.add_argument("--kind", choices=("yaml", "json", "toml"))
    which = document.add_mutually_exclusive_group(required=True)
    which.add_argument("--equals", help="the wanted document")
    which.add_argument("--holds", help="a document whose every key must be there")
    text = actions.add_parser("text")
    text.add_argument("file")
    text.add_argument("--equals", required=True, help="a file with the wanted text")
    return parser


def _act(args: argparse.Namespace, here: Path) -> int:
    if args.action in ("run", "pytest"):
        return _judge(args, here)
    if args.action == "compliance":
        print(json.dumps(score_compliance(here, right=None), indent=1))  # noqa: T201
        return RIGHT
    if args.action == "reward":
        clear_reward()
        write_reward(right=args.value == "1")
        return RIGHT
    if args.action == "tokens":
        for words in _commands_of(args.file):
            print(json.dumps(words))  # noqa: T201
        return RIGHT
    check = {"command": _check_command, "document": _check_document, "text": _check_text}[args.action]
    try:
        complaints = check(args)
    except WrongAnswerError as error:
        complaints = [str(error)]
    return note(f"{args.action} {args.file}", complaints)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one action; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    args = _parser().parse_args(argv)
    here = Path(__file__).resolve().parent
    try:
        return _act(args, here)
    except WrongAnswerError as error:
        return note(args.action, [str(error)])
    except (BrokenVerifierError, OSError, ValueError) as error:
        print(f"akm_verify: {error}", file=sys.stderr)  # noqa: T201
        return BROKEN


if __name__ == "__main__":
    sys.exit(main())
