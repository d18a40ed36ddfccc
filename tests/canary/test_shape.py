from pathlib import Path

import pytest

from akm_harbor.canary.shape import bigram_diversity, content_hashes, store_shape
from akm_harbor.canary.snapshot import read_index
from tests.canary.support import recorded

GOLDEN = recorded("golden-fts-hash-bigram.json")


def test_hashes_are_akms_alone_and_together() -> None:
    cases = GOLDEN["normHash"]
    assert content_hashes([case["text"] for case in cases]) == [case["hash"] for case in cases]
    for case in cases:
        assert content_hashes([case["text"]]) == [case["hash"]]
    assert content_hashes([]) == []


@pytest.mark.parametrize("case", GOLDEN["bigram"], ids=lambda case: repr(case["text"]))
def test_bigram_diversity_is_akms(case: dict[str, object]) -> None:
    assert bigram_diversity(str(case["text"])) == case["diversity"]


def test_an_empty_store_has_nothing_in_common() -> None:
    shape = store_shape([], 2)
    assert (shape.total, shape.ratio, shape.diversity, shape.by_type) == (0, 1.0, 1.0, {})


def test_over_generation_counts_above_the_limit(collapse: Path) -> None:
    entries = read_index(collapse / "index.db").entries
    assert store_shape(entries, 2).over_generation == 1
    assert store_shape(entries, 6).over_generation == 0
