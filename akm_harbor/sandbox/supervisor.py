"""The process that owns one sandbox: its mounts, its namespaces, its commands.

One runs beside Harbor for every trial. It mounts the overlay in a mount namespace of
its own, so the host never sees the mount and the kernel takes it away with the last
process; it starts bubblewrap on it, and runs every command of the trial inside. When
Harbor is gone, for whatever reason, its socket closes: the supervisor then kills what
runs in the sandbox, removes the sandbox's folder and ends.

Run as `python -c BOOT FD`, standard library only: it has to be up in a few milliseconds.
"""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from akm_harbor.sandbox import cleanup, linux, processes, protocol
from akm_harbor.sandbox.protocol import Bind, Command, Overlay, Setup

START_TIMEOUT = 20.0
_NAMESPACES = os.CLONE_NEWNS | os.CLONE_NEWIPC | os.CLONE_NEWUTS
_READY = b"ready"


class Supervisor:
    """State of one sandbox: the namespaces (if up) and the running commands."""

    def __init__(self, control: socket.socket, setup: Setup) -> None:
        self.control = control
        self.setup = setup
        self.binds = setup.binds
        self.merged = Path(setup.root) / "merged"
        self.bwrap_pid = 0
        self.init_pidfd = -1
        self.hold = -1
        self.running: dict[int, int] = {}  # pid of the waiting parent -> command id

    # -- mounts -----------------------------------------------------------------------

    def mount(self) -> None:
        """Enter namespaces of our own and mount the overlays there."""
        if self.setup.new_user_namespace:
            uid, gid = os.geteuid(), os.getegid()
            os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
            Path("/proc/self/gid_map").write_text(f"0 {gid} 1")
        else:
            os.unshare(os.CLONE_NEWNS)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        self.merged.mkdir(exist_ok=True)
        for overlay in self.setup.overlays:
            self._mount_overlay(overlay)

    def _mount_overlay(self, overlay: Overlay) -> None:
        for folder in (overlay.upper, overlay.work):
            Path(folder).mkdir(parents=True, exist_ok=True)
        target = self.merged / overlay.target.lstrip("/")
        target.mkdir(parents=True, exist_ok=True)
        options = [
            "lowerdir=" + ":".join(_escape(lower) for lower in overlay.lower),
            "upperdir=" + _escape(overlay.upper),
            "workdir=" + _escape(overlay.work),
        ]
        if self.setup.new_user_namespace:
            options.append("userxattr")
        if not self.setup.durable:  # `volatile`: no fsync for what will be thrown away; Linux 5.10
            with contextlib.suppress(OSError):
                linux.mount("overlay", str(target), "overlay", 0, ",".join([*options, "volatile"]))
                return
        linux.mount("overlay", str(target), "overlay", 0, ",".join(options))

    # -- namespaces -------------------------------------------------------------------

    def up(self) -> None:
        """Start bubblewrap unless it runs; afterwards commands can enter its namespaces."""
        if self.init_pidfd >= 0:
            return
        self._make_mountpoints()
        status_read, status_write = os.pipe()
        hold_read, hold_write = os.pipe()
        ready_read, ready_write = os.pipe()
        argv = [self.setup.bwrap, "--bind", str(self.merged), "/", "--dev", "/dev", "--proc", "/proc"]
        for bind in self.binds:
            argv += ["--ro-bind" if bind.read_only else "--bind", bind.source, bind.target]
        argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--die-with-parent"]
        argv += ["--new-session", "--clearenv", "--hostname", self.setup.hostname]
        argv += ["--json-status-fd", str(status_write)]
        argv += ["--", "/bin/sh", "-c", f"echo {_READY.decode()}; read _"]
        self.bwrap_pid = os.fork()
        if self.bwrap_pid == 0:
            _become(argv, {}, {0: hold_read, 1: ready_write, 2: 2}, keep=(status_write,))
        for fd in (status_write, hold_read, ready_write):
            os.close(fd)
        said = _read_until(ready_read, _READY, START_TIMEOUT)
        os.close(ready_read)
        if _READY not in said:
            os.close(hold_write)
            os.close(status_read)
            self._wait_for_bwrap()
            raise RuntimeError("bubblewrap could not build the sandbox")
        status = json.loads(os.read(status_read, 4096).splitlines()[0])
        os.close(status_read)
        self.init_pidfd = os.pidfd_open(status["child-pid"])
        self.hold = hold_write

    def _make_mountpoints(self) -> None:
        # In a child that has the sandbox as its root: a link in it leads nowhere else.
        folders = [(bind.target, Path(bind.source).is_dir()) for bind in self.binds]
        pid = os.fork()
        if pid == 0:
            try:
                os.chroot(self.merged)
                os.chdir("/")
                for target, is_folder in folders:
                    (Path(target) if is_folder else Path(target).parent).mkdir(parents=True, exist_ok=True)
                    if not is_folder:
                        Path(target).touch()
            except BaseException as error:  # noqa: BLE001 - bubblewrap will tell
                os.write(2, f"sandbox: {error}\n".encode())
            finally:
                os._exit(0)
        while True:
            ended, status = os.waitpid(-1, 0)
            if ended == pid:
                return
            self._ended(ended, status)

    def down(self) -> None:
        """Kill every process in the sandbox and wait until the kernel has let go of them all."""
        if self.init_pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.init_pidfd, signal.SIGKILL)
        self._wait_for_bwrap()
        self._close_namespaces()

    def _close_namespaces(self) -> None:
        for fd in (self.init_pidfd, self.hold):
            if fd >= 0:
                os.close(fd)
        self.init_pidfd = self.hold = -1

    def _wait_for_bwrap(self) -> None:
        # The kernel ends a pid namespace's init only after all its processes are reaped,
        # and those that entered from outside are reaped through our children.
        while self.bwrap_pid:
            pid, status = os.waitpid(-1, 0)
            self._ended(pid, status)

    def reap(self) -> None:
        """Note every child that has ended."""
        while self.bwrap_pid or self.running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._ended(pid, status)

    def _ended(self, pid: int, status: int) -> None:
        if pid == self.bwrap_pid:
            self.bwrap_pid = 0
            self._close_namespaces()
        elif pid in self.running:
            say("exit", id=self.running.pop(pid), code=os.waitstatus_to_exitcode(status))

    # -- commands ---------------------------------------------------------------------

    def run(self, command: Command, fds: list[int]) -> None:
        """Start a command inside; its end is told as an `exit` event."""
        self.up()
        pid = os.fork()
        if pid == 0:
            _enter_and_run(self.init_pidfd, command, fds)
        self.running[pid] = command.id
        for fd in fds:
            os.close(fd)

    def kill(self, command_id: int) -> None:
        """Kill a command with all its descendants; its end is told as for any other."""
        for pid, running in self.running.items():
            if running == command_id:
                processes.kill_tree(pid)

    # -- end --------------------------------------------------------------------------

    def remove(self) -> None:
        """Remove the sandbox's folder; the overlays are detached first so that nothing is hidden under them."""
        for overlay in reversed(self.setup.overlays):
            linux.unmount(str(self.merged / overlay.target.lstrip("/")))
        cleanup.remove_tree(Path(self.setup.root))


def say(event: str, **values: object) -> None:
    """Tell Harbor's side something: one JSON line on stdout."""
    with contextlib.suppress(BrokenPipeError):
        os.write(1, json.dumps({"event": event, **values}).encode() + b"\n")


def _escape(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _read_until(fd: int, word: bytes, seconds: float) -> bytes:
    deadline = time.monotonic() + seconds
    said = b""
    while word not in said and (left := deadline - time.monotonic()) > 0:
        if select.select([fd], [], [], left)[0]:
            part = os.read(fd, 4096)
            if not part:
                break
            said += part
    return said


def _become(argv: list[str], env: dict[str, str], fds: dict[int, int], keep: tuple[int, ...] = ()) -> None:
    """Turn this forked child into `argv`; never returns."""
    try:
        moved = {target: os.dup(source) for target, source in fds.items()}
        for target, source in moved.items():
            os.dup2(source, target, inheritable=True)
        for fd in keep:
            os.set_inheritable(fd, True)  # noqa: FBT003
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execve(argv[0], argv, env)  # noqa: S606 - no shell wanted
    except BaseException as error:  # noqa: BLE001 - a forked child must never return into the loop
        os.write(2, f"sandbox: {error}\n".encode())
    finally:
        os._exit(127)


def _enter_and_run(init_pidfd: int, command: Command, fds: list[int]) -> None:
    """In a forked child: enter the sandbox, run the command, end with its exit code."""
    code = 126
    try:
        os.setns(init_pidfd, os.CLONE_NEWPID)  # for the next fork, not for this process
        pid = os.fork()
        if pid == 0:
            _run_inside(init_pidfd, command, fds)
        for fd in fds:
            os.close(fd)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        code = 128 - code if code < 0 else code
    except BaseException as error:  # noqa: BLE001 - as above
        with contextlib.suppress(OSError):
            os.write(fds[2], f"sandbox: {error}\n".encode())
    finally:
        os._exit(code)


def _run_inside(init_pidfd: int, command: Command, fds: list[int]) -> None:
    try:
        linux.hide()
        os.setsid()
        os.setns(init_pidfd, _NAMESPACES | (0 if command.network else os.CLONE_NEWNET))
        account = processes.account(command.user)
        os.chdir(command.cwd)
        linux.limit_capabilities()
        processes.become(account)
        os.umask(0o022)
        env = {"HOME": account.home, **command.env}
        argv = list(command.argv)
        argv[0] = shutil.which(argv[0], path=env.get("PATH", os.defpath)) or argv[0]
        _become(argv, env, dict(enumerate(fds)))
    except BaseException as error:  # noqa: BLE001 - as above
        os.write(fds[2], f"sandbox: {error}\n".encode())
    finally:
        os._exit(126)


def _serve(supervisor: Supervisor, wakeup: int) -> bool:
    """Handle messages until told to stop or Harbor is gone; whether the folder shall go."""
    control = supervisor.control
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    while True:
        for fd, _ in poll.poll():
            if fd == wakeup:
                os.read(wakeup, 4096)
                supervisor.reap()
                continue
            message = protocol.receive(control)
            if message is None:
                return True
            kind, body, fds = message
            if kind == "run":
                command = Command(**{**body, "argv": tuple(body["argv"])})
                try:
                    supervisor.run(command, fds)
                except (OSError, RuntimeError) as error:
                    for inherited in fds:
                        os.close(inherited)
                    say("failed", id=command.id, error=str(error))
            elif kind == "kill":
                supervisor.kill(body["id"])
            elif kind == "reset":
                supervisor.down()
                supervisor.binds = tuple(Bind(**bind) for bind in body["binds"])
                say("reset")
                with contextlib.suppress(OSError, RuntimeError):  # said when a command needs it
                    supervisor.up()
            elif kind == "stop":
                return bool(body["remove"])


def main(control_fd: int) -> None:
    """Serve one sandbox on this socket until told to stop or the other side is gone."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    wakeup_read, wakeup_write = os.pipe()
    os.set_blocking(wakeup_write, False)
    signal.set_wakeup_fd(wakeup_write, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    control = socket.socket(fileno=control_fd)
    message = protocol.receive(control)
    if message is None:
        return
    setup = parse_setup(message[1])
    cleanup.hold(Path(setup.root))
    os.umask(0o022)
    supervisor = Supervisor(control, setup)
    remove = True
    try:
        supervisor.mount()
        supervisor.up()
        say("ready")
        remove = _serve(supervisor, wakeup_read)
    except BaseException as error:  # noqa: BLE001 - told to Harbor's side, which raises it
        traceback.print_exc()
        say("broken", error=str(error))
    finally:
        supervisor.down()
        if remove:
            supervisor.remove()
        say("stopped")


def parse_setup(body: dict[str, Any]) -> Setup:
    """A `Setup` from its JSON form."""
    overlays = tuple(Overlay(**{**entry, "lower": tuple(entry["lower"])}) for entry in body["overlays"])
    return Setup(**{**body, "overlays": overlays, "binds": tuple(Bind(**entry) for entry in body["binds"])})


if __name__ == "__main__":
    main(int(sys.argv[1]))
