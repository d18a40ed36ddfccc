"""akm as a memory layer, through its command line, from 0.9.0 up.

Bulk files and one `akm index`, whose count is asserted: an akm without SQLite answers `ok` with
exit 0 and has stored nothing. Names are opaque. Queries leave no usage rows, so that one
question's search cannot move another's ranking.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from akm_harbor.errors import UsageError
from akm_harbor.memory.backends import akm_documents
from akm_harbor.memory.backends.akm_capabilities import CURATE, SEARCH, find_capabilities, hits
from akm_harbor.memory.backends.akm_cli import AkmCli, AkmIndexError, AkmNoSqliteError, AkmSelfCheckError
from akm_harbor.memory.protocol import ContaminationError, Description, Document, Hit, Ingested, Query
from akm_harbor.memory.text import STOPWORDS_ID

COMMANDS = (SEARCH, CURATE)


class Akm:
    """One akm store, made anew for every history."""

    uses_gold: ClassVar[bool] = False
    ranks: ClassVar[bool] = True

    def __init__(
        self,
        executable: Path,
        work: Path,
        *,
        command: str = CURATE,
        synthesis: str = akm_documents.LEAD,
        body_opening: bool = False,
    ) -> None:
        """Try the program out and fix how it is used.

        Args:
            executable: an akm.
            work: a folder of its own.
            command: `search` or `curate`.
            synthesis: how descriptions are made: `off`, `lead` or `keywords`.
            body_opening: let akm index the opening of the body (`index.indexBodyOpening`).

        Raises:
            UsageError: a command or synthesis that does not exist here or in this akm.
            AkmError: the program does not work.
        """
        if command not in COMMANDS:
            raise UsageError(f"akm has no command {command!r} to query with", hint="One of: search, curate.")
        if synthesis not in akm_documents.SYNTHESES:
            raise UsageError(
                f"no description synthesis {synthesis!r}", hint=f"One of: {', '.join(akm_documents.SYNTHESES)}."
            )
        settings: Mapping[str, Any] = {"index": {"indexBodyOpening": True}} if body_opening else {}
        self._cli = AkmCli(executable, work, settings)
        self._capabilities = find_capabilities(self._cli.executable)
        flags = self._capabilities.search_flags if command == SEARCH else self._capabilities.curate_flags
        if flags is None:
            raise UsageError("this akm has no `curate`", hint="Use akm:command=search.")
        self._command, self._flags = command, flags
        self._synthesis = synthesis
        self._body_opening = body_opening
        self._names: frozenset[str] = frozenset()

    def reset(self) -> None:
        """Make an empty store."""
        self._cli.create()
        self._names = frozenset()

    def ingest(self, documents: Sequence[Document]) -> Ingested:
        """Write the files, index once, and check that akm counts as many as were written.

        Raises:
            AkmNoSqliteError: nothing was stored although akm said `ok`.
            AkmIndexError: the index holds more or fewer entries.
            AkmSelfCheckError: a document that was indexed is not found by its name.
        """
        self._names = frozenset(document.name for document in documents)
        folder = self._cli.bundle / "memories"
        for name, content in akm_documents.files(documents, self._synthesis).items():
            (folder / f"{name}.md").write_text(content, encoding="utf-8")
        if not documents:
            return Ingested(0, 0)
        reply = self._cli.call("index")
        counted = _entries(reply.data)
        if counted != len(self._names):
            raise self._wrong_count(counted)
        first = min(documents, key=lambda document: document.order).name
        if first not in dict(hits(self._cli, SEARCH, self._capabilities.search_flags, first, 5)):
            raise AkmSelfCheckError(
                f"counts {counted} entries but does not find {first} by its name",
                path=self._cli.executable,
                hint="Its search reads another index than `akm index` writes: an old index, or another store.",
            )
        return Ingested(counted, self._cli.index_bytes())

    def _wrong_count(self, counted: int | None) -> AkmIndexError | AkmNoSqliteError:
        wanted = len(self._names)
        if counted in (None, 0) and not self._cli.state_db.exists():
            return AkmNoSqliteError(
                "said `ok` with exit 0 and stored nothing: there is no state.db",
                path=self._cli.executable,
                hint="Its SQLite does not work. Run it under Bun, or compile better-sqlite3.",
            )
        if counted is None:
            return AkmIndexError("`akm index` tells no number of entries", path=self._cli.executable)
        why = "an old or foreign index" if counted > wanted else "an index that was not brought up to date"
        return AkmIndexError(
            f"`akm index` counts {counted} entries where {wanted} documents were written: {why}",
            path=self._cli.executable,
        )

    def search(self, query: Query, k: int) -> list[Hit]:
        """The best k documents in akm's order.

        Raises:
            ContaminationError: a hit that was never stored here.
            AkmError: the call failed.
        """
        # An empty query lists everything and a trailing slash browses: neither is a search.
        text = query.text.strip().rstrip("/").strip()
        if not text or not self._names:
            return []
        found = hits(self._cli, self._command, self._flags, text, k)
        foreign = [name for name, _ in found if name not in self._names]
        if foreign:
            raise ContaminationError(
                f"akm returned {foreign[0]!r}, which was never stored in this history",
                path=self._cli.executable,
                hint="Something else is in the store; the numbers of this run are not to be used.",
            )
        return [Hit(name, score) for name, score in found[:k]]

    def describe(self) -> Description:
        """Name, version, digest and every setting, with the capabilities that were found."""
        settings = {
            "command": self._command,
            "synthesis": self._synthesis,
            "body_opening": self._body_opening,
            "words": STOPWORDS_ID,
            "semantic": "off",
            "flags": list(self._flags),
            **self._capabilities.as_settings(),
        }
        return Description("akm", self._cli.version(), self._cli.build_sha(), settings)


def _entries(data: Mapping[str, Any]) -> int | None:
    """The count that `akm index` reports: at the top, or in its verification."""
    inner = data.get("verification")
    nested = inner.get("entryCount") if isinstance(inner, Mapping) else None
    for value in (data.get("totalEntries"), nested):
        if isinstance(value, int) and not isinstance(value, bool):
            return value
    return None
