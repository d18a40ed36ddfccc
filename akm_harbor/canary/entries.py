"""One indexed asset, as far as the study needs it, read from the JSON document beside its row."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

Texts = tuple[str, ...]


class Heading(msgspec.Struct, frozen=True, gc=False):
    """One heading of an asset's table of contents."""

    text: str = ""


class Document(msgspec.Struct, frozen=True, gc=False):
    """The fields of an indexed document that minting, scoring and store shape look at.

    Attributes:
        name: the asset's name inside its type's folder.
        type: memory, lesson, knowledge, skill, ...
        description: one sentence from the frontmatter.
        tags: as written.
        toc: headings, which akm fills for knowledge only.
        xrefs: what it was made from; `source_refs` in older documents.
        generation: how many merges deep it is.
    """

    name: str
    type: str
    description: str | None = None
    tags: Texts | None = None
    toc: tuple[Heading, ...] | None = None
    xrefs: Texts | None = None
    source_refs: Texts | None = None
    generation: Annotated[float, msgspec.Meta(gt=-1e9, lt=1e9)] | None = None

    @property
    def sources(self) -> Texts:
        """The references this asset says it was made from."""
        return self.xrefs or self.source_refs or ()


_DECODER = msgspec.json.Decoder(Document)


def decode(raw: str | bytes) -> Document | None:
    """Read one document; None when it is not one (damaged JSON, fields of the wrong kind)."""
    try:
        return _DECODER.decode(raw)
    except (msgspec.DecodeError, UnicodeEncodeError):
        return _lenient(raw)


def _lenient(raw: str | bytes) -> Document | None:
    """Keep what fits of a document with odd fields: one bad tag must not hide an asset."""
    try:
        found: Any = msgspec.json.decode(raw)
        return msgspec.convert(dict(_fitting(found)), Document)
    except (msgspec.DecodeError, msgspec.ValidationError, AttributeError, UnicodeEncodeError):
        return None


def _fitting(found: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in Document.__struct_fields__:
        value = found.get(name)
        if name in {"tags", "xrefs", "source_refs"}:
            value = [item for item in value if isinstance(item, str)] if isinstance(value, list) else None
        elif name == "toc":
            value = [item for item in value if _is_heading(item)] if isinstance(value, list) else None
        elif name == "generation":
            value = value if isinstance(value, int | float) and abs(value) < 1e9 else None
        elif name == "description":
            value = value if isinstance(value, str) else None
        yield name, value


def _is_heading(item: object) -> bool:
    return isinstance(item, dict) and isinstance(item.get("text", ""), str)
