"""The merge floor: what a merge must keep of the assets it is made from.

Provenance: it names every asset that went into it, and everything those named. Specificity:
it keeps at least 0.6 as many distinct words as they had together.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.canary import fields
from akm_harbor.canary.bundle import BundleAsset, asset_of, read_bundle, split_matter
from akm_harbor.canary.jstext import words
from akm_harbor.canary.refs import reduced
from akm_harbor.tables.problems import Problems
from akm_harbor.tables.sqlite import StoreSchemaError, open_readonly

MIN_RETENTION = 0.6


@dataclass(frozen=True, slots=True)
class Floor:
    """One merge measured against the floor.

    Attributes:
        merged: the asset that came out, as a short id.
        participants: the assets that went in.
        required: how many references it has to name.
        named: how many different ones it names.
        missing: those it has to name and does not, in order.
        retention: its distinct words over those of its participants together, at most 1.
        passed: both hold.
    """

    merged: str
    participants: tuple[str, ...]
    required: int
    named: int
    missing: tuple[str, ...]
    retention: float
    passed: bool


@dataclass(frozen=True, slots=True)
class FloorReport:
    """All merges of a consolidation.

    Attributes:
        merges: each against the floor.
        vanished: assets that are gone and that no asset names: merged without provenance, or deleted.
    """

    merges: tuple[Floor, ...]
    vanished: tuple[str, ...]

    @property
    def violations(self) -> int:
        """Merges below the floor."""
        return sum(not merge.passed for merge in self.merges)


def check_merge(
    merged: BundleAsset, participants: Sequence[BundleAsset], min_retention: float = MIN_RETENTION
) -> Floor:
    """Measure one merge. Words are split at white space, in lower case, as akm does."""
    required = dict.fromkeys(ref for part in participants for ref in (reduced(part.ref), *map(reduced, part.xrefs)))
    named = set(map(reduced, merged.xrefs))
    missing = tuple(ref for ref in required if ref not in named)
    source = {word for part in participants for word in words(part.body.lower())}
    retention = min(1.0, len(set(words(merged.body.lower()))) / len(source)) if source else 1.0
    return Floor(
        merged=merged.ref,
        participants=tuple(part.ref for part in participants),
        required=len(required),
        named=len(named),
        missing=missing,
        retention=retention,
        passed=not missing and retention >= min_retention,
    )


def check_bundles(
    before: Mapping[str, BundleAsset], after: Mapping[str, BundleAsset], min_retention: float = MIN_RETENTION
) -> FloorReport:
    """Find the merges between two states of a bundle and measure each.

    A merge is an asset that is new or rewritten and names, as its sources, assets of the state
    before. A rename names one that is gone; it is held to the same floor. What is gone and
    named by nobody is listed: provenance that was dropped cannot be told from a deletion.
    """
    gone = [ref for ref in before if ref not in after]
    named: set[str] = set()
    merges = []
    for ref in sorted(after):
        asset = after[ref]
        sources = {reduced(xref) for xref in asset.xrefs}
        named |= sources
        old = before.get(ref)
        if old is not None and {reduced(xref) for xref in old.xrefs} >= sources:
            continue
        into = [before[source] for source in before if source in sources and source not in after]
        if old is not None and into:
            into.append(old)  # merged in place: the asset it was before takes part
        if into:
            itself = BundleAsset(asset.ref, asset.body, (*asset.xrefs, asset.ref), asset.generation)
            merges.append(check_merge(itself if old is not None else asset, into, min_retention))
    return FloorReport(tuple(merges), tuple(sorted(ref for ref in gone if ref not in named)))


def check_folders(before: Path, after: Path, problems: Problems, min_retention: float = MIN_RETENTION) -> FloorReport:
    """Measure the merges between two copies of a bundle.

    Raises:
        AkmHarborError: one of them is not a bundle.
    """
    return check_bundles(read_bundle(before, problems), read_bundle(after, problems), min_retention)


def check_proposals(
    state: Path,
    bundle: Path,
    problems: Problems,
    *,
    statuses: Iterable[str] = ("pending",),
    min_retention: float = MIN_RETENTION,
) -> FloorReport:
    """Measure the merges that proposals of a state.db would make in a bundle, before they are accepted.

    A proposal counts as a merge if it names assets of the bundle other than itself as its sources.

    Raises:
        StoreError: the database cannot be read, or has no proposals table.
        AkmHarborError: the folder is not a bundle.
    """
    assets = read_bundle(bundle, problems)
    wanted = set(statuses)
    with open_readonly(state, tables=("proposals",)) as db:
        rows = fields.rows(db, "proposals")
    if rows and not {"ref", "content", "status"} <= rows[0].keys():
        raise StoreSchemaError(
            f"its proposals table lacks ref, content or status (it has {', '.join(rows[0])})",
            path=state,
            hint="Was it written by a supported akm?",
        )
    merges = []
    for row in rows:
        if row["status"] not in wanted:
            continue
        ref, content = fields.text(row["ref"]), fields.text(row["content"])
        if ref is None or content is None:
            problems.add(state, "proposal-unreadable", f"proposal {row.get('id')}", "proposal left out")
            continue
        merged = _proposed(reduced(ref), content, row.get("frontmatter_json"), state, problems)
        sources = {reduced(xref) for xref in merged.xrefs} - {merged.ref}
        into = [assets[source] for source in sorted(sources) if source in assets]
        if into:
            merges.append(check_merge(merged, into, min_retention))
    return FloorReport(tuple(merges), ())


def _proposed(ref: str, content: str, matter: object, state: Path, problems: Problems) -> BundleAsset:
    """A proposal's asset: frontmatter in its text wins over the column beside it."""
    own, body = split_matter(content)
    beside = fields.document(matter, state, f"proposal of {ref}", problems)
    return asset_of(ref, {**beside, **(own or {})}, body)
