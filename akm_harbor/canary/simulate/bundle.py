"""A made-up store, and the ways in which a store changes.

Everything is synthetic and drawn from a seed. Each change returns nothing and alters the
bundle, as a consolidation run would alter the files.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from akm_harbor.canary.refs import LEARNING_TYPES, concept_id

_ONSETS = ("b", "c", "d", "f", "g", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "br", "st", "tr", "pl")
_VOWELS = ("a", "e", "i", "o", "u")
_CODAS = ("n", "r", "l", "s", "t", "x")
BLAND = "General lesson about project workflows and best practices"


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset, as far as an index shows it, and its body, which an index does not.

    Attributes:
        name: its name inside its type's folder.
        type: memory, lesson or knowledge.
        description, tags, headings: what is indexed.
        xrefs: short ids it says it was made from.
        generation: how many merges deep.
        body: the text a merge works on.
    """

    name: str
    type: str = "memory"
    description: str = ""
    tags: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()
    xrefs: tuple[str, ...] = ()
    generation: int = 0
    body: str = ""

    @property
    def ref(self) -> str:
        """Its short id."""
        return concept_id(self.type, self.name)


@dataclass(slots=True)
class Bundle:
    """A store's assets by short id, and the source of its randomness."""

    seed: int = 0
    assets: dict[str, Asset] = field(default_factory=dict)
    _random: random.Random = field(init=False)
    _made: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311  (simulation)

    def refs(self, type_: str | None = None) -> list[str]:
        """Short ids in name order, of one type or of all."""
        return sorted(ref for ref, asset in self.assets.items() if type_ in {None, asset.type})

    def add(self, asset: Asset) -> None:
        """Write an asset, in place of one of the same name."""
        self.assets[asset.ref] = asset

    def pick(self, count: int, type_: str | None = None) -> list[str]:
        """Choose assets at random."""
        refs = self.refs(type_)
        return sorted(self._random.sample(refs, min(count, len(refs))))

    # --- how a store changes ----------------------------------------------------------------

    def grow(self, count: int, types: Sequence[str] = LEARNING_TYPES) -> None:
        """New assets about new things, three memories in four."""
        for _ in range(count):
            type_ = types[0] if self._random.random() < 0.5 else self._random.choice(types)
            self.add(self._invented(type_))

    def delete(self, refs: Sequence[str]) -> None:
        """Deletion hygiene: gone, and nobody names them."""
        for ref in refs:
            del self.assets[ref]

    def merge(self, refs: Sequence[str], *, keep_provenance: bool = True, keep_words: bool = True) -> str:
        """Merge assets into one; a faithful merge keeps both their words and their references."""
        parts = [self.assets[ref] for ref in refs]
        self._made += 1
        tags = dict.fromkeys(tag for part in parts for tag in (part.name, *part.tags))
        merged = Asset(
            name=f"merged-{self._made:03d}",
            type=parts[0].type,
            description=" ".join(part.description for part in parts) if keep_words else BLAND,
            tags=tuple(tags) if keep_words else (),
            xrefs=tuple(dict.fromkeys([*refs, *(x for part in parts for x in part.xrefs)])) if keep_provenance else (),
            generation=max(part.generation for part in parts) + 1,
            body="\n\n".join(part.body for part in parts) if keep_words else BLAND,
        )
        self.delete(refs)
        self.add(merged)
        return merged.ref

    def reword_blandly(self, refs: Sequence[str]) -> None:
        """Blander rewording: each asset keeps its name and loses what set it apart."""
        for ref in refs:
            self.assets[ref] = replace(self.assets[ref], description=BLAND, tags=(), body=BLAND)

    def paraphrase(self, refs: Sequence[str]) -> None:
        """Accepted rewrites without effect: other bodies, the same indexed surface."""
        for ref in refs:
            self.assets[ref] = replace(self.assets[ref], body=f"{self.assets[ref].body} (reworded {self._made})")
        self._made += 1

    def rename(self, refs: Sequence[str], *, keep_provenance: bool = True) -> None:
        """Give assets other names; with provenance the new one names the old one as its source."""
        for ref in refs:
            old = self.assets.pop(ref)
            self._made += 1
            xrefs = (*old.xrefs, ref) if keep_provenance else old.xrefs
            self.add(replace(old, name=f"renamed-{self._made:03d}-{self.word()}", xrefs=xrefs))

    # --- words ------------------------------------------------------------------------------

    def word(self) -> str:
        """A made-up word of two or three syllables."""
        choice = self._random.choice
        syllables = [choice(_ONSETS) + choice(_VOWELS) for _ in range(self._random.randint(2, 3))]
        return "".join(syllables) + choice(_CODAS)

    def _invented(self, type_: str) -> Asset:
        self._made += 1
        topic, thing = self.word(), self.word()
        words = [self.word() for _ in range(6)]
        return Asset(
            name=f"{topic}-{thing}-{self._made:04d}",
            type=type_,
            description=f"{topic.capitalize()} {thing} {' '.join(words[:4])}",
            tags=(topic, words[4]),
            headings=(f"{words[5].capitalize()} of {topic}",) if type_ == "knowledge" else (),
            body=f"The {topic} {thing} needs {' '.join(words)}.",
        )


def healthy(count: int = 60, seed: int = 0) -> Bundle:
    """A store of `count` assets about different things."""
    bundle = Bundle(seed)
    bundle.grow(count)
    return bundle


def thirty_topics() -> Bundle:
    """The store of the design's own test plan: thirty memories with words of their own."""
    bundle = Bundle()
    for number in range(30):
        name = f"topic-{number:02d}-notes"
        body = " ".join(f"w{number}x{position}word" for position in range(10)) + " in project practice."
        bundle.add(Asset(name, description=f"Notes about {name}", body=body))
    return bundle
