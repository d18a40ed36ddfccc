"""Files and keyword search, as a coding agent does it: one file a document, and the real grep."""

import re
import shutil
import subprocess
from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import ClassVar

from akm_harbor.memory import text
from akm_harbor.memory.protocol import BackendError, Description, Document, Hit, Ingested, Query

_TIMEOUT_S = 60
_LINE = re.compile(r"(.+?)\.md:(.*)")


@cache
def _grep() -> tuple[str, str]:
    """(path, version) of the grep on this machine."""
    path = shutil.which("grep")
    if path is None:
        raise BackendError("there is no grep on this machine", hint="Leave the grep arm out, or install grep.")
    done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    return path, (done.stdout or "unknown").splitlines()[0]


class Grep:
    """Ranks files by how many distinct question words `grep -riowF` finds in them, then by how many times."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def __init__(self, work: Path) -> None:
        """Keep the files below `work`.

        Raises:
            BackendError: there is no grep.
        """
        self._path, self._version = _grep()
        self._folder = work / "files"
        self._tie: dict[str, str] = {}
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        shutil.rmtree(self._folder, ignore_errors=True)
        self._folder.mkdir(parents=True)
        self._tie = {}

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Write one file a document."""
        for document in documents:
            (self._folder / f"{document.name}.md").write_text(document.text)
            self._tie[document.name] = document.tie_break
        return Ingested(len(documents), sum(len(document.text.encode()) for document in documents))

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k files; ties go by the documents' places.

        Raises:
            BackendError: grep failed.
        """
        words = text.keywords(query.text) or list(dict.fromkeys(text.tokens(query.text)))
        if not words or not self._tie:
            return []
        patterns = [part for word in words for part in ("-e", word)]
        command = [self._path, "-r", "-i", "-o", "-w", "-F", *patterns, "--", "."]
        try:
            done = subprocess.run(
                command,
                cwd=self._folder,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                env={"LC_ALL": "C.UTF-8"},
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise BackendError(f"grep could not be run ({error})", path=self._path) from error
        if done.returncode > 1:
            raise BackendError(f"grep ended with exit code {done.returncode}: {done.stderr[-200:]}")
        found: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for line in done.stdout.splitlines():
            if match := _LINE.match(line.removeprefix("./")):
                found[match[1]][match[2].lower()] += 1
        ranked = sorted(found, key=lambda name: (-len(found[name]), -found[name].total(), self._tie[name]))
        # Distinct words decide; the count only parts those that are level, so it stays below 1.
        return [Hit(name, len(found[name]) + 1 - 1 / (1 + found[name].total())) for name in ranked[:k]]

    def describe(self) -> Description:
        """Name, version and settings."""
        settings = {"flags": "-riowF", "words": text.STOPWORDS_ID, "rank": "distinct words, then matches"}
        return Description("grep", self._version, settings=settings)
