"""The table of a probe."""

import pytest

from akm_harbor.memory.backends.registry import parse_arm
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.sources import find_source
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.probe import Settings, probe
from akm_harbor.memory.results import read_result
from akm_harbor.memory.scorers.longmemeval import PRINT_DENOMINATOR, RUN_DENOMINATOR
from akm_harbor.memory.summary import markdown, summarize, upstream_means


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    root = tmp_path_factory.mktemp("summary")
    store = Store(convert(find_source("demo-longmemeval").path, root / "data").path)
    arms = tuple(map(parse_arm, ("bm25", "full")))
    return read_result(probe(store, Settings(arms, ("session",), corpus="user", repeats=2), root / "out").path)


def test_a_row_an_arm_with_its_counts(result):
    frame = summarize(result)
    assert list(frame["arm"]) == ["bm25", "full"]
    bm25 = frame.iloc[0]
    assert bm25["asked"] == 12  # the second repeat is no second question
    assert bm25["n"] == 10
    assert bm25["failed"] == 0
    first = result.trials[(result.trials["arm"] == "bm25") & (result.trials["repeat"] == 0)]
    assert bm25["recall_all"] == pytest.approx(first["recall_all"].mean())
    assert frame.iloc[1]["recall_all"] != frame.iloc[1]["recall_all"]  # full context is no ranking


def test_upstreams_two_denominators_are_named_and_differ(result):
    frame = upstream_means(result, ks=(5,))
    counts = dict(zip(frame["denominator"], frame["n"], strict=True))
    assert counts == {PRINT_DENOMINATOR: 10, RUN_DENOMINATOR: 8}
    means = dict(zip(frame["denominator"], frame["upstream_recall_any"], strict=True))
    assert means[PRINT_DENOMINATOR] == pytest.approx(means[RUN_DENOMINATOR] * 8 / 10)


def test_markdown_writes_what_has_no_value_as_a_dash(result):
    text = markdown(summarize(result), ["arm", "n", "recall_all", "ctx_tokens"])
    lines = text.splitlines()
    assert lines[0] == "| arm | n | recall_all | ctx_tokens |"
    assert lines[3].startswith("| full | 10 | - | ")
    assert upstream_means(result, ks=(7,)).empty
