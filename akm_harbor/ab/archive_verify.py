"""Make every published number of an archive again from its rows, and name those that differ."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from akm_harbor.ab import archive
from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.archive import Opened, read_json
from akm_harbor.ab.archive_rows import derived
from akm_harbor.ab.differences import ABSENT, Difference, differences, leaves
from akm_harbor.ab.export import LIBRARIES, made_with, readme
from akm_harbor.ab.page import render_page
from akm_harbor.ab.page_text import page_differences, printed
from akm_harbor.ab.result import AbResult
from akm_harbor.ab.run import parse_options, verdict_document
from akm_harbor.errors import AkmHarborError
from akm_harbor.report.text import visible
from akm_harbor.report.verdict import to_plain
from akm_harbor.tables import PROBLEMS, read_manifest, read_table
from akm_harbor.trials.columns import TRIALS

Outcome = Literal["agrees", "differs", "unchecked"]
_LISTED = 40
_BROKEN = (
    AkmHarborError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    pa.ArrowException,
)
"""What altered rows can make an analysis run into; none of it is this program's fault."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a check of an archive found.

    Attributes:
        outcome: agrees, differs, or unchecked (nothing differs, but another version wrote the page).
        differences: what was published otherwise than the rows give it.
        notes: what could not be checked, and why.
        n_numbers: numbers of the verdict that were made again.
        n_lines: lines of the page that were made again.
        n_attempts: rows of both arms.
    """

    archive: Path
    sha256: str
    outcome: Outcome
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    made_with: dict[str, Any]
    checked_with: dict[str, Any]
    n_numbers: int
    n_lines: int
    n_attempts: int

    @property
    def exit_code(self) -> int:
        """0 agrees, 3 differs, 4 unchecked in part."""
        return {"agrees": 0, "differs": 3, "unchecked": 4}[self.outcome]

    def text(self) -> str:
        """The result as lines for a terminal."""
        first = {
            "agrees": f"Agrees: {self.n_numbers:,} numbers and {self.n_lines:,} lines of the page follow from the rows "
            f"of {self.n_attempts:,} attempts.",
            "differs": f"Differs: {len(self.differences):,} published values do not follow from the rows.",
            "unchecked": "Nothing differs, but not everything could be checked.",
        }[self.outcome]
        told = [_sentence(d) for d in sorted(self.differences, key=_weight)[:_LISTED]]
        if len(self.differences) > _LISTED:
            told.append(f"… and {len(self.differences) - _LISTED:,} more (all of them with --json FILE)")
        told += [f"note: {n}" for n in self.notes[:_LISTED]]
        # what an archive says goes to a terminal: without its control characters
        lines = [first, *(f"  {visible(line)}" for line in told), f"sha256 of the archive: {self.sha256}"]
        return "\n".join(lines)


def _weight(difference: Difference) -> int:
    """Files first, then what most readers read."""
    if difference.where == archive.CONTENTS:
        return 0
    return 1 if difference.name.startswith(("headline.", "outcome", "exit_code")) else 2


def _sentence(d: Difference) -> str:
    if d.where == archive.CONTENTS:
        return f"{d.name}: listed {d.published[:16]}…, is {d.derived[:16]}…"
    return f"{d.where}: {d.name}: published {d.published}, the rows give {d.derived}"


def verify(path: Path, *, step: Callable[[str], None] | None = None) -> Verified:
    """Check an archive.

    Args:
        path: the archive.
        step: told what is being done.

    Raises:
        AkmHarborError: not an archive that can be opened safely, or of another format.
    """
    say = step or (lambda _step: None)
    with tempfile.TemporaryDirectory(prefix="akm-harbor-verify-") as folder:
        say("unpacking")
        opened = archive.unpack(path, Path(folder))
        found = list(_digests(opened))
        say("making the numbers again")
        result = _analysed(opened)
        if isinstance(result, Difference):
            return _verified(path, opened, [*found, result])
        verdict = read_json(opened.folder / archive.VERDICT, path, archive.VERDICT)
        notes: list[str] = []
        found += _verdict(opened, verdict, result, notes)
        found += _manifest(opened)
        say("making the page again")
        lines, different = _page(opened, result, notes)
        found += [*different, *_readme(opened, result)]
        return _verified(path, opened, found, notes=notes, result=result, n_lines=lines)


def _verified(
    path: Path,
    opened: Opened,
    found: list[Difference],
    *,
    notes: Sequence[str] = (),
    result: AbResult | None = None,
    n_lines: int = 0,
) -> Verified:
    outcome: Outcome = "differs" if found else "unchecked" if notes else "agrees"
    return Verified(
        path,
        opened.sha256,
        outcome,
        tuple(found),
        tuple(notes),
        opened.contents["made_with"],
        made_with(),
        leaves(to_plain(verdict_document(result))) if result else 0,
        n_lines,
        result.baseline.n_attempts + result.treatment.n_attempts if result else 0,
    )


def _digests(opened: Opened) -> Iterator[Difference]:
    """Files that are not the ones that were listed when the archive was made."""
    listed = opened.contents["members"]
    for name in sorted({*listed, *opened.digests} - {archive.CONTENTS}):
        published, given = listed.get(name, {}).get("sha256", ABSENT), opened.digests.get(name, ABSENT)
        if published != given:
            yield Difference(archive.CONTENTS, f"sha256 of {name}", str(published)[:80], given)


def _analysed(opened: Opened) -> AbResult | Difference:
    """The comparison made again from the rows; a difference where the rows no longer give one."""
    asked = opened.contents["comparison"]
    try:
        names = {str(k): str(v) for k, v in asked.get("task_names", {}).items()}
        arms = (str(asked.get("baseline")), str(asked.get("treatment")))
        return analyse(opened.folder / archive.DATASET, *arms, parse_options(asked.get("options", {})), names)
    except _BROKEN as error:
        told = error.message if isinstance(error, AkmHarborError) else f"{type(error).__name__}: {error}"
        return Difference(archive.DATASET, "the comparison", "made", f"not to be made again ({told[:300]})")


def _same_code(opened: Opened) -> bool:
    return bool(opened.contents["made_with"].get("code") == made_with()["code"])


def _verdict(opened: Opened, published: dict[str, Any], result: AbResult, notes: list[str]) -> list[Difference]:
    """Differences of the verdict; what only another version of it knows or lacks is a note."""
    again = to_plain(verdict_document(result))
    found = list(differences(archive.VERDICT, published, again))
    if _same_code(opened):
        return found
    other = [d for d in found if ABSENT in {d.published, d.derived} or d.name in {"package_version", "schema"}]
    notes += [f"{d.where}: {d.name} is another version's: published {d.published}, here {d.derived}" for d in other]
    return [d for d in found if d not in other]


def _manifest(opened: Opened) -> Iterator[Difference]:
    """Counts and digests of the manifest that do not follow from the rows."""
    dataset = opened.folder / archive.DATASET
    try:
        manifest = read_manifest(dataset)
        again = derived(manifest, read_table(dataset, TRIALS), read_table(dataset, PROBLEMS))
        published = {name: manifest.get(name) for name in again}
        yield from differences(archive.DATASET_MANIFEST, published, again)
    except _BROKEN as error:
        yield Difference(archive.DATASET_MANIFEST, "its counts", "made", f"not to be made again ({error})"[:300])


def _readme(opened: Opened, result: AbResult) -> Iterator[Difference]:
    """The file that tells people what to install must be ours."""
    file = opened.folder / archive.README
    given = file.read_bytes().decode("utf-8", "replace") if file.is_file() else ABSENT
    if _same_code(opened) and given != (expected := readme(result.title)):
        yield Difference(archive.README, "its text", given[:120], expected[:120])


def _page(opened: Opened, result: AbResult, notes: list[str]) -> tuple[int, list[Difference]]:
    """Differences of the page, and how many lines it prints.

    Another version words and draws things differently: then only a page that is the same can be vouched for.
    """
    published = (opened.folder / archive.PAGE).read_bytes().decode("utf-8", "replace")
    again = render_page(result)
    n_lines = len(printed(again))
    if published == again:
        return n_lines, []
    found = list(page_differences(archive.PAGE, published, again))
    made, mine = opened.contents["made_with"], made_with()
    if not _same_code(opened):
        notes.append(
            f"{archive.PAGE} was written by akm-harbor {made.get('akm_harbor')}, code {str(made.get('code'))[7:19]}; "
            f"this is {mine['akm_harbor']}, code {mine['code'][7:19]}, whose page differs in {len(found)} lines. "
            "To check its words and figures, install the version that wrote it."
        )
        return 0, []
    if not found:
        changed = [n for n in LIBRARIES if made.get(n) != mine[n]]
        if changed:
            notes.append(f"{archive.PAGE}: figures were not compared, for {', '.join(changed)} differ in version.")
            return n_lines, []
        line = next((i for i, (a, b) in enumerate(zip(published, again, strict=False)) if a != b), len(again))
        row = again.count("\n", 0, line) + 1
        what = f"markup or a figure, line {row}"
        return n_lines, [Difference(archive.PAGE, what, published[line : line + 60], again[line : line + 60])]
    return n_lines, found
