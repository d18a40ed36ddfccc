import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.app import app
from akm_harbor.errors import AkmHarborError
from tests.agent.support import fake_toolchain

RUN = CliRunner()


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AKM_HARBOR_TOOLCHAIN", raising=False)


def test_show_tells_what_is_inside_and_how_to_mount_it(tmp_path: Path) -> None:
    tree = fake_toolchain(tmp_path / "tree")
    shown = json.loads(RUN.invoke(app, ["toolchain", "show", str(tree), "--verify"], catch_exceptions=False).stdout)
    assert shown["versions"]["akm"] == "0.9.0"
    assert shown["control_only"] is False
    (mount,) = json.loads(RUN.invoke(app, ["toolchain", "show", str(tree), "--mount"]).stdout)
    assert mount == {"type": "bind", "source": str(tree), "target": "/opt/akm-harbor/toolchain", "read_only": True}


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["path"], "no toolchain is built", 1),
        (["show", "nothing.tar"], "no such toolchain", 1),
        (["build", "--akm", "latest"], "exact", 2),
        (["build", "--akm", "file:nothing.tgz"], "no such package", 2),
        (["build", "--platform", "windows"], "unknown platform", 2),
        (["build", "--control-only", "--akm", "0.9.0"], "leaves out", 2),
    ],
)
def test_what_cannot_be_done_says_so(arguments: list[str], message: str, code: int) -> None:
    result = RUN.invoke(app, ["toolchain", *arguments])
    assert isinstance(result.exception, AkmHarborError)
    assert message in str(result.exception)
    assert result.exception.exit_code == code
