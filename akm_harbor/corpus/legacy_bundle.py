"""Turn a legacy stash into a bundle that akm 0.9 indexes."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.corpus.bundle import ASSET_DIRS, assets
from akm_harbor.corpus.legacy_task import check_tree
from akm_harbor.json_toml import parse_json
from akm_harbor.verify.events import concept_id

_FRONTMATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_OLD_REF = re.compile(r"\b(skill|command|agent|memory|script|workflow|lesson|knowledge):([a-z0-9][\w-]*)")
_STEP = re.compile(r"^## Step:[ \t]*(.+)\n(?:Step ID:[ \t]*(\S+)\n)?", re.MULTILINE)


def _descriptions(folder: Path) -> dict[str, dict[str, Any]]:
    """What `.stash.json` files say of the assets, by path."""
    found: dict[str, dict[str, Any]] = {}
    for file in folder.rglob(".stash.json"):
        try:
            entries = parse_json(file.read_text(encoding="utf-8")).get("entries", [])
        except (ValueError, OSError, AttributeError):
            continue
        for entry in entries:
            if isinstance(entry, dict) and isinstance(entry.get("filename"), str):
                found[str(file.parent / entry["filename"])] = entry
    return found


def _step_id(match: re.Match[str]) -> str:
    return match.group(2) or re.sub(r"[^a-z0-9]+", "-", match.group(1).lower()).strip("-")


def _as_workflow(front: dict[str, Any], body: str) -> tuple[dict[str, Any], str]:
    """A workflow in the 0.9 schema: its steps listed in the frontmatter, a heading for each."""
    steps = [_step_id(match) for match in _STEP.finditer(body)]
    body = _STEP.sub(lambda match: f"## {_step_id(match)}\n", body)
    body = re.sub(r"^### Completion Criteria$", "### gate", body, flags=re.MULTILINE)
    body = re.sub(r"^### Instructions\n", "", body, flags=re.MULTILINE)
    params = front.get("params")
    if isinstance(params, dict):
        front["params"] = {
            name: value if isinstance(value, dict) else {"type": "string", "description": str(value)}
            for name, value in params.items()
        }
    return {**front, "type": "workflow", "steps": [{"id": step} for step in steps]}, body


def _with_frontmatter(text: str, told: Mapping[str, Any], name: str, *, workflow: bool) -> str:
    match = _FRONTMATTER.match(text)
    try:
        front = yaml.safe_load(match.group(1)) if match else {}
    except yaml.YAMLError:
        front = {}
    front = front if isinstance(front, dict) else {}
    body = _FRONTMATTER.sub("", text, count=1)
    heading = re.search(r"^#\s+(.+)$", body, re.MULTILINE)
    default = heading.group(1).strip() if heading else name.replace("-", " ")
    description = front.get("description") or told.get("description") or default
    tags = front.get("tags") or told.get("tags") or name.split("-")
    front["description"] = " ".join(str(description).split())
    front["tags"] = [str(tag) for tag in tags] if isinstance(tags, list) else [str(tags)]
    if workflow:
        front, body = _as_workflow(front, body)
    body = _OLD_REF.sub(lambda match: concept_id(match.group()), body)
    head = yaml.safe_dump(front, sort_keys=False, allow_unicode=True, width=1000)
    return f"---\n{head}---\n{body}"


def convert_stash(source: Path, target: Path) -> dict[str, str]:
    """Write a stash as a bundle.

    Indices and manifests are left out (they would be an answer key for one arm only); descriptions
    and tags that stand only there move into the assets' frontmatter, workflows get the 0.9 schema,
    and old `type:name` references the new spelling.

    Args:
        source: the stash.
        target: the bundle to write.

    Returns:
        Old reference (`skill:x`) to new one (`skills/x`), for every asset.

    Raises:
        AkmHarborError: a link that leaves the stash, or a file that is too large.
    """
    check_tree(source)
    told = _descriptions(source)
    for folder in ASSET_DIRS:
        for path in sorted((source / folder).rglob("*")) if (source / folder).is_dir() else []:
            if not path.is_file() or path.name.startswith("."):
                continue
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix != ".md" or (folder == "skills" and path.name != "SKILL.md"):
                shutil.copyfile(path, place)
                continue
            name = path.parent.name if path.name == "SKILL.md" else path.stem
            text = path.read_text(encoding="utf-8", errors="replace").replace("\r\n", "\n")
            new = _with_frontmatter(text, told.get(str(path), {}), name, workflow=folder == "workflows")
            place.write_text(new, encoding="utf-8")
    singular = {"memories": "memory", "knowledge": "knowledge"}
    refs: dict[str, str] = {}
    for asset in assets(target) if target.is_dir() else ():
        kind, _, name = asset.ref.partition("/")
        refs[f"{singular.get(kind, kind.rstrip('s'))}:{name}"] = asset.ref
    return refs
