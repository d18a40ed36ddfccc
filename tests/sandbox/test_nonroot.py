"""Harbor run by somebody who is not root: the same jobs in a user namespace."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.sandbox.support import PASS, harbor_command, harbor_environment, make_task, results

pytestmark = [
    pytest.mark.sandbox,
    pytest.mark.skipif(os.geteuid() != 0, reason="then all tests are such"),
]
NOBODY = 65534


def as_nobody(argv: list[str], home: Path) -> list[str]:
    """The command line that runs `argv` as nobody, with this Python in reach.

    Where the interpreter lies in root's home, that folder is shown, in a mount namespace
    of its own, with nothing but the interpreter in it.
    """
    python = Path(sys.base_prefix)
    closed = [folder for folder in (python, *python.parents) if not folder.stat().st_mode & 0o001]
    setup = ""
    if closed:
        top = closed[-1]
        setup = (
            f"mkdir -p {home}/python && mount --bind {python} {home}/python && mount -t tmpfs -o mode=755 tmpfs {top}"
            f" && mkdir -p {python} && mount --bind {home}/python {python} && umount {home}/python && "
        )
    drop = f'setpriv --reuid {NOBODY} --regid {NOBODY} --clear-groups -- "$@"'
    return ["unshare", "-m", "sh", "-c", f"{setup}exec {drop}", "sh", *argv]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder of nobody's, in reach: pytest's own lie below one that only root may enter."""
    made = Path(subprocess.check_output(["mktemp", "-d", "/tmp/sandbox-nonroot-XXXXXX"], text=True).strip())
    made.chmod(0o755)
    return made


@pytest.fixture
def run_as_nobody(home: Path) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    def run(argv: list[str]) -> "subprocess.CompletedProcess[str]":
        subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(home)], check=True)
        return subprocess.run(
            as_nobody(argv, home),
            env={**harbor_environment(), "HOME": str(home)},
            cwd=home,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run


def test_jobs(home: Path, run_as_nobody: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    try:
        tasks, jobs, cache = home / "tasks", home / "jobs", home / "cache"
        make_task(
            tasks / "build",
            dockerfile="FROM x\nWORKDIR /app\nENV A=b\nRUN echo $A > built && echo > /usr/local/bin/t\nCOPY f ./\n",
            files={"f": "f\n"},
            solve="cat built f > out; id -u >> out; echo x >> /etc/hosts; touch /usr/local/lib/x; git init -q repo",
            test=f'[ "$(cat out)" = "$(printf \'b\\nf\\n0\')" ] && [ -e /app/repo/.git ] && {PASS}',
        )
        make_task(
            tasks / "offline",
            toml='[environment]\nnetwork_mode = "no-network"\n[agent]\ntimeout_sec = 2\n',
            solve="tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' > /app/net; (sleep 3; >/app/late) & sleep 60",
            test=f'sleep 2.5; [ "$(cat /app/net)" = lo ] && [ ! -e /app/late ] && {PASS}',
        )
        make_task(tasks / "user", toml='[agent]\nuser = "daemon"\n')
        done = run_as_nobody(harbor_command(tasks, jobs, cache))
        assert done.returncode == 0, done.stdout + done.stderr
        got = results(jobs / "job")
        assert got["build"].reward == 1.0, (got["build"].folder / "trial.log").read_text()
        assert got["offline"].reward == 1.0, (got["offline"].folder / "trial.log").read_text()
        assert got["user"].exception == "SandboxUnsupportedError"
        assert not any(cache.glob("user-*/trials/*"))
        assert not any(str(home) in line for line in Path("/proc/self/mountinfo").read_text().splitlines())
        left = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and _mentions(entry, str(cache))]
        assert left == []
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


def test_a_dockerfile_with_a_second_user_is_refused(
    home: Path, run_as_nobody: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    try:
        make_task(home / "tasks" / "two", dockerfile="FROM x\nRUN true\nUSER daemon\n")
        done = run_as_nobody(harbor_command(home / "tasks", home / "jobs", home / "cache"))
        assert done.returncode != 0
        assert "line 3: user 'daemon': without root the sandbox has only one user" in " ".join(
            (done.stdout + done.stderr).replace("│", "").split()
        )
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


def test_check(home: Path, run_as_nobody: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    try:
        done = run_as_nobody([str(Path(sys.executable).parent / "akm-harbor"), "sandbox", "check"])
        assert done.returncode == 0, done.stdout + done.stderr
        assert "not root: a user namespace with a single user" in done.stdout
        assert "ok   a real sandbox" in done.stdout
    finally:
        subprocess.run(["rm", "-rf", str(home)], check=True)


def _mentions(entry: Path, text: str) -> bool:
    try:
        return text in (entry / "mountinfo").read_text(errors="replace")
    except OSError:
        return False
