import os
import subprocess
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


def test_check_of_the_hosts_own_root(tmp_path: Path) -> None:
    done = runner.invoke(app, ["sandbox", "check", "--rootfs", "/", "--cache-dir", str(tmp_path)])
    assert done.exit_code == 1
    assert "this machine's own root" in done.output


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_check_of_a_cache_that_cannot_hold_layers(tmp_path: Path) -> None:
    for name in ("lower", "upper", "work", "merged"):
        (tmp_path / name).mkdir()
    script = (
        f"cd {tmp_path} && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work merged"
        f" && exec {Path(sys.executable).parent}/akm-harbor sandbox check --cache-dir merged/cache"
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1, done.stderr
    assert "The cache has to lie on a local disk or a tmpfs, not on another overlay" in done.stdout


def test_clean(tmp_path: Path) -> None:
    done = runner.invoke(app, ["sandbox", "clean", "--images", "--cache-dir", str(tmp_path)])
    assert (done.exit_code, done.output) == (0, "removed 0 folders, 0.0 MB\n")


def test_elsewhere_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from akm_harbor.sandbox.failures import SandboxUnavailableError

    monkeypatch.setattr(sys, "platform", "darwin")
    done = runner.invoke(app, ["sandbox", "clean", "--cache-dir", str(tmp_path)])
    assert isinstance(done.exception, SandboxUnavailableError)
    assert "runs on Linux only" in str(done.exception)
