"""Read the Markdown assets of a bundle: what a merge works on, bodies included."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.canary.refs import type_of
from akm_harbor.errors import AkmHarborError
from akm_harbor.tables.problems import Problems

_MATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_LARGEST = 4_000_000


@dataclass(frozen=True, slots=True)
class BundleAsset:
    """One Markdown asset.

    Attributes:
        ref: short id, from its place in the bundle.
        body: the text below the frontmatter.
        xrefs: what it says it was made from, as written.
        generation: how many merges deep; 0 where it does not say.
    """

    ref: str
    body: str
    xrefs: tuple[str, ...]
    generation: int


def read_bundle(folder: Path, problems: Problems) -> dict[str, BundleAsset]:
    """Read every Markdown asset below a bundle's type folders, by short id.

    Links are not followed: a bundle is untrusted, and a link may lead anywhere.

    Raises:
        AkmHarborError: no such folder, or no asset in it.
    """
    if not folder.is_dir():
        raise AkmHarborError(
            "no such bundle folder", path=folder, hint="Give the folder that holds the bundle's Markdown files."
        )
    found = {asset.ref: asset for asset in _assets(folder, problems)}
    if not found:
        raise AkmHarborError(
            "holds no Markdown asset", path=folder, hint="A bundle has folders such as memories/ and lessons/."
        )
    return found


def _assets(folder: Path, problems: Problems) -> Iterator[BundleAsset]:
    for place, folders, files in folder.walk(follow_symlinks=False):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = place / name
            ref = path.relative_to(folder).with_suffix("").as_posix()
            if path.suffix != ".md" or path.is_symlink() or type_of(ref) is None:
                continue
            try:
                if path.stat().st_size > _LARGEST:
                    problems.add(path, "asset-too-large", f"over {_LARGEST} bytes", "asset left out")
                    continue
                text = path.read_text(encoding="utf-8", errors="replace")
            except OSError as error:
                problems.add(path, "asset-unreadable", str(error.strerror), "asset left out")
                continue
            matter, body = split_matter(text)
            if matter is None:
                problems.add(path, "frontmatter-invalid", "not a YAML mapping", "asset read without it")
            # A skill is a folder with SKILL.md in it.
            yield asset_of(ref.removesuffix("/SKILL"), matter or {}, body)


def split_matter(text: str) -> tuple[dict[str, Any] | None, str]:
    """Frontmatter and body; None for frontmatter that cannot be read."""
    match = _MATTER.match(text)
    if match is None:
        return {}, text
    try:
        found = yaml.safe_load(match[1])
    except (yaml.YAMLError, ValueError, RecursionError):
        return None, text[match.end() :]
    if found is None:
        return {}, text[match.end() :]
    return (found if isinstance(found, dict) else None), text[match.end() :]


def asset_of(ref: str, matter: Mapping[str, Any], body: str) -> BundleAsset:
    """An asset from its parts."""
    named = matter.get("xrefs") or matter.get("source_refs") or ()
    xrefs = tuple(str(ref) for ref in named) if isinstance(named, list) else (str(named),) if named else ()
    generation = matter.get("generation")
    return BundleAsset(ref, body, xrefs, generation if isinstance(generation, int) else 0)
