"""Reading a converted dataset back."""

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.datasets.convert import convert
from akm_harbor.memory.datasets.reading import DatasetError
from akm_harbor.memory.datasets.sources import find_source
from akm_harbor.memory.datasets.store import Store
from akm_harbor.tables import replace_dataset


@pytest.fixture
def store(tmp_path):
    return Store(convert(find_source("demo-locomo").path, tmp_path / "out").path)


def test_histories_and_questions_without_any_text(store):
    assert [(i.instance_id, i.sessions, i.questions) for i in store.instances()] == [
        ("demo-1", 3, 12),
        ("demo-2", 3, 10),
    ]
    assert [q.question_id for q in store.questions()][:2] == ["demo-1/qa0", "demo-1/qa1"]
    assert store.benchmark == "locomo"


def test_other_datasets_and_folders_are_refused(tmp_path):
    with pytest.raises(AkmHarborError, match="no such dataset"):
        Store(tmp_path / "gone")
    with replace_dataset(tmp_path / "other") as writer:
        writer.write_manifest({"kind": "trials"})
    with pytest.raises(DatasetError, match="not a converted benchmark"):
        Store(tmp_path / "other")


def test_a_lost_table_is_named(store):
    (store.path / "memory_turns" / "part-0.parquet").unlink()
    with pytest.raises(DatasetError, match="Convert the benchmark again"):
        list(store.read())
