import math
from datetime import UTC, datetime
from pathlib import Path

from akm_harbor.canary.mint import Canary
from akm_harbor.canary.score import Answer, score
from akm_harbor.canary.simulate.bundle import Asset, Bundle
from akm_harbor.canary.simulate.index_file import write_index
from akm_harbor.canary.snapshot import by_type, read_index

START = datetime(2026, 1, 1, tzinfo=UTC)


def _ask(folder: Path, *assets: Asset, anchor: str = "memories/old", query: str = "alpha beta", k: int = 10) -> Answer:
    bundle = Bundle()
    for asset in assets:
        bundle.add(asset)
    write_index(bundle, folder / "index.db", START)
    (answer,) = read_index(folder / "index.db", [Canary(7, anchor, query)], k=k).answers
    return answer


def test_the_anchor_itself(tmp_path: Path) -> None:
    answer = _ask(tmp_path, Asset("old", description="alpha beta"), Asset("x", description="alpha"))
    assert (answer.rank, answer.hit_by, answer.anchor_present, answer.results) == (0, "anchor", True, 1)


def test_an_heir_that_names_the_anchor_counts_in_any_spelling(tmp_path: Path) -> None:
    for xref in ("memories/old", "bench//memories/old#part", "memory:old"):
        heir = Asset("new", description="alpha beta gamma", xrefs=(xref,))
        answer = _ask(tmp_path, heir, anchor="bench//memories/old")
        assert (answer.rank, answer.hit_ref, answer.hit_by) == (0, "memories/new", "xref")
        assert answer.followers == ("memories/new",)


def test_one_level_only(tmp_path: Path) -> None:
    answer = _ask(
        tmp_path, Asset("middle", description="gone dull", xrefs=("memories/old",)),
        Asset("last", description="alpha beta", xrefs=("memories/middle",)),
    )  # fmt: skip
    assert (answer.rank, answer.first_ref, answer.followers) == (-1, "memories/last", ("memories/middle",))


def test_an_heir_without_the_words_does_not_save_the_canary(tmp_path: Path) -> None:
    answer = _ask(tmp_path, Asset("new", description="bland", xrefs=("memories/elsewhere",)))
    assert (answer.rank, answer.hit_ref, answer.first_ref, answer.anchor_present) == (-1, None, None, False)


def test_beyond_k_is_missed(tmp_path: Path) -> None:
    crowd = [Asset(f"alpha-beta-{i}", description="alpha beta") for i in range(5)]
    answer = _ask(tmp_path, Asset("old", description="alpha beta"), *crowd, k=3)
    assert (answer.rank, answer.results, answer.anchor_present) == (-1, 3, True)


def test_means_are_akms_closed_forms() -> None:
    found = score([0, 2, -1, 1])
    assert found.recall == 3 / 4
    assert found.mrr == (1 + 1 / 3 + 1 / 2) / 4
    assert found.ndcg == (1 / math.log2(2) + 1 / math.log2(4) + 1 / math.log2(3)) / 4
    assert score([]).recall == 0.0


def test_hits_by_type(tmp_path: Path) -> None:
    answers = [_ask(tmp_path, Asset("old", description="alpha beta")), _ask(tmp_path, Asset("x"))]
    assert by_type(answers) == {"memory": (1, 2)}
