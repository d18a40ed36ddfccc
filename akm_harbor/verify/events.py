"""What each tool call of a trajectory was: a look-up, an asset opened, a write, feedback ...

The vocabulary: `search`, `curate`, `show` (each is also a `lookup`), `feedback`, `remember`,
`workflow` (an `akm workflow` command), `read`, `write`, `run` (any shell command), and whatever
a specification declares itself. A shell command that calls akm, or reads a file of the bundle,
counts as the akm event it is.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from typing import Any

from akm_harbor.verify.trajectory import Call, Trajectory

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
