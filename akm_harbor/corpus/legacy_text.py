"""Derive an instruction from a legacy task, which had none, and keep agents' own files out of the way."""

import re
from collections.abc import Iterable

# Graded files that a coding agent would load by itself, and what they are called instead.
RENAMED = {"opencode.json": "settings.json", "AGENTS.md": "agent-guidance.md"}
# Sentences that say how to look the answer up: only one arm could follow them.
_HINT = re.compile(
    r"\bakm\b|\bskill\b|\bskills\b|\bstash\b|\bknowledge base\b|AGENTS\.md workflow|required workflow|underspecified"
    r"|lookup",
    re.IGNORECASE,
)
_FILE = re.compile(r"(?<![\w./-])((?:[\w-]+/)*[\w-]+(?:\.[\w-]+)*\.(?:txt|ya?ml|json|toml|sh|md|ini|env))\b")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z`*])")


def rename_loaded(text: str) -> str:
    """Replace the names that agents load by themselves."""
    for old, new in RENAMED.items():
        text = re.sub(rf"(?<![\w-]){re.escape(old)}(?![\w-])", new, text)
    return text


def _paragraphs(text: str) -> list[str]:
    """Paragraphs with their soft line breaks joined; list items and code stay lines of their own."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.split("\n")
        is_list = any(re.match(r"\s*(?:[-*]|\d+\.)\s", line) for line in lines) or block.startswith("```")
        blocks.append(block if is_list else " ".join(line.strip() for line in lines))
    return blocks


def strip_hints(text: str) -> str:
    """Drop the sentences and list items that point at akm, and lists that are left without items."""
    kept: list[str] = []
    for block in _paragraphs(text):
        if "\n" in block or re.match(r"\s*(?:[-*]|\d+\.)\s", block):
            items = re.split(r"\n(?=\s*(?:[-*]|\d+\.)\s)", block)
            block = "\n".join(item for item in items if not _HINT.search(item))  # noqa: PLW2901
        else:
            block = " ".join(one for one in _SENTENCE_END.split(block) if not _HINT.search(one))  # noqa: PLW2901
        if block.strip():
            kept.append(block)
    with_body = [b for i, b in enumerate(kept) if not (b.rstrip().endswith(":") and (i + 1 == len(kept)))]
    return "\n\n".join(with_body)


def graded_files(verifier: Iterable[str]) -> list[str]:
    """The file names that a verifier's source mentions, in order of appearance."""
    found: dict[str, None] = {}
    for source in verifier:
        for name in _FILE.findall(source):
            if not name.endswith("verify.sh") and "test_" not in name:
                found.setdefault(name)
    return list(found)


def instruction(title: str, readme: str, verifier: list[str]) -> tuple[str, bool]:
    """The instruction of a converted task, by rule.

    The working folder, the title, the README of the workspace without its heading and without the
    sentences that say how to look the answer up, then the files that the verifier reads. What the
    verifier wants to find in them is not copied.

    Args:
        title: the task's title.
        readme: the workspace's README.md.
        verifier: the verifier's sources.

    Returns:
        The text, and whether akm is the task's own subject (then nothing is stripped).
    """
    about_akm = any(re.search(r"\bakm\b", source) for source in verifier)
    body = re.sub(r"\A\s*#[^\n]*\n", "", readme)
    body = body if about_akm else strip_hints(body)
    files = [rename_loaded(name) for name in graded_files(verifier)]
    parts = ["Working directory: `/app`.", f"{rename_loaded(title).strip().rstrip('.')}.", rename_loaded(body).strip()]
    if files:
        parts.append("What is looked at: " + ", ".join(f"`/app/{name}`" for name in dict.fromkeys(files)) + ".")
    return "\n\n".join(part for part in parts if part) + "\n", about_akm
