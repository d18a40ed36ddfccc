"""References: `bundle//type-folder/name#fragment`, in the spellings akm has used."""

import posixpath
import re
import unicodedata

LEARNING_TYPES = ("memory", "lesson", "knowledge")
"""The types the study measures, in the order a canary set is filled."""

_FOLDERS = {
    "agent": "agents",
    "command": "commands",
    "env": "env",
    "fact": "facts",
    "instruction": "instructions",
    "knowledge": "knowledge",
    "lesson": "lessons",
    "memory": "memories",
    "script": "scripts",
    "secret": "secrets",
    "session": "sessions",
    "skill": "skills",
    "task": "tasks",
    "workflow": "workflows",
}
_TYPES = {folder: type_ for type_, folder in _FOLDERS.items()}
_SLUG = re.compile(r"[^\s:.#/]+")
_OLD = re.compile(rf"({'|'.join(_FOLDERS)}):(?!//)(.+)")


def concept_id(type_: str, name: str) -> str:
    """The short id of an asset: its type's folder and its name; a type without a folder uses the name alone."""
    folder = _FOLDERS.get(type_)
    return f"{folder}/{name}" if folder else name


def type_of(ref: str) -> str | None:
    """The asset type a short id, or an old `type:name`, speaks of."""
    return _TYPES.get(reduced(ref).partition("/")[0])


def reduced(ref: str) -> str:
    """The short id behind any spelling, so that two references can be compared.

    Takes off the bundle, a `#fragment` and path noise, and turns the `type:name` spelling of
    older rows into today's. A reference that cannot be parsed is compared as it stands.
    """
    text = ref.strip()
    body = text
    bundle, boundary, rest = text.partition("//")
    if boundary:
        if not _SLUG.fullmatch(bundle):
            return ref
        body = rest
    body = body.partition("#")[0]
    old = _OLD.fullmatch(body)
    if old:
        body = concept_id(old[1], old[2])
    if not body or "\x00" in body:
        return ref
    path = posixpath.normpath(unicodedata.normalize("NFC", body).replace("\\", "/"))
    return ref if path.startswith(("/", "..")) or path == "." else path
