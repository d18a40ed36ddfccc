"""Finished units on disk."""

import pytest

from akm_harbor.memory.checkpoint import Checkpoint
from akm_harbor.memory.unit import run_unit
from tests.memory.histories import boats, ok, question
from tests.memory.test_unit import unit


def test_a_result_comes_back_as_it_was(tmp_path):
    checkpoint = Checkpoint(tmp_path / "out")
    result = run_unit(unit(instance=boats(question(evidence=ok(["s1_1"], ["s1"])))))
    assert checkpoint.load("key") is None
    checkpoint.save("key", result)
    back = checkpoint.load("key")
    assert back.trials.equals(result.trials, check_metadata=True)
    assert back.retrieval.equals(result.retrieval)
    assert back.problems == result.problems
    checkpoint.clear()
    assert checkpoint.load("key") is None


@pytest.mark.parametrize("cut", [0, 10, 0.5, 0.99])
def test_a_torn_file_is_no_result(tmp_path, cut):
    checkpoint = Checkpoint(tmp_path / "out")
    checkpoint.save("key", run_unit(unit()))
    path = checkpoint.folder / "key.arrow"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * cut) if isinstance(cut, float) else cut])
    assert checkpoint.load("key") is None
