"""A bundle on disk: the knowledge an arm is given, one asset a file."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.errors import AkmHarborError

# Folder of a bundle -> what a concept id under it looks like. Skills are folders with a SKILL.md.
ASSET_DIRS = ("knowledge", "skills", "memories", "lessons", "commands", "agents", "scripts", "workflows", "facts")
_FRONTMATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset of a bundle.

    Attributes:
        ref: its concept id, `<plural dir>/<name>`.
        path: its file.
        text: the whole file.
    """

    ref: str
    path: Path
    text: str

    @property
    def frontmatter(self) -> dict[str, Any] | None:
        """Its frontmatter; None when it has none or it is not a YAML mapping."""
        match = _FRONTMATTER.match(self.text)
        if match is None:
            return None
        try:
            value = yaml.safe_load(match.group(1))
        except yaml.YAMLError:
            return None
        return value if isinstance(value, dict) else None

    @property
    def body(self) -> str:
        """The text after the frontmatter."""
        return _FRONTMATTER.sub("", self.text, count=1)


def _ref_of(relative: Path) -> str | None:
    parts = relative.parts
    if parts[0] not in ASSET_DIRS or len(parts) < 2:
        return None
    if parts[0] == "skills":
        return "/".join(parts[:-1]) if parts[-1] == "SKILL.md" and len(parts) > 2 else None
    return relative.with_suffix("").as_posix() if relative.suffix in (".md", ".sh", ".py", ".js", ".ts") else None


def assets(bundle: Path) -> Iterator[Asset]:
    """The assets of a bundle folder, by path.

    Raises:
        AkmHarborError: there is no such folder.
    """
    if not bundle.is_dir():
        raise AkmHarborError(
            "no such bundle", path=bundle, hint="Give a folder of Markdown files, like those in agents/bundles."
        )
    for path in sorted(p for p in bundle.rglob("*") if p.is_file() and not p.is_symlink()):
        ref = _ref_of(path.relative_to(bundle))
        if ref is not None and not path.name.startswith("."):
            yield Asset(ref, path, path.read_text(encoding="utf-8", errors="replace"))


def find_bundles_dir(tasks: Path) -> Path | None:
    """Where the bundles of a folder of tasks (or of one task) lie: `../agents/bundles`, else `../bundles`."""
    for base in (tasks, tasks.parent):
        for candidate in (base / ".." / "agents" / "bundles", base / ".." / "bundles"):
            if candidate.is_dir():
                return candidate.resolve()
    return None
