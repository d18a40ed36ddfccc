"""What a tool call had to do with akm: its verb, its query, and the refs in rank order."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgspec

VERBS = ("search", "show", "curate", "remember", "feedback")
READ = "read"
"""The verb of a shell command or file tool that goes to the bundle itself."""

BUNDLE_FOLDERS = ("/opt/akm-harbor/bundle", "/opt/akm/bundle", "$AKM_BUNDLE_DIR", "${AKM_BUNDLE_DIR}")
_SHELLS = frozenset({"bash", "shell", "terminal", "execute_command", "run_command"})
_READERS = _SHELLS | {"read", "grep", "glob", "list", "ls", "cat", "view"}
_COMMAND = re.compile(rf"(?:^|[\s;&|(`$])(?:\S*/)?akm\s+(?:-\S+\s+)*({'|'.join(VERBS)})\b([^\n;&|]*)")
_REF = re.compile(
    r"\b(?:[\w.-]+//)?"
    r"(?:skills|knowledge|memories|lessons|commands|agents|instructions|workflows|scripts|facts|sessions|tasks)"
    r"/[\w./#-]*\w"
)
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class AkmCall:
    """The akm side of one tool call.

    Attributes:
        verb: search, show, curate, remember, feedback or `read`.
        query: what was asked, for search and curate.
        refs: refs returned (search, curate) or asked for (the others), in rank order.
        answered: akm gave a payload: hits, items, content or an `ok`; None when it cannot be told.
    """

    verb: str
    query: str | None
    refs: tuple[str, ...]
    answered: bool | None


def worth_a_look(tools: list[str], arguments: list[str], folder: str | None = None) -> list[int]:
    """Which of many calls may have to do with akm.

    Args:
        tools: the calls' tools.
        arguments: their arguments as JSON, whole.
        folder: where the trial's bundle lay.
    """
    # No mark in any of them, on most control arms.
    every = "\n".join(arguments)
    marks = [mark for mark in ("akm", "AKM", *([folder] if folder else ())) if mark in every]
    if not marks and not any(tool.startswith("akm_") for tool in set(tools)):
        return []
    return [
        i
        for i, (tool, text) in enumerate(zip(tools, arguments, strict=True))
        if tool.startswith("akm_") or any(mark in text for mark in marks)
    ]


def akm_call(tool: str, arguments: Any, output: str | None, bundle_folders: Iterable[str] = ()) -> AkmCall | None:
    """Classify one tool call.

    Args:
        tool: the tool's name.
        arguments: its arguments.
        output: its output, None when there is none.
        bundle_folders: further paths under which this trial's bundle lies.

    Returns:
        None when the call has nothing to do with akm.
    """
    verb = tool[4:] if tool.startswith("akm_") else ""
    if verb in VERBS:
        given = arguments if isinstance(arguments, dict) else {}
        query = given.get("query")
        asked = given.get("ref") or given.get("name")
        refs, answered = _from_output(verb, output)
        if verb not in ("search", "curate"):
            refs = (asked,) if isinstance(asked, str) else refs[:1]
        return AkmCall(verb, query if isinstance(query, str) else None, refs, answered)
    if tool not in _READERS or not isinstance(arguments, dict):
        return None
    text = "\n".join(v for v in arguments.values() if isinstance(v, str))
    if tool in _SHELLS and "akm" in text and (command := _COMMAND.search(text)):
        verb = command[1]
        words = [w.strip("\"'") for w in re.findall(r"\"[^\"]*\"|'[^']*'|\S+", command[2]) if not w.startswith("-")]
        refs, answered = _from_output(verb, output)
        if verb in ("search", "curate"):
            return AkmCall(verb, words[0] if words else None, refs, answered)
        return AkmCall(verb, None, tuple(words[:1]) if verb in ("show", "feedback") else refs[:1], answered)
    if any(folder in text for folder in (*BUNDLE_FOLDERS, *bundle_folders)):
        named = _REF.findall(text)
        # A listing or a grep over the folder names no asset; what it found stands in its output.
        found = tuple(dict.fromkeys(named or _REF.findall((output or "")[:20_000])))
        return AkmCall(READ, None, found[:20], bool(output) if output is not None else None)
    return None


def _from_output(verb: str, output: str | None) -> tuple[tuple[str, ...], bool | None]:
    """Refs in rank order, and whether there was a payload."""
    if output is None:
        return (), None
    value = _json_in(output)
    if not isinstance(value, dict):
        refs = tuple(dict.fromkeys(_REF.findall(output[:20_000])))
        failed = not output.strip() or output.lstrip()[:20].lower().startswith(("error", "akm cli"))
        return refs, not failed and (bool(refs) or verb not in ("search", "curate"))
    if value.get("ok") is False or "error" in value:
        return (), False
    hits = value.get("hits") if "hits" in value else value.get("items")
    if isinstance(hits, list):
        found = [h["ref"] for h in hits if isinstance(h, dict) and isinstance(h.get("ref"), str)]
        return tuple(found), bool(hits)
    ref = value.get("ref")
    content = value.get("content") or value.get("ok") or value.get("action")
    return (ref,) if isinstance(ref, str) else (), bool(content)


def _json_in(output: str) -> Any:
    text = output.strip()
    if not text.startswith("{"):
        return None
    try:
        return _decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError, RecursionError):
        pass
    try:
        # Progress lines may follow the object.
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def bare_ref(ref: str) -> str:
    """A ref without bundle, fragment and file name: `bench//skills/x#part` and `skills/x/SKILL.md` are `skills/x`."""
    bare = ref.rpartition("//")[2].partition("#")[0].strip("/")
    return bare.removesuffix(".md").removesuffix("/SKILL")


def gold_rank(refs: Iterable[str], gold: Iterable[str]) -> int | None:
    """1-based rank of the first ref that is one of the gold assets."""
    wanted = {bare_ref(g) for g in gold}
    for rank, ref in enumerate(refs, 1):
        if bare_ref(ref) in wanted:
            return rank
    return None
