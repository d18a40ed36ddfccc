"""Write a comparison with everything it follows from as one archive."""

import hashlib
import json
import platform
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import akm_harbor
from akm_harbor.ab import archive
from akm_harbor.ab.analysis import analyse
from akm_harbor.ab.archive_rows import rows_of, write_rows
from akm_harbor.ab.archive_secrets import Cleaner, leaks_in_table, leaks_in_text
from akm_harbor.ab.differences import differences
from akm_harbor.ab.page import render_page
from akm_harbor.ab.result import AbResult, Options
from akm_harbor.ab.run import as_dataset, parse_options, read_task_names, verdict_document
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.report.text import visible
from akm_harbor.report.verdict import to_plain

LIBRARIES = ("matplotlib", "numpy", "pandas", "pyarrow", "scipy", "statsmodels")


@dataclass(frozen=True, slots=True)
class Exported:
    """An archive that was written.

    Attributes:
        sha256: of the archive; publish it beside the result.
        n_redacted: cells and texts in which something secret was found and taken out.
        n_renamed: cells and texts in which a path of this machine was shortened.
    """

    archive: Path
    sha256: str
    result: AbResult
    n_attempts: int
    n_redacted: int
    n_renamed: int
    n_bytes: int

    def summary(self) -> str:
        """The result as lines for a terminal."""
        from akm_harbor.ab.run import summary

        taken = (
            f"{self.n_redacted} places held a secret and {self.n_renamed} a path of this machine; both were taken out"
            if self.n_redacted or self.n_renamed
            else "no secret and no path of this machine was found in them"
        )
        return "\n".join(
            [
                summary(self.result).splitlines()[0],
                f"{self.n_attempts} attempts; {taken}.",
                f"archive: {self.archive} ({self.n_bytes:,} bytes)",
                f"sha256: {self.sha256}",
                f"check it: akm-harbor ab verify {shlex.quote(str(self.archive))}",
            ]
        )


def export(
    inputs: Sequence[Path],
    baseline: str,
    treatment: str,
    out: Path,
    *,
    options: Mapping[str, Any] | None = None,
    task_names: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write rows, manifest, page and verdict of a comparison as one archive without secrets.

    The page and the verdict are made from the rows that go into the archive, after cleaning; they are compared
    with what the whole dataset gives, so that leaving out other arms' rows has changed nothing.

    Args:
        inputs: a dataset, or job directories.
        baseline: the baseline's name.
        treatment: the treatment's name.
        out: the archive to write.
        options: as for `report`.
        task_names: a JSON file of task name to the name to pair it by.
        progress: called with (trials read, trials to read) while job directories are collected.

    Raises:
        UsageError: a name or option that does not exist, or an output that is not a .zip file.
        NotComparableError: arms without attempts or without a shared task.
        AkmHarborError: a secret that cannot be taken out, or an output that cannot be written.
    """
    if out.suffix != ".zip" or out.is_dir():
        raise UsageError("the archive must be a .zip file", path=out, hint="Example: -o control-vs-akm.zip")
    parsed = parse_options(options or {})
    names = read_task_names(task_names)
    with tempfile.TemporaryDirectory(prefix="akm-harbor-") as folder:
        work = Path(folder)
        dataset = as_dataset(inputs, work, progress)
        whole = analyse(dataset, baseline, treatment, parsed, names)
        rows = rows_of(dataset, parsed.by, (baseline, treatment), [p.arm for p in whole.placebos])
        _refuse_leaks(out, [w for table, content in rows.tables.items() for w in leaks_in_table(table.name, content)])
        kept = write_rows(rows, work / "kept" / archive.DATASET)
        result = analyse(kept, baseline, treatment, parsed, names)
        _check_same(whole, result, rows.cleaner)
        members = _members(kept, result, parsed, names, rows.cleaner)
    texts = {name: data.decode() for name, data in members.items() if not name.endswith(".parquet")}
    _refuse_leaks(out, [w for name, text in texts.items() for w in leaks_in_text(name, text)])
    try:
        sha256 = archive.pack(out, members)
    except OSError as error:
        raise AkmHarborError(
            f"cannot be written ({error.strerror or error})",
            path=out,
            hint="Choose a place that may be written and has room.",
        ) from error
    n = result.baseline.n_attempts + result.treatment.n_attempts
    return Exported(out, sha256, result, n, rows.cleaner.n_redacted, rows.cleaner.n_renamed, out.stat().st_size)


def _refuse_leaks(out: Path, leaks: Sequence[str]) -> None:
    """Nothing is written while something secret is in it.

    Raises:
        AkmHarborError: where it is; not what it is.
    """
    if leaks:
        more = f" and {len(leaks) - 5} more places" if len(leaks) > 5 else ""
        raise AkmHarborError(
            f"something that looks like a secret is in {'; '.join(leaks[:5])}{more}",
            path=out,
            hint="It stands where it cannot be taken out (a name, say). Nothing was written.",
        )


def _check_same(whole: AbResult, kept: AbResult, cleaner: Cleaner) -> None:
    """The archive's rows give what the dataset gives.

    Raises:
        AkmHarborError: a number differs.
    """
    expected, given = (verdict_document(r) for r in (whole, kept))
    for document in (expected, given):
        del document["manifest"]
    found = next(differences("", Cleaner(cleaner.replacements).value(expected), to_plain(given)), None)
    if found is None and len(whole.problems) != len(kept.problems):
        raise AkmHarborError("the archive's rows lost a problem", hint="Please report this.")
    if found is not None:
        raise AkmHarborError(
            f"the archive's rows give another {found.name}: {found.derived} instead of {found.published}",
            hint="Please report this; nothing was written.",
        )


def _members(
    dataset: Path, result: AbResult, options: Options, names: Mapping[str, str], cleaner: Cleaner
) -> dict[str, bytes]:
    members = {
        archive.README: readme(result.title).encode(),
        archive.PAGE: render_page(result).encode(),
        archive.VERDICT: encoded(verdict_document(result)),
    }
    for file in sorted(dataset.rglob("*")):
        if file.is_file():
            members[f"{archive.DATASET}/{file.relative_to(dataset).as_posix()}"] = file.read_bytes()
    contents = {
        "schema": archive.SCHEMA,
        "made_with": made_with(),
        "comparison": {
            "baseline": result.baseline.name,
            "treatment": result.treatment.name,
            "options": to_plain(options),
            "task_names": dict(sorted(names.items())),
        },
        "taken_out": {"secrets": cleaner.n_redacted, "paths": cleaner.n_renamed},
        "members": {
            name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
            for name, data in sorted(members.items())
        },
    }
    members[archive.CONTENTS] = encoded(contents)
    return members


def readme(title: str) -> str:
    """What someone reads who unpacks the archive by hand."""
    return _README.format(version=akm_harbor.__version__, title=visible(title))


def encoded(document: Any) -> bytes:
    """Strict, indented JSON."""
    return (json.dumps(to_plain(document), indent=2, allow_nan=False, ensure_ascii=False) + "\n").encode()


def made_with() -> dict[str, str]:
    """The versions that page and numbers depend on."""
    return {
        "akm_harbor": akm_harbor.__version__,
        "code": code_digest(),
        "python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


@cache
def code_digest() -> str:
    """A digest of the package's own modules and templates: the same version number is not the same code."""
    package = Path(akm_harbor.__file__).parent
    digest = hashlib.sha256()
    for room in ("ab", "report", "stats", "tables", "trials"):
        for file in sorted((package / room).rglob("*")):
            if file.suffix in {".py", ".j2", ".css"}:
                digest.update(f"{file.relative_to(package).as_posix()}\0".encode())
                digest.update(file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return f"sha256:{digest.hexdigest()}"


_README = """{title}: an A/B comparison of two arms of a coding agent, with its evidence.

report.html     the report; one file that loads nothing
verdict.json    its numbers
dataset/        the rows they follow from (Parquet), and the manifest
contents.json   what was compared, with which versions, and a sha256 of every file

To make every number again from the rows and see that they agree:

    pip install akm-harbor=={version}
    akm-harbor ab verify THIS-FILE.zip

This shows that the numbers follow from the rows. That the rows are the runs' own, nobody can see from the rows.
"""
