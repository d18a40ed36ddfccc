"""The `[metadata]` table of a task: its keys, their values, and what they must agree on."""

from collections.abc import Mapping
from typing import Any

from akm_harbor.corpus.task import CorpusTask

# key -> allowed values; an empty tuple means any non-empty string.
REQUIRED: Mapping[str, tuple[str, ...]] = {
    "domain": (),
    "family": (),
    "shape": ("edit-existing", "create-new"),
    "knowledge": ("public", "fictional", "local", "none"),
    "slice": ("train", "eval", "local"),
    "difficulty": ("easy", "medium", "hard"),
    "verifier": ("script", "pytest"),
    "bundle": (),
    "memory_ability": (
        "procedural_lookup", "multi_asset_composition", "conflict_resolution", "abstention", "noisy_retrieval",
        "temporal_update", "none",
    ),
}  # fmt: skip
_LISTS = ("workflows", "withheld", "public_tokens", "keywords", "tags", "review")
OPTIONAL = {
    "gold_ref", "abstention", "repeated_failure_group", "trap", "subject", "derived", "notes", "legacy_id",
    "budget_tokens", "budget_wall_ms", *_LISTS,
}  # fmt: skip


def _wrong_value(key: str, value: Any, allowed: tuple[str, ...]) -> str | None:
    if not isinstance(value, str) or not value:
        return f"`{key}` is missing or not a string"
    if allowed and value not in allowed:
        return f"`{key}` is {value!r}, not one of {', '.join(allowed)}"
    return None


def complaints(task: CorpusTask) -> list[str]:
    """What is missing or wrong in a task's metadata, empty if nothing."""
    data = task.metadata
    lines = [line for key, allowed in REQUIRED.items() if (line := _wrong_value(key, data.get(key), allowed))]
    lines += [f"`{key}` is not a key of the corpus" for key in sorted(data.keys() - REQUIRED.keys() - OPTIONAL)]
    for key in _LISTS:
        if key in data and len(task.texts(key)) != len(data[key] if isinstance(data[key], list) else "?"):
            lines.append(f"`{key}` is not a list of strings")
    if not isinstance(data.get("derived", {}), dict):
        lines.append("`derived` is not a table of token = how it follows")
    if data.get("domain") and not task.name.startswith(f"{data['domain']}--"):
        lines.append(f"`domain` is {data['domain']!r}, the folder's is {task.name.partition('--')[0]!r}")
    knowledge = data.get("knowledge")
    if knowledge in ("fictional", "local") and not task.texts("withheld"):
        lines.append(f"a {knowledge} task needs `withheld`: what only its bundle tells")
    if knowledge != "none" and not task.gold_ref and not task.abstention:
        lines.append("`gold_ref` is missing, and the task is not one of abstention")
    if task.abstention and task.gold_ref:
        lines.append("a task of abstention has no `gold_ref`")
    return lines
