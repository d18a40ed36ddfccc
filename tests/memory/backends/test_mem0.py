"""mem0's library for real, where it is installed: local store, no model called, nothing fetched."""

import importlib.util
import socket

import pytest

from akm_harbor.memory.backends import minilm
from akm_harbor.memory.backends.registry import make_backend, parse_arm
from akm_harbor.memory.protocol import BackendError, Document, Query

installed = importlib.util.find_spec("mem0") is not None
DOCUMENTS = [
    Document("m1", "The vessel is moored at the northern jetty.", "1"),
    Document("m2", "Green tea without sugar, please.", "2"),
    Document("m3", "Our choir rehearses a requiem.", "3"),
]


@pytest.mark.skipif(installed, reason="mem0 is installed here")
def test_without_mem0_the_arm_says_what_to_install(tmp_path):
    with pytest.raises(BackendError, match="mem0 is not installed"):
        make_backend(parse_arm("mem0"), tmp_path)


@pytest.mark.skipif(
    not installed or importlib.util.find_spec(minilm.PACKAGE) is None,
    reason="needs the mem0 extra and the embedding model",
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_memories_are_stored_found_and_forgotten(tmp_path, monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("mem0 went to the network"))
    backend = make_backend(parse_arm("mem0"), tmp_path)
    for _ in range(2):
        backend.reset()
        done = backend.ingest(DOCUMENTS)
        assert (done.docs, done.llm_tokens) == (3, 0)
        assert done.index_bytes > 0
        assert backend.search(Query("Where is the ship docked?"), 3)[0].name == "m1"
        assert len(backend.search(Query("tea"), 1)) == 1
    assert backend.search(Query("  "), 3) == []
    described = backend.describe()
    assert described.settings["infer"] is False
    backend.reset()
    assert backend.search(Query("tea"), 3) == []
