"""The akm backend against a double that can be broken, and against a real akm where one is named."""

import json
import os
from pathlib import Path

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.memory.backends import akm_cli
from akm_harbor.memory.backends.akm import Akm
from akm_harbor.memory.backends.akm_capabilities import find_capabilities
from akm_harbor.memory.documents import opaque_name
from akm_harbor.memory.protocol import ContaminationError, Document, Query
from akm_harbor.tables.sqlite import open_readonly
from tests.memory.backends.akm_double import install

DOCUMENTS = [
    Document(opaque_name("t", 0), "The red boat lies at the north pier. It leaks.", "1"),
    Document(opaque_name("t", 1), 'Green tea: "no sugar", please\n---\nand a # hash, a: colon, an é.', "2"),
    Document(opaque_name("t", 2), "Our choir rehearses a requiem.", "3"),
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An executable double that works, tried out once: its capabilities are cached by its path."""
    program = install(tmp_path_factory.mktemp("akm"))
    find_capabilities(program)
    return program


@pytest.fixture
def double(whole):
    """The same double, whole again, with an empty log of calls."""
    (whole.parent / "mode").write_text("ok")
    (whole.parent / "calls.jsonl").write_text("")
    return whole


def make(program, tmp_path, mode="ok", **settings):
    backend = Akm(program, tmp_path / "store", **{"command": "search", **settings})
    (program.parent / "mode").write_text(mode)  # broken only now: it worked when it was tried out
    backend.reset()
    return backend


def calls(program):
    return [json.loads(line) for line in (program.parent / "calls.jsonl").read_text().splitlines()]


def names(hits):
    return [hit.name for hit in hits]


def test_documents_are_written_indexed_once_and_counted(double, tmp_path):
    backend = make(double, tmp_path)
    before = len(calls(double))
    done = backend.ingest(DOCUMENTS)
    assert done.docs == 3
    assert done.index_bytes > 0
    new = [call["args"][0] for call in calls(double)[before:]]
    assert new == ["index", "search"]  # one index run, one self-check
    assert names(backend.search(Query("red boat"), 5)) == [DOCUMENTS[0].name]
    assert backend.search(Query("zeppelin"), 5) == []


def test_the_environment_is_hermetic(double, tmp_path, monkeypatch):
    monkeypatch.setenv("AKM_STASH_DIR", "/somebody/elses")
    monkeypatch.setenv("AKM_EMBED_API_KEY", "secret")
    monkeypatch.setenv("XDG_CONFIG_HOME", "/somebody/elses")
    make(double, tmp_path).ingest(DOCUMENTS)
    for call in calls(double):
        environment = call["env"]
        assert environment["AKM_EVENT_SOURCE"] == "audit"
        assert not {"AKM_STASH_DIR", "AKM_EMBED_API_KEY", "XDG_CONFIG_HOME"} & environment.keys()
        for name in ("HOME", "AKM_DATA_DIR", "AKM_CONFIG_DIR", "AKM_CACHE_DIR", "AKM_STATE_DIR", "AKM_BUNDLE_DIR"):
            assert not environment[name].startswith(str(Path.home()) + "/.")
        assert call["cwd"] == environment["HOME"]


def test_queries_leave_no_usage_rows(double, tmp_path):
    backend = make(double, tmp_path)
    backend.ingest(DOCUMENTS)
    backend.search(Query("boat"), 5)
    with open_readonly(tmp_path / "store" / "data" / "state.db") as state:
        assert state.execute("SELECT count(*) FROM usage_events").fetchone() == (0,)
    assert backend.describe().settings["usage_untracked"] is True


@pytest.mark.parametrize(
    ("mode", "error", "said"),
    [
        ("exit-1", akm_cli.AkmExitError, "exit code 1: the index is locked"),
        ("prose", akm_cli.AkmOutputError, "printed no JSON"),
        ("no-sqlite", akm_cli.AkmNoSqliteError, "has no working SQLite"),
    ],
)
def test_a_broken_akm_is_named_before_any_work(tmp_path, mode, error, said):
    with pytest.raises(error, match=said):
        Akm(install(tmp_path / "bin", mode), tmp_path / "store")


@pytest.mark.parametrize(
    ("mode", "error", "said"),
    [
        ("silent", akm_cli.AkmNoSqliteError, "stored nothing"),
        ("stale", akm_cli.AkmIndexError, "counts 2 entries where 3 documents were written: an index that was not"),
        ("foreign-index", akm_cli.AkmIndexError, "counts 4 entries where 3 .* an old or foreign index"),
        ("unsearchable", akm_cli.AkmSelfCheckError, "does not find .* an old index|does not find"),
        ("no-count", akm_cli.AkmIndexError, "tells no number"),
    ],
)
def test_exit_0_with_nothing_indexed_is_found_and_named(double, tmp_path, mode, error, said):
    backend = make(double, tmp_path, mode)
    with pytest.raises(error, match=said):
        backend.ingest(DOCUMENTS)


def test_a_foreign_hit_is_contamination(double, tmp_path):
    backend = make(double, tmp_path, "contaminated")
    backend.ingest(DOCUMENTS)
    with pytest.raises(ContaminationError, match="'stranger', which was never stored"):
        backend.search(Query("boat"), 5)


def test_a_busy_store_is_asked_again(double, tmp_path, monkeypatch):
    monkeypatch.setattr(akm_cli.time, "sleep", lambda _: None)
    backend = make(double, tmp_path, "busy")
    assert backend.ingest(DOCUMENTS).docs == 3


def test_capabilities_are_found_by_trying(tmp_path):
    plain = find_capabilities(install(tmp_path / "a"))
    assert plain.search_flags == ("--shape", "agent", "--no-track-usage", "--no-project-context")
    assert (plain.body_searched, plain.any_word, plain.usage_untracked) == (False, False, True)
    assert find_capabilities(install(tmp_path / "b", "body")).body_searched
    assert find_capabilities(install(tmp_path / "c", "no-curate")).curate_flags is None
    old = find_capabilities(install(tmp_path / "d", "no-flags"))
    assert (old.search_flags, old.usage_untracked) == ((), False)


def test_fragments_of_a_document_are_one_hit(double, tmp_path):
    backend = make(double, tmp_path, "fragments")
    backend.ingest(DOCUMENTS)
    assert names(backend.search(Query("boat"), 5)) == [DOCUMENTS[0].name]


def test_curate_is_used_when_asked_for_and_refused_when_absent(double, tmp_path):
    backend = make(double, tmp_path, command="curate")
    backend.ingest(DOCUMENTS)
    assert names(backend.search(Query("Where is the red boat now?"), 5))[:1] == [DOCUMENTS[0].name]
    with pytest.raises(UsageError, match="no `curate`"):
        Akm(install(tmp_path / "bin", "no-curate"), tmp_path / "store")


def test_queries_that_would_list_or_browse_are_not_sent(double, tmp_path):
    backend = make(double, tmp_path)
    backend.ingest(DOCUMENTS)
    before = len(calls(double))
    assert backend.search(Query("  / "), 5) == []
    assert len(calls(double)) == before
    backend.search(Query("boat/"), 5)
    backend.search(Query("--help"), 5)
    assert [call["args"][-2:] for call in calls(double)[before:]] == [["--", "boat"], ["--", "--help"]]


def test_every_setting_is_described(double, tmp_path):
    described = make(double, tmp_path, synthesis="keywords", body_opening=True).describe()
    assert (described.name, described.version) == ("akm", "0.0.0-double")
    assert len(described.build_sha) == 64
    assert described.settings["synthesis"] == "keywords"
    assert described.settings["body_opening"] is True
    config = json.loads((tmp_path / "store" / "config" / "config.json").read_text())
    assert config["index"] == {"indexBodyOpening": True}
    assert config["registries"] == []
    assert config["semanticSearchMode"] == "off"


def test_what_does_not_exist_is_refused(double, tmp_path):
    with pytest.raises(UsageError, match="no command 'ask'"):
        make(double, tmp_path, command="ask")
    with pytest.raises(UsageError, match="no description synthesis"):
        make(double, tmp_path, synthesis="llm")
    with pytest.raises(akm_cli.AkmMissingError, match="no such program"):
        Akm(tmp_path / "gone", tmp_path / "w")


def test_a_reset_forgets_everything(double, tmp_path):
    backend = make(double, tmp_path)
    backend.ingest(DOCUMENTS)
    backend.reset()
    assert backend.ingest(DOCUMENTS[:1]).docs == 1
    assert backend.search(Query("choir"), 5) == []
    backend.reset()
    assert backend.ingest([]).docs == 0
    assert backend.search(Query("boat"), 5) == []


@pytest.mark.live_akm_cli
@pytest.mark.parametrize("synthesis", ["lead", "keywords"])
def test_a_real_akm_stores_counts_and_finds(tmp_path, synthesis):
    executable = Path(os.environ["AKM_HARBOR_AKM_CLI"])
    backend = Akm(executable, tmp_path / "store", command="search", synthesis=synthesis)
    for _ in range(2):
        backend.reset()
        assert backend.ingest(DOCUMENTS).docs == 3
        assert names(backend.search(Query("boat pier"), 5)) == [DOCUMENTS[0].name]
        assert names(backend.search(Query("green tea sugar"), 5)) == [DOCUMENTS[1].name]
    curate = Akm(executable, tmp_path / "store", command="curate", synthesis=synthesis)
    curate.reset()
    curate.ingest(DOCUMENTS)
    assert names(curate.search(Query("Where does the red boat lie?"), 5))[:1] == [DOCUMENTS[0].name]
    assert curate.describe().settings["usage_untracked"] is True


@pytest.mark.live_akm_cli
def test_a_real_akm_takes_500_documents_in_one_index_run(tmp_path):
    backend = Akm(Path(os.environ["AKM_HARBOR_AKM_CLI"]), tmp_path / "store")
    backend.reset()
    documents = [Document(opaque_name("bulk", n), f"Note {n} about kite{n % 50}.", f"{n:04d}") for n in range(500)]
    assert backend.ingest(documents).docs == 500
