"""Which benchmark a file belongs to."""

import json

import pytest

from akm_harbor.memory.datasets.detect import detect
from akm_harbor.memory.datasets.reading import DatasetMissingError, WrongSchemaError
from akm_harbor.memory.datasets.sources import sources
from tests.memory.datasets.helpers import CONVOMEM

DEMOS = {name: source for name, source in sources().items() if source.path}


@pytest.mark.parametrize("name", DEMOS)
def test_the_demo_files_are_told_apart(name):
    assert detect(DEMOS[name].path) == DEMOS[name].benchmark


def test_folders_are_told_apart(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "batched_000.json").write_text(json.dumps([CONVOMEM]))
    assert detect(tmp_path / "a") == "convomem"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x.parquet").touch()
    assert detect(tmp_path / "b") == "beam"


def test_what_is_none_of_them_is_said(tmp_path):
    (tmp_path / "f.json").write_text('[{"text": 1, "label": 2}]')
    with pytest.raises(WrongSchemaError, match="label, text: no benchmark we know"):
        detect(tmp_path / "f.json")
    (tmp_path / "e.json").write_text("[]")
    with pytest.raises(WrongSchemaError, match="holds no record"):
        detect(tmp_path / "e.json")
    (tmp_path / "d").mkdir()
    with pytest.raises(WrongSchemaError, match="no file of a known benchmark"):
        detect(tmp_path / "d")
    with pytest.raises(DatasetMissingError):
        detect(tmp_path / "gone")
