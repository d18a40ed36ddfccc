"""The protocol of a number."""

import dataclasses

from akm_harbor.memory.label import RetrievalProtocol, differences

BASE = RetrievalProtocol("locomo", "ab" * 32, "turn", "all", 5, (1, 5), None, "cl100k_base", "all")


def test_every_part_changes_the_id():
    changes = {
        "benchmark": "beam",
        "dataset_sha256": "cd" * 32,
        "granularity": "session",
        "corpus": "user",
        "topk": 6,
        "ks": (1,),
        "budget": 100,
        "tokenizer": "chars/4",
        "sample": "10 of 20, seed 0",
        "metrics": 2,
    }
    assert changes.keys() == {f.name for f in dataclasses.fields(BASE)}
    ids = {dataclasses.replace(BASE, **{name: value}).id for name, value in changes.items()}
    assert len(ids | {BASE.id}) == len(changes) + 1


def test_differences_are_named():
    one, other = dataclasses.asdict(BASE), {**dataclasses.asdict(BASE), "topk": 10}
    assert differences(one, other) == ["topk: 5 and 10"]
    assert differences(one, one) == []
