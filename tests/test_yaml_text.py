"""YAML that cannot be meant is one message for every reader of it: job files, policies, memory studies."""

from collections.abc import Callable
from pathlib import Path

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.memory.answer.spec import load_study
from akm_harbor.sandbox.model.policy_file import load_policy
from akm_harbor.study.yaml_lines import read_yaml

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
BAD = {
    "aliases that multiply": BOMB,
    "an alias inside itself": "agents: &a [*a]\n",
    "a list as key": "? [a]\n: b\n",
    "a date that does not exist": "a: 2026-99-99\n",
    "too deep": "[" * 5000 + "]" * 5000,
    "a control character": "a: 1\x00",
    "two documents": "a: 1\n---\nb: 1\n",
    "a Python object": "!!python/object/apply:os.getcwd []",
    "half of a character": 'a: "\\ud800"',
}


@pytest.mark.parametrize("read", [read_yaml, load_policy, load_study])
@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_it_is_refused_by_name(tmp_path: Path, read: Callable[[Path], object], text: str) -> None:
    (tmp_path / "f.yaml").write_text(text)
    with pytest.raises(AkmHarborError, match="YAML") as told:
        read(tmp_path / "f.yaml")
    assert told.value.path == tmp_path / "f.yaml"


@pytest.mark.parametrize("read", [load_policy, load_study])
def test_a_key_given_twice_is_refused_with_its_line(tmp_path: Path, read: Callable[[Path], object]) -> None:
    (tmp_path / "f.yaml").write_text("x:\n  - y: 1\n    y: 2\n")
    with pytest.raises(AkmHarborError, match="line 3: `y` is given twice"):
        read(tmp_path / "f.yaml")
