"""The Harbor side of a sandbox: start its supervisor, run commands, stop it."""

import asyncio
import contextlib
import itertools
import json
import os
import shutil
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from akm_harbor.sandbox import protocol
from akm_harbor.sandbox.failures import SandboxError, SandboxTimeoutError
from akm_harbor.sandbox.protocol import Bind, Command, Setup

_PACKAGE_PARENT = Path(__file__).resolve().parents[2]
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from akm_harbor.sandbox.supervisor import main; main(int(sys.argv[2]))"
)
_START_TIMEOUT = 30.0
_KILL_TIMEOUT = 10.0
# How long to wait for the end of output once a command is over: a process it left in
# the background may hold the pipe open for ever.
_OUTPUT_GRACE = 0.2
_CHUNK = 1 << 16

OnOutput = Callable[[bytes, int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended: its exit code (128 + n for signal n) and what it wrote."""

    code: int
    stdout: bytes
    stderr: bytes


class Sandbox:
    """One running sandbox. Make it with `Sandbox.start`, end it with `stop`."""

    def __init__(self, process: asyncio.subprocess.Process, control: socket.socket, setup: Setup) -> None:
        self.setup = setup
        self._process = process
        self._control = control
        self._ids = itertools.count(1)
        self._waiting: dict[int | str, asyncio.Future[dict[str, Any]]] = {}
        self._pump = asyncio.create_task(self._read_events(), name="sandbox-events")
        self._lost = False

    @classmethod
    async def start(cls, setup: Setup) -> Self:
        """Start a supervisor and wait until its sandbox is up.

        Raises:
            SandboxError: it could not be built; the message carries the reason.
        """
        ours, theirs = socket.socketpair()
        log = Path(setup.root) / "supervisor.log"
        with theirs, log.open("wb") as stderr:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-S", "-E", "-c", _BOOT, str(_PACKAGE_PARENT), str(theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,
                env={"PATH": os.defpath},  # nothing of the host's environment
            )  # fmt: skip
        sandbox = cls(process, ours, setup)
        ready = sandbox._expect("ready")
        try:
            protocol.send(ours, protocol.encode("setup", setup))
            async with asyncio.timeout(_START_TIMEOUT):
                await ready
        except BaseException as error:
            said = log.read_text(errors="replace").strip() if log.exists() else ""
            await asyncio.shield(sandbox.stop(remove=True))
            if isinstance(error, SandboxError | OSError | TimeoutError):
                reason = _reason(said) or str(error)
                raise SandboxError(
                    f"the sandbox could not be started: {reason}",
                    hint="`akm-harbor sandbox check` tells what this machine lacks.",
                ) from error
            raise
        return sandbox

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: dict[str, str] | None = None,
        cwd: str = "/",
        user: str = "0",
        network: bool = True,
        timeout: float | None = None,  # noqa: ASYNC109 - Harbor's contract: the environment enforces it
        stdin: int | None = None,
        on_output: OnOutput | None = None,
    ) -> Result:
        """Run one command to its end.

        When it takes too long, or the caller is cancelled, the command and all its
        descendants are dead before this returns.

        Args:
            argv: the program, looked up in the sandbox's PATH, and its arguments.
            env: the whole environment of the command, but for HOME.
            cwd: working directory inside the sandbox.
            user: `name`, `uid`, `name:group` or `uid:gid`.
            network: whether it shares the host's network; else it sees a loopback only.
            timeout: seconds.
            stdin: a descriptor to read from; nothing when None.
            on_output: called with each chunk and its descriptor (1 or 2) as it arrives.

        Raises:
            SandboxTimeoutError: it ran longer than `timeout`.
            SandboxError: it could not be started.
        """
        command = Command(next(self._ids), tuple(argv), env or {}, cwd, user, network)
        ended = self._expect(command.id)
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            protocol.send(
                self._control, protocol.encode("run", command), [null if stdin is None else stdin, out_write, err_write]
            )
        except OSError as error:
            for fd in (out_read, err_read):
                os.close(fd)
            self._waiting.pop(command.id, None)
            raise SandboxError("the sandbox is gone") from error
        finally:
            for fd in (null, out_write, err_write):
                os.close(fd)
        output = [bytearray(), bytearray()]
        readers = [
            asyncio.create_task(_collect(fd, number, output[number - 1], on_output))
            for fd, number in ((out_read, 1), (err_read, 2))
        ]
        try:
            async with asyncio.timeout(timeout):
                event = await asyncio.shield(ended)
            await asyncio.wait(readers, timeout=_OUTPUT_GRACE)
        except BaseException as error:
            await self._kill(command.id, ended)
            if isinstance(error, TimeoutError):
                raise SandboxTimeoutError(f"Command timed out after {timeout} seconds") from error
            raise
        finally:
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
        return Result(event["code"], bytes(output[0]), bytes(output[1]))

    async def reset(self, binds: Sequence[Bind] | None = None) -> None:
        """Kill every process in the sandbox; files stay. New `binds` hold from the next command on."""
        if binds is not None:
            self.setup = Setup(
                root=self.setup.root,
                overlays=self.setup.overlays,
                binds=tuple(binds),
                hostname=self.setup.hostname,
                bwrap=self.setup.bwrap,
                new_user_namespace=self.setup.new_user_namespace,
            )
        done = self._expect("reset")
        self._send("reset", {"binds": [_as_dict(bind) for bind in self.setup.binds]})
        await asyncio.shield(done)

    async def stop(self, *, remove: bool) -> None:
        """Kill what runs, take the mounts away and, if asked, remove the sandbox's folder."""
        with contextlib.suppress(SandboxError):
            self._send("stop", {"remove": remove})
        self._control.close()
        await self._process.wait()
        await self._pump
        if remove:
            await asyncio.to_thread(shutil.rmtree, self.setup.root, ignore_errors=True)

    # -- talking to the supervisor ------------------------------------------------------

    def _send(self, kind: str, body: dict[str, Any]) -> None:
        try:
            protocol.send(self._control, protocol.encode(kind, body))
        except OSError as error:
            raise SandboxError("the sandbox is gone") from error

    def _expect(self, key: int | str) -> asyncio.Future[dict[str, Any]]:
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if self._lost:
            future.set_exception(SandboxError("the sandbox is gone"))
        else:
            self._waiting[key] = future
        return future

    async def _read_events(self) -> None:
        assert self._process.stdout is not None
        error = "the sandbox supervisor ended"
        while line := await self._process.stdout.readline():
            event = json.loads(line)
            if event["event"] == "broken":
                error = event["error"]
            key = event.get("id", event["event"])
            future = self._waiting.pop(key, None)
            if future is None or future.done():
                continue
            if event["event"] == "failed":
                future.set_exception(SandboxError(f"the command could not be started: {event['error']}"))
            else:
                future.set_result(event)
        self._lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxError(error))
                future.exception()  # nobody may be waiting any more
        self._waiting.clear()

    async def _kill(self, command_id: int, ended: asyncio.Future[dict[str, Any]]) -> None:
        with contextlib.suppress(SandboxError):
            self._send("kill", {"id": command_id})
            with contextlib.suppress(TimeoutError):
                await asyncio.shield(asyncio.wait_for(asyncio.shield(ended), _KILL_TIMEOUT))


async def _collect(fd: int, number: int, into: bytearray, on_output: OnOutput | None) -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    pipe = os.fdopen(fd, "rb", buffering=0)
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
    try:
        while part := await reader.read(_CHUNK):
            into += part
            if on_output:
                await on_output(part, number)
    finally:
        transport.close()


def _as_dict(bind: Bind) -> dict[str, Any]:
    return {"source": bind.source, "target": bind.target, "read_only": bind.read_only}


def _reason(log: str) -> str:
    """The line of the supervisor's log that tells why: bubblewrap's own, else the last one."""
    lines = [line for line in log.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("bwrap:")), lines[-1] if lines else "")
