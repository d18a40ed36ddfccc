"""Serve one sandbox: take Harbor's messages, run commands, clear up when Harbor is gone.

When Harbor ends, for whatever reason, its socket closes: the supervisor then kills what
runs in the sandbox, removes the sandbox's folder and ends.
"""

import errno
import os
import select
import signal
import socket

from . import linux, processes, trees
from .namespaces import Namespaces, become
from .wire import receive, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STARTED = b"+"
_ATTEMPTS = 3
# What entering or forking into namespaces gives when their first process is dead.
_GONE = (errno.ESRCH, errno.ENOMEM)
_NAMESPACES = os.CLONE_NEWNS | os.CLONE_NEWIPC | os.CLONE_NEWUTS


def main(control_fd: int) -> None:
    """Serve one sandbox on this socket until told to stop or the other side is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wakeup, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    os.umask(0o022)
    control = socket.socket(fileno=control_fd)
    message = receive(control)
    if message is None:
        return
    sandbox = Namespaces(message[1])
    linux.hold(sandbox.setup["root"])
    told = False
    try:
        sandbox.mount()
        sandbox.up()
        say("ready")
        told = _serve(sandbox, control, wakeup)
    except BaseException as error:  # noqa: BLE001 - told to Harbor's side, which raises it
        say("broken", error=str(error))
        told = True
    finally:
        sandbox.down()
        if not told:
            _remove(sandbox)


def _serve(sandbox: Namespaces, control: socket.socket, wakeup: int) -> bool:
    """Handle messages; True when told to stop, False when Harbor is gone."""
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == wakeup:
                os.read(wakeup, 4096)
                sandbox.reap()
                continue
            message = receive(control)
            if message is None:
                return False
            kind, body, fds = message
            if kind == "stop":
                return True
            if kind == "run":
                _run(sandbox, body, fds)
            elif kind == "kill":
                for pid in [pid for pid, command in sandbox.running.items() if command == body["id"]]:
                    processes.kill_tree(pid)
            elif kind == "reset":
                sandbox.down()
                sandbox.binds = body["binds"]
                say("reset")
                try:
                    sandbox.up()
                except (OSError, RuntimeError):
                    pass  # said when a command needs it


def _remove(sandbox: Namespaces) -> None:
    """Harbor is gone and cannot do it: detach the overlays and remove the sandbox's folder."""
    for overlay in reversed(sandbox.setup["overlays"]):
        linux.unmount(sandbox.merged + overlay["target"])
    trees.remove(sandbox.setup["root"])


def _run(sandbox: Namespaces, command: "dict[str, Any]", fds: list[int]) -> None:
    """Start a command inside; its end is told as an `exit` event."""
    try:
        for _ in range(_ATTEMPTS):
            sandbox.up()
            started, tell = os.pipe()
            pid = os.fork()
            if pid == 0:
                os.close(started)
                _enter(sandbox.init, command, fds, tell)
            os.close(tell)
            sandbox.running[pid] = command["id"]
            if os.read(started, 1):
                os.close(started)
                return
            os.close(started)
            # The sandbox died under it, as when a command before killed all there is.
            del sandbox.running[pid]
            sandbox.down()
        say("failed", id=command["id"], error="the sandbox keeps dying")
    except (OSError, RuntimeError) as error:
        say("failed", id=command["id"], error=str(error))
    finally:
        for fd in fds:
            os.close(fd)


def _enter(init: int, command: "dict[str, Any]", fds: list[int], tell: int) -> None:
    """In a forked child: start the command in the sandbox, wait for it, end with its exit code."""
    code = 126
    try:
        os.setns(init, os.CLONE_NEWPID)  # for the next fork, not for this process
        pid = os.fork()
        if pid == 0:
            _inside(init, command, fds, tell)
        for fd in (*fds, tell):
            os.close(fd)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
    except BaseException as error:  # noqa: BLE001 - a forked child must never return into the loop
        _explain(error, fds, tell)
    finally:
        os._exit(code)


def _inside(init: int, command: "dict[str, Any]", fds: list[int], tell: int) -> None:
    """In the child that will be the command: enter, give up what it must not have, run it."""
    try:
        linux.hide()
        os.setsid()
        os.setns(init, _NAMESPACES | (0 if command["network"] else os.CLONE_NEWNET))
        account = processes.account(command["user"])
        os.chdir(command["cwd"])
        linux.limit_capabilities()
        processes.become(account)
        env = {"HOME": account.home, **command["env"]}
        argv = command["argv"]
        argv[0] = _which(argv[0], env.get("PATH", os.defpath))
        os.write(tell, _STARTED)
        become(argv, env, dict(enumerate(fds)))
    except BaseException as error:  # noqa: BLE001 - as above
        _explain(error, fds, tell)
    finally:
        os._exit(126)


def _explain(error: BaseException, fds: list[int], tell: int) -> None:
    """Say why a command did not start, on its own stderr; nothing when only its sandbox was gone."""
    if not (isinstance(error, OSError) and error.errno in _GONE):
        os.write(fds[2], f"sandbox: {error}\n".encode())
        os.write(tell, _STARTED)


def _which(program: str, path: str) -> str:
    if "/" not in program:
        for folder in path.split(":"):
            found = os.path.join(folder or ".", program)
            if os.path.isfile(found) and os.access(found, os.X_OK):
                return found
    return program
