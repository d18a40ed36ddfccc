import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from akm_harbor.cli.app import app

pytestmark = pytest.mark.sandbox
runner = CliRunner()


def test_check_starts_a_real_sandbox(tmp_path: Path) -> None:
    done = runner.invoke(app, ["sandbox", "check", "--cache-dir", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "ok   a real sandbox: started, ran a command, stopped" in done.output


def test_check_tells_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    done = runner.invoke(app, ["sandbox", "check", "--cache-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "MISS bubblewrap: not found\n     Install bubblewrap" in done.output


def test_check_of_a_root_that_is_none(tmp_path: Path) -> None:
    done = runner.invoke(app, ["sandbox", "check", "--rootfs", str(tmp_path), "--cache-dir", str(tmp_path / "c")])
    assert done.exit_code == 1
    assert "not a root file system" in done.output


def test_clean(tmp_path: Path) -> None:
    done = runner.invoke(app, ["sandbox", "clean", "--images", "--cache-dir", str(tmp_path)])
    assert (done.exit_code, done.output) == (0, "removed 0 folders, 0.0 MB\n")


def test_elsewhere_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from akm_harbor.sandbox.failures import SandboxUnavailableError

    monkeypatch.setattr(sys, "platform", "darwin")
    done = runner.invoke(app, ["sandbox", "clean", "--cache-dir", str(tmp_path)])
    assert isinstance(done.exception, SandboxUnavailableError)
    assert "runs on Linux only" in str(done.exception)
