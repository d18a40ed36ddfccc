"""Parts of the supervisor that need no sandbox: accounts, killing a tree, the wire, its start."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor is for Linux")

PASSWD = """root:x:0:0:root:/root:/bin/sh
agent:x:1000:1001::/home/agent:/bin/sh
42:x:7:8::/odd:/bin/sh
broken
bad:x:y:z::/:
"""
GROUP = "root:x:0:\nagent:x:1001:\nmore:x:2000:agent,other\n"


@pytest.mark.parametrize(
    ("user", "uid", "gid", "groups", "home"),
    [
        ("root", 0, 0, (0,), "/root"),
        ("0", 0, 0, (0,), "/root"),
        ("agent", 1000, 1001, (1001, 2000), "/home/agent"),
        ("1000", 1000, 1001, (1001, 2000), "/home/agent"),
        ("agent:more", 1000, 2000, (), "/home/agent"),
        ("agent:77", 1000, 77, (), "/home/agent"),
        ("555", 555, 0, (0,), "/"),
        ("555:more", 555, 2000, (), "/"),
        ("42", 7, 8, (8,), "/odd"),  # a name comes before a number, as in Docker
    ],
)
def test_accounts(user: str, uid: int, gid: int, groups: tuple[int, ...], home: str) -> None:
    from akm_harbor.sandbox.supervisor.processes import find_account

    found = find_account(user, PASSWD, GROUP)
    assert (found.uid, found.gid, found.groups, found.home) == (uid, gid, groups, home)


@pytest.mark.parametrize("user", ["nobody", "agent:none", "bad", ""])
def test_no_such_account(user: str) -> None:
    from akm_harbor.sandbox.supervisor.processes import find_account

    with pytest.raises(LookupError):
        find_account(user, PASSWD, GROUP)


def test_a_tree_is_killed_with_its_sessions_and_nothing_else(tmp_path: Path) -> None:
    from akm_harbor.sandbox.supervisor.processes import kill_tree

    script = f"""
import os, subprocess, sys
if os.fork() == 0:
    os.setsid()
    subprocess.Popen(["sh", "-c", "trap '' TERM; while :; do (sleep 0.01); done"])
    subprocess.Popen(["sleep", "1000"])
    open({str(tmp_path / "up")!r}, "w").close()
    os.execvp("sleep", ["sleep", "1000"])
os.wait()
"""
    bystander = subprocess.Popen(["sleep", "1000"])
    root = subprocess.Popen([sys.executable, "-c", script])
    try:
        while not (tmp_path / "up").exists():
            time.sleep(0.01)
        kill_tree(root.pid)
        root.wait(timeout=5)
        assert bystander.poll() is None
    finally:
        bystander.kill()
        bystander.wait()


def test_frames_carry_messages_of_any_size_and_descriptors() -> None:
    from akm_harbor.sandbox.supervisor import wire

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        read, write = os.pipe()
        wire.send(ours, "run", {"argv": ["é" * 300_000]}, [write])
        wire.send(ours, "stop", {})
        os.close(write)
        message = wire.receive(theirs)
        assert message is not None
        kind, body, fds = message
        assert (kind, body) == ("run", {"argv": ["é" * 300_000]})
        os.write(fds[0], b"through")
        os.close(fds[0])
        assert os.read(read, 10) == b"through"
        os.close(read)
        assert wire.receive(theirs) == ("stop", {}, [])
        ours.send(b"\0\0")
        ours.close()
        assert wire.receive(theirs) is None


def test_it_starts_with_little_of_the_standard_library() -> None:
    """Each import is paid for by every trial."""
    sandbox = Path(__file__).parents[2] / "akm_harbor" / "sandbox"
    code = "import sys; sys.path.append(sys.argv[1]); import supervisor.main; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-I", "-S", "-c", code, str(sandbox)], text=True).split()
    assert "supervisor.namespaces" in loaded
    assert not {"typing", "dataclasses", "inspect", "pathlib", "shutil", "asyncio", "akm_harbor"} & set(loaded)


def test_a_supervisor_without_a_harbor_ends() -> None:
    sandbox = Path(__file__).parents[2] / "akm_harbor" / "sandbox"
    ours, theirs = socket.socketpair()
    code = "import sys; sys.path.append(sys.argv[1]); from supervisor.main import main; main(int(sys.argv[2]))"
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code, str(sandbox), str(theirs.fileno())], pass_fds=(theirs.fileno(),)
        )
    ours.close()
    assert process.wait(timeout=10) == 0
