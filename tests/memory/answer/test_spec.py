"""study.yaml: what is wrong is named by its key, before anything is run."""

import pytest
import yaml

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.answer.spec import load_study, with_akm
from tests.memory.answer.support import declare

JUDGED = {"scorer": {"name": "akm-harbor-judge"}, "judge": {"model": "openai/j"}}


def test_a_study_is_read_with_its_defaults(tmp_path):
    study = load_study(declare(tmp_path, "http://127.0.0.1:1/v1", budgets=["as-is", 1000]))
    assert study.reading.budgets == (None, 1000)
    assert study.settings(2, None, None).jobs == 2
    assert study.category_5 == "include"


def test_paths_are_relative_to_the_file_that_names_them(tmp_path):
    folder = tmp_path / "deep"
    folder.mkdir()
    study = load_study(declare(folder, "", data="x.json", gates={"ceiling_result": "../oracle"}))
    assert study.data == str(folder / "x.json")
    assert study.gates.ceiling_result == str(tmp_path / "oracle")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"version": 2}, r"\$\.version"),
        ({"arms": []}, r"\$\.arms"),
        ({"arms": ["mem9"]}, "no backend 'mem9'"),
        ({"arms": ["bm25", "bm25"]}, "named twice"),
        ({"budgets": ["all"]}, "budgets"),
        ({"budgets": [10]}, "at least 50"),
        ({"order": "size"}, "no order"),
        ({"granularity": "page"}, "no granularity"),
        ({"topk": 0}, r"\$\.topk"),
        ({"tpok": 5}, "tpok"),
        ({"dataset": ""}, "names no data"),
        ({"category_5": True}, "category_5"),
        ({"scorer": {"name": "gpt-judge"}}, r"\$\.scorer\.name"),
        ({"scorer": {"name": "akm-harbor-judge"}}, "needs a judge"),
        ({"judge": {"model": "openai/j"}}, "needs no judge"),
        ({"scorer": {"name": "beam-paper"}, "judge": {"model": "openai/j"}}, "do not ship"),
        ({"reader": {"model": "openai/r", "repeats": 0}}, r"\$\.reader\.repeats"),
        ({"reader": {"model": "openai/r", "price": {"input": -1, "output": 1}}}, "price"),
        ({"reader": {"model": "openai/r", "price": "unknown"}}, "reader's price is unknown"),
        ({**JUDGED, "judge": {"model": "openai/j", "price": "unknown"}}, "judge's price is unknown"),
        ({"spending": {"max_usd": -1}}, "max_usd"),
        ({"gates": {"ceiling": 2}}, "ceiling"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_key(tmp_path, changes, said):
    with pytest.raises(UsageError, match=said) as caught:
        load_study(declare(tmp_path, "http://127.0.0.1:1/v1", **changes))
    assert caught.value.path is not None


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(AkmHarborError, match="cannot be read"):
        load_study(tmp_path / "none.yaml")
    (tmp_path / "bad.yaml").write_text("a: [")
    with pytest.raises(AkmHarborError, match="is not YAML"):
        load_study(tmp_path / "bad.yaml")
    (tmp_path / "list.yaml").write_text(yaml.safe_dump([1]))
    with pytest.raises(UsageError, match="Expected `object`"):
        load_study(tmp_path / "list.yaml")


def test_the_akm_executable_goes_to_akm_arms_that_name_none(tmp_path):
    assert with_akm("akm", tmp_path) == f"akm:path={tmp_path}"
    assert with_akm("akm:command=search", tmp_path) == f"akm:command=search,path={tmp_path}"
    assert with_akm("akm:path=x", tmp_path) == "akm:path=x"
    assert with_akm("bm25", tmp_path) == "bm25"
