"""What this akm can do, found by trying it on a small store: no version and no `--help` is believed."""

import re
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.backends.akm_cli import AkmCli, AkmExitError, AkmOutputError
from akm_harbor.tables.sqlite import open_readonly

SEARCH, CURATE = "search", "curate"
_FLAGS = (("--shape", "agent"), ("--no-track-usage",), ("--no-project-context",))
_WORDS = ("zephyrine", "quillwort", "marzipan", "obelisk")  # one each: name, description, tag, body
_STORE = {
    "probeone": (
        f'---\ntype: memory\ndescription: "the {_WORDS[1]} of the mill"\ntags: ["{_WORDS[2]}"]\n---\n\n{_WORDS[3]}\n'
    ),
    "probetwo": '---\ntype: memory\ndescription: "a second note about ferries"\n---\n\nferries\n',
}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What was found, and recorded with every number.

    Attributes:
        search_flags: flags that `search` accepts, of those that keep a query from leaving traces.
        curate_flags: the same for `curate`; None: there is no such command.
        body_searched: a word that stands in the body alone is found.
        any_word: a query is met by documents that hold some of its words (else all are needed).
        usage_untracked: scored queries leave no usage rows; None: there is no event store to look at.
    """

    search_flags: tuple[str, ...]
    curate_flags: tuple[str, ...] | None
    body_searched: bool
    any_word: bool
    usage_untracked: bool | None

    def as_settings(self) -> dict[str, Any]:
        """The capabilities as plain values."""
        return asdict(self)


@cache
def find_capabilities(executable: Path) -> Capabilities:
    """Try an akm out on a store of its own; done once a process and program.

    Raises:
        AkmError: it cannot even store and find two notes.
    """
    with tempfile.TemporaryDirectory(prefix="akm-harbor-trial-") as work:
        return _try_out(AkmCli(executable, Path(work) / "store"))


def _try_out(cli: AkmCli) -> Capabilities:
    cli.create()
    for name, content in _STORE.items():
        (cli.bundle / "memories" / f"{name}.md").write_text(content)
    cli.call("index")
    search = _accepted(cli, SEARCH)
    curate = _accepted(cli, CURATE)
    if search is None:
        raise AkmOutputError("`akm search` gives no hits as JSON", path=cli.executable)
    before = _usage_rows(cli)
    body = bool(hits(cli, SEARCH, search, _WORDS[3], 5))
    partial = bool(hits(cli, SEARCH, search, f"{_WORDS[1]} {_WORDS[0]}", 5))
    if curate is not None:
        hits(cli, CURATE, curate, _WORDS[1], 5)
    after = _usage_rows(cli)
    untracked = None if before is None or after is None else after == before
    return Capabilities(search, curate, body, partial, untracked)


def _accepted(cli: AkmCli, command: str) -> tuple[str, ...] | None:
    """The flags this command takes; None where the command itself does not work."""
    flags: tuple[str, ...] = ()
    for flag in _FLAGS:
        if _works(cli, command, flags + flag):
            flags += flag
    return flags if _works(cli, command, flags) else None


def _works(cli: AkmCli, command: str, flags: tuple[str, ...]) -> bool:
    """A flag counts as taken when the known note is still found with it."""
    try:
        found = hits(cli, command, flags, _WORDS[1], 5)
    except (AkmExitError, AkmOutputError):
        return False
    return any(name == "probeone" for name, _ in found)


def _usage_rows(cli: AkmCli) -> int | None:
    try:
        with open_readonly(cli.state_db, tables=("usage_events",)) as connection:
            return int(connection.execute("SELECT count(*) FROM usage_events").fetchone()[0])
    except AkmHarborError:
        return None


def hits(cli: AkmCli, command: str, flags: tuple[str, ...], query: str, limit: int) -> list[tuple[str, float]]:
    """(document name, score) of a query, best first; a document's fragments count once.

    The name is the last part of the hit's reference, `bundle//` and `#fragment` cut off. A hit
    without a score gets 1 / rank, so that it is tied with none.

    Raises:
        AkmError: the call failed, or a hit carries neither a reference nor a path.
    """
    reply = cli.call(command, "--limit", str(limit), *flags, "--", query)
    listed = reply.data.get("hits", reply.data.get("items"))
    if not isinstance(listed, list):
        raise AkmOutputError(f"`akm {command}` printed no list of hits: {sorted(reply.data)}")
    found: dict[str, float] = {}
    for rank, hit in enumerate(listed, start=1):
        if not isinstance(hit, dict):
            raise AkmOutputError(f"`akm {command}` printed a hit that is no object")
        score = hit.get("score")
        number = float(score) if isinstance(score, int | float) else 1 / rank
        found.setdefault(_name(hit, command), number)
    return list(found.items())


_TAIL = re.compile(r"[^/]+$")


def _name(hit: Mapping[str, Any], command: str) -> str:
    reference = hit.get("ref") or hit.get("path") or hit.get("id")
    if not isinstance(reference, str):
        raise AkmOutputError(f"`akm {command}` printed a hit without a reference: {sorted(hit)}")
    tail = _TAIL.search(reference.partition("#")[0])
    return tail[0].removesuffix(".md") if tail else reference
