"""A sandbox's mounts and namespaces: made, entered, torn down.

The overlays are mounted in a mount namespace of the supervisor's own, so the host never
sees them and the kernel takes them away with the last process. Bubblewrap makes the
sandbox proper on top; commands enter its namespaces.
"""

import errno
import json
import os
import select
import signal
import time

from . import linux
from .wire import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

START_TIMEOUT = 20.0
_READY = b"ready"
# Root without a user namespace of its own may write what steers the whole machine; as in Docker.
_READ_ONLY = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/fs")
_MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/latency_stats")


class Namespaces:
    """The sandbox that `setup` (the JSON form of `protocol.Setup`) describes.

    Attributes:
        binds: host paths shown in the sandbox, from its next start on.
        init: pidfd of the sandbox's first process; -1 when it is down.
        running: pid of the child that waits for a command -> that command's id.
    """

    def __init__(self, setup: "dict[str, Any]") -> None:
        self.setup = setup
        self.binds: list[dict[str, Any]] = setup["binds"]
        self.merged = os.path.join(setup["root"], "merged")
        self.init = -1
        self.running: dict[int, int] = {}
        self._bwrap = 0
        self._hold = -1

    def mount(self) -> None:
        """Enter a mount namespace (without root also a user namespace) and mount the overlays there."""
        if self.setup["new_user_namespace"]:
            uid, gid = os.geteuid(), os.getegid()
            os.unshare(os.CLONE_NEWUSER | os.CLONE_NEWNS)
            for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as file:
                    file.write(text)
        else:
            os.unshare(os.CLONE_NEWNS)
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
        os.makedirs(self.merged, exist_ok=True)
        for overlay in self.setup["overlays"]:
            self._mount_overlay(overlay)

    def _mount_overlay(self, overlay: "dict[str, Any]") -> None:
        target = self.merged + overlay["target"]
        for folder in (overlay["upper"], overlay["work"], target):
            os.makedirs(folder, exist_ok=True)
        options = [
            "lowerdir=" + ":".join(_escape(lower) for lower in overlay["lower"]),
            "upperdir=" + _escape(overlay["upper"]),
            "workdir=" + _escape(overlay["work"]),
        ]
        if self.setup["new_user_namespace"]:
            options.append("userxattr")
        if not self.setup["durable"]:  # `volatile`: no fsync for what will be thrown away; Linux 5.10
            try:
                linux.mount("overlay", target, "overlay", 0, ",".join([*options, "volatile"]))
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
            else:
                return
        linux.mount("overlay", target, "overlay", 0, ",".join(options))

    def up(self) -> None:
        """Start bubblewrap unless it runs; afterwards commands can enter its namespaces.

        Raises:
            RuntimeError: bubblewrap could not build the sandbox; it said why on stderr.
        """
        if self.init >= 0:
            return
        self._make_mountpoints()
        status_read, status_write = os.pipe()
        hold_read, hold_write = os.pipe()
        ready_read, ready_write = os.pipe()
        argv = [self.setup["bwrap"], "--bind", self.merged, "/", "--dev", "/dev", "--proc", "/proc"]
        for path in _READ_ONLY:
            argv += ["--ro-bind-try", path, path]
        for path in filter(os.path.exists, _MASKED):
            argv += ["--ro-bind", "/dev/null", path]
        for bind in self.binds:
            argv += ["--ro-bind" if bind["read_only"] else "--bind", bind["source"], bind["target"]]
        argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net", "--die-with-parent"]
        argv += ["--new-session", "--clearenv", "--hostname", self.setup["hostname"]]
        argv += ["--json-status-fd", str(status_write)]
        argv += ["--", "/bin/sh", "-c", f"echo {_READY.decode()}; read _"]
        self._bwrap = os.fork()
        if self._bwrap == 0:
            become(argv, {}, {0: hold_read, 1: ready_write, 2: 2}, keep=(status_write,))
        for fd in (status_write, hold_read, ready_write):
            os.close(fd)
        said = _read_until(ready_read, _READY, START_TIMEOUT)
        os.close(ready_read)
        if _READY not in said:
            os.close(hold_write)
            os.close(status_read)
            self._wait_for(self._bwrap)
            raise RuntimeError("bubblewrap could not build the sandbox")
        status = json.loads(os.read(status_read, 4096).splitlines()[0])
        os.close(status_read)
        self.init = os.pidfd_open(status["child-pid"])
        self._hold = hold_write

    def down(self) -> None:
        """Kill every process in the sandbox and wait until the kernel has let go of them all."""
        if self.init >= 0:
            try:
                signal.pidfd_send_signal(self.init, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended by itself
        self._wait_for(self._bwrap)
        self._close()

    def reap(self) -> None:
        """Note every child that has ended."""
        while self._bwrap or self.running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            self._ended(pid, status)

    def _wait_for(self, pid: int) -> None:
        # The kernel ends a pid namespace's init only after all its processes are reaped,
        # and those that entered from outside are reaped through our children.
        while pid:
            ended, status = os.waitpid(-1, 0)
            self._ended(ended, status)
            if ended == pid:
                return

    def _ended(self, pid: int, status: int) -> None:
        if pid == self._bwrap:
            self._bwrap = 0
            self._close()
        elif pid in self.running:
            say("exit", id=self.running.pop(pid), code=os.waitstatus_to_exitcode(status))

    def _close(self) -> None:
        for fd in (self.init, self._hold):
            if fd >= 0:
                os.close(fd)
        self.init = self._hold = -1

    def _make_mountpoints(self) -> None:
        # In a child that has the sandbox as its root: a link in it leads nowhere else.
        wanted = [(bind["target"], os.path.isdir(bind["source"])) for bind in self.binds]
        pid = os.fork()
        if pid:
            self._wait_for(pid)
            return
        try:
            os.chroot(self.merged)
            os.chdir("/")
            for target, is_folder in wanted:
                os.makedirs(target if is_folder else os.path.dirname(target), exist_ok=True)
                if not is_folder:
                    os.close(os.open(target, os.O_CREAT, 0o644))
        except BaseException as error:  # noqa: BLE001 - a forked child never returns; bubblewrap will fail and tell
            os.write(2, f"sandbox: {error}\n".encode())
        finally:
            os._exit(0)


def become(argv: list[str], env: dict[str, str], fds: dict[int, int], keep: tuple[int, ...] = ()) -> None:
    """Turn this forked child into `argv`, with these descriptors; never returns."""
    try:
        moved = {target: os.dup(source) for target, source in fds.items()}
        for target, source in moved.items():
            os.dup2(source, target, inheritable=True)
        for fd in keep:
            os.set_inheritable(fd, True)  # noqa: FBT003
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.execve(argv[0], argv, env)  # noqa: S606 - no shell wanted
    except BaseException as error:  # noqa: BLE001 - as above
        os.write(2, f"sandbox: {error}\n".encode())
    finally:
        os._exit(127)


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
