from pathlib import Path

import pytest

from akm_harbor.agent.errors import ToolchainError
from akm_harbor.agent.pins import PARTS, Spec, load_pins, parse_spec
from akm_harbor.errors import UsageError

DEFAULT = Spec("akm-cli", "0.9.0")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0.9.3", "npm:akm-cli@0.9.3"),
        ("akm-fork@0.9.3", "npm:akm-fork@0.9.3"),
        ("npm:@scope/akm@1.0.0-rc.1", "npm:@scope/akm@1.0.0-rc.1"),
        ("npm:akm-cli@0.9.1202608242057", "npm:akm-cli@0.9.1202608242057"),
    ],
)
def test_an_exact_spec_is_read(text: str, wanted: str) -> None:
    assert str(parse_spec(text, DEFAULT)) == wanted


@pytest.mark.parametrize(
    "text", ["", "latest", "^0.9.0", "akm-cli", "akm-cli@latest", "npm:a b@1.0.0", "https://x/y.tgz"]
)
def test_a_range_a_tag_or_an_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="exact"):
        parse_spec(text, DEFAULT)


def test_a_file_spec_must_be_there_and_be_a_package(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such"):
        parse_spec(f"file:{tmp_path}/nothing.tgz", DEFAULT)
    with pytest.raises(UsageError, match=r"package\.json"):
        parse_spec(f"file:{tmp_path}", DEFAULT)
    (tmp_path / "package.json").write_text("{}")
    assert parse_spec(f"file:{tmp_path}", DEFAULT).source == tmp_path.resolve()


def test_the_shipped_pins_are_exact() -> None:
    pins = load_pins()
    assert tuple(pins) == PARTS
    assert all(spec.version and spec.source is None for spec in pins.values())


@pytest.mark.parametrize(
    "text", ["[opencode", "[opencode]\npackage = 'x'\n", "[opencode]\npackage='x'\nversion='^1'\n"]
)
def test_broken_pins_name_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pins.toml"
    path.write_text(text)
    with pytest.raises(ToolchainError) as caught:
        load_pins(path)
    assert caught.value.path == path
