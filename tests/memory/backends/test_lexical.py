"""BM25 against rank_bm25, both baselines against the reference recalls, and no trace of the input order."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from rank_bm25 import BM25Okapi

from akm_harbor.memory import text
from akm_harbor.memory.backends.lexical import BagOfWords, Bm25
from akm_harbor.memory.backends.registry import parse_arm
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.probe import Settings, probe
from akm_harbor.memory.protocol import Document, Query
from akm_harbor.tables import read_frame
from tests.memory.support import DATA, LOCOMO, needs_locomo

WORDS = ["boat", "pier", "tea", "sugar", "choir", "lamp", "kite", "heron", "mill", "bowl", "the", "a", "of", "and"]


def corpus(n, seed):
    rng = random.Random(seed)
    return [
        Document(f"m{i}", " ".join(rng.choices(WORDS, weights=range(1, 15), k=rng.randint(1, 30))), f"{i:04d}")
        for i in range(n)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_scores_equal_rank_bm25(seed):
    documents = corpus(40, seed)
    ours = Bm25()
    ours.ingest(documents)
    theirs = BM25Okapi([text.tokens(d.text) for d in documents])
    for query in ("boat pier", "the the a", "unheard of", "heron", "tea sugar tea"):
        np.testing.assert_allclose(ours.scores(query), theirs.get_scores(text.tokens(query)), rtol=0, atol=1e-12)


def test_frequent_words_get_the_floor_not_a_negative_weight():
    documents = [Document(f"m{i}", "common rare" if i == 0 else f"common x{i}", f"{i}") for i in range(9)]
    backend = Bm25()
    backend.ingest(documents)
    assert (backend.scores("common") > 0).all()


@pytest.mark.parametrize("make", [Bm25, BagOfWords])
def test_neither_names_nor_order_change_a_score(make):
    documents = corpus(60, 1)
    shuffled = [Document(f"z{d.name}", d.text, d.order) for d in random.Random(5).sample(documents, len(documents))]
    one, other = make(), make()
    one.ingest(documents)
    other.ingest(shuffled)
    for query in ("boat tea", "choir lamp kite", "the"):
        a, b = one.search(Query(query), 60), other.search(Query(query), 60)
        assert [(hit.name, hit.score) for hit in a] == [(hit.name.removeprefix("z"), hit.score) for hit in b]


@pytest.mark.parametrize("make", [Bm25, BagOfWords])
def test_nothing_stored_nothing_found(make):
    backend = make()
    backend.reset()
    assert backend.search(Query("boat"), 3) == []
    backend.ingest([Document("m", "...", "0")])
    assert [hit.score for hit in backend.search(Query("boat"), 3)] == [0.0]


@needs_locomo
def test_recalls_on_the_published_file_equal_the_reference(tmp_path):
    store = Store(convert(Path(LOCOMO), tmp_path / "data").path)
    settings = Settings((parse_arm("bm25"), parse_arm("bow")), ("turn",), ks=(5, 10, 20), topk=5)
    probe(store, settings, tmp_path / "out")
    trials = read_frame(tmp_path / "out", "memory_trials")[["arm", "question_id", "qtype_raw", "gold_status"]]
    at = read_frame(tmp_path / "out", "memory_retrieval").merge(trials, on=["arm", "question_id"])
    reference = json.loads((DATA / "locomo_lexical_retrieval_reference.json").read_text())["results"]
    checked = 0
    for arm, name in (("bm25", "bm25okapi"), ("bow", "bow_cosine")):
        rows = at[at["arm"] == arm]
        once = rows[rows["k"] == 5]
        assert int((once["gold_status"] != "ok").sum()) == reference[name]["skipped"]["overall"]
        for metric, expected in reference[name].items():
            if metric == "skipped":
                continue
            column, k = metric.split("@")
            values = rows[rows["k"] == int(k)]
            assert round(float(values[column].mean()), 4) == expected["overall"], metric
            for category, value in expected["by_category"].items():
                mine = values[values["qtype_raw"] == category][column].mean()
                assert round(float(mine), 4) == value, (metric, category)
                checked += 1
    assert checked == 90
