"""The Harbor side of a sandbox: start its supervisor, run commands, stop it."""

import asyncio
import contextlib
import itertools
import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self, cast, override

from akm_harbor.sandbox.failures import SandboxError, SandboxStartError, SandboxTimeoutError
from akm_harbor.sandbox.protocol import Bind, Command, Setup
from akm_harbor.sandbox.supervisor import trees, wire

_BOOT = "import sys; sys.path.append(sys.argv[1]); from supervisor.main import main; main(int(sys.argv[2]))"
_START_TIMEOUT = 30.0
_STOP_TIMEOUT = 60.0
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

    def __init__(self, setup: Setup, control: socket.socket, events: "_Events") -> None:
        self.setup = setup
        self._control = control
        self._events = events
        self._ids = itertools.count(1)
        self._background: set[asyncio.Task[None]] = set()

    @classmethod
    async def start(cls, setup: Setup) -> Self:
        """Start a supervisor and wait until its sandbox is up.

        Raises:
            SandboxStartError: it could not be built; the message carries the reason. Its folder is gone then.
        """
        log = Path(setup.root) / "supervisor.log"
        sandbox: Self | None = None
        try:
            sandbox = cls(setup, *await _spawn(log))
            ready = sandbox._events.expect("ready")
            wire.send(sandbox._control, "setup", asdict(setup))
            async with asyncio.timeout(_START_TIMEOUT):
                await ready
        except BaseException as error:
            said = log.read_text(errors="replace").strip() if log.exists() else ""
            if sandbox is not None:
                await asyncio.shield(sandbox.stop(remove=True))
            trees.remove(setup.root)
            if isinstance(error, SandboxError | OSError | TimeoutError):
                raise SandboxStartError(
                    f"the sandbox could not be started: {_reason(said) or error}",
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
        stdout: int | None = None,
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
            stdout: a descriptor to write to; collected in the result when None.
            on_output: called with each chunk and its descriptor (1 or 2) as it arrives.

        Raises:
            SandboxTimeoutError: it ran longer than `timeout`.
            SandboxError: it could not be started.
        """
        command = Command(next(self._ids), tuple(argv), env or {}, cwd, user, network)
        ended = self._events.expect(command.id)
        outputs = [_Output(1, on_output), _Output(2, on_output)]
        null = os.open(os.devnull, os.O_RDONLY)
        try:
            fds = [null if stdin is None else stdin, outputs[0].write if stdout is None else stdout, outputs[1].write]
            wire.send(self._control, "run", asdict(command), fds)
        except OSError as error:
            self._events.forget(command.id)
            for output in outputs:
                output.pipe.close()
            raise SandboxError("the sandbox is gone") from error
        finally:
            for fd in (null, outputs[0].write, outputs[1].write):
                os.close(fd)
        readers = [asyncio.create_task(output.collect()) for output in outputs]
        try:
            async with asyncio.timeout(timeout):
                event = await asyncio.shield(ended)
            done, background = await asyncio.wait(readers, timeout=_OUTPUT_GRACE)
            for reader in done:
                reader.result()
        except BaseException as error:
            await self._kill(command.id, ended)
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            for output in outputs:
                output.pipe.close()
            if isinstance(error, TimeoutError):
                raise SandboxTimeoutError(f"Command timed out after {timeout} seconds") from error
            raise
        # What the command left in the background may go on writing: it is read, and dropped,
        # until the process ends.
        self._background |= background
        return Result(event["code"], *(output.take() for output in outputs))

    async def reset(self, binds: Sequence[Bind] | None = None) -> None:
        """Kill every process in the sandbox; files stay. New `binds` hold from the next command on."""
        if binds is not None:
            self.setup = replace(self.setup, binds=tuple(binds))
        done = self._events.expect("reset")
        self._send("reset", {"binds": [asdict(bind) for bind in self.setup.binds]})
        await asyncio.shield(done)

    async def stop(self, *, remove: bool) -> None:
        """Kill what runs, take the mounts away and, if asked, remove the sandbox's folder."""
        with contextlib.suppress(SandboxError):
            self._send("stop", {})
        self._control.close()
        try:
            async with asyncio.timeout(_STOP_TIMEOUT):
                await asyncio.shield(self._events.exited)
        except TimeoutError:  # its sandbox dies with it
            self._events.transport.kill()
            await asyncio.shield(self._events.exited)
        self._events.transport.close()
        await asyncio.gather(*self._background, return_exceptions=True)
        if remove:
            await asyncio.to_thread(trees.remove, self.setup.root)

    # -- talking to the supervisor ------------------------------------------------------

    def _send(self, kind: str, body: dict[str, Any]) -> None:
        try:
            wire.send(self._control, kind, body)
        except OSError as error:
            raise SandboxError("the sandbox is gone") from error

    async def _kill(self, command_id: int, ended: asyncio.Future[dict[str, Any]]) -> None:
        with contextlib.suppress(SandboxError):
            self._send("kill", {"id": command_id})
            with contextlib.suppress(TimeoutError):
                await asyncio.shield(asyncio.wait_for(asyncio.shield(ended), _KILL_TIMEOUT))


class _Events(asyncio.SubprocessProtocol):
    """What the supervisor tells, handed to whoever waits for it.

    Callbacks and no task: Harbor's shutdown cancels every task there is, and needs the
    supervisor's answers to end its trials in order.
    """

    transport: asyncio.SubprocessTransport

    def __init__(self) -> None:
        self.exited: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting: dict[int | str, asyncio.Future[dict[str, Any]]] = {}
        self._unread = b""
        self._error = "the sandbox is gone"
        self._lost = False

    def expect(self, key: int | str) -> asyncio.Future[dict[str, Any]]:
        """A future of the event with this name, or of the command with this id."""
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        if self._lost:
            future.set_exception(SandboxError(self._error))
        else:
            self._waiting[key] = future
        return future

    def forget(self, key: int | str) -> None:
        """Nobody waits for this any more."""
        self._waiting.pop(key, None)

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.SubprocessTransport", transport)

    @override
    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            event = json.loads(line)
            if event["event"] == "broken":
                self._error = event["error"]
            future = self._waiting.pop(event.get("id", event["event"]), None)
            if future is None or future.done():
                continue
            if event["event"] == "failed":
                future.set_exception(SandboxError(f"the command could not be started: {event['error']}"))
            else:
                future.set_result(event)

    @override
    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        self._lost = True
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(SandboxError(self._error))
                future.exception()  # nobody may be waiting any more
        self._waiting.clear()

    @override
    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


async def _spawn(log: Path) -> tuple[socket.socket, _Events]:
    ours, theirs = socket.socketpair()
    try:
        with theirs, log.open("wb") as stderr:
            _, events = await asyncio.get_running_loop().subprocess_exec(
                _Events,
                *(sys.executable, "-I", "-S", "-c", _BOOT, str(Path(__file__).resolve().parent), str(theirs.fileno())),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                start_new_session=True,  # Ctrl-C is for Harbor, which then stops its trials in order
                env={"PATH": os.defpath},  # nothing of the host's environment
            )
    except BaseException:
        ours.close()
        raise
    return ours, events


class _Output:
    """One output of a command: a pipe, and what came through it."""

    def __init__(self, number: int, on_output: OnOutput | None) -> None:
        read, self.write = os.pipe()
        self.pipe = os.fdopen(read, "rb", buffering=0)
        self.number = number
        self.on_output = on_output
        self.content: bytearray | None = bytearray()

    def take(self) -> bytes:
        """What came so far; what comes later is dropped."""
        content, self.content = bytes(self.content or b""), None
        return content

    async def collect(self) -> None:
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), self.pipe)
        try:
            while part := await reader.read(_CHUNK):
                if self.content is None:
                    continue
                self.content += part
                if self.on_output:
                    await self.on_output(part, self.number)
        finally:
            transport.close()


def _reason(log: str) -> str:
    """The line of the supervisor's log that tells why: bubblewrap's own, else the last one."""
    lines = [line for line in log.splitlines() if line.strip()]
    return next((line for line in lines if line.startswith("bwrap:")), lines[-1] if lines else "")
