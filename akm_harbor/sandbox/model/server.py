"""The scripted model on a port, in a background thread of this process."""

import logging
import socket
import threading
from collections.abc import Iterable
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from akm_harbor.errors import AkmHarborError
from akm_harbor.sandbox.model.conversation import Attempt, Conversations
from akm_harbor.sandbox.model.handler import App, handler_for
from akm_harbor.sandbox.model.policy import Policy
from akm_harbor.sandbox.model.policy_file import load_policy
from akm_harbor.sandbox.model.request_log import RequestLog

_LOG = logging.getLogger(__name__)
_GRACE = 2.0


class ScriptedModel:
    """A running server, also as a context manager.

    Args:
        policy: a policy, or the path of a policy file.
        host: address to listen on.
        port: 0 picks a free one.
        log: a JSONL file that gets one line per request.
        taken: attempts that an earlier server has played to the end: a resumed study's.

    Raises:
        AkmHarborError: the policy is wrong, or the port is taken.

    Example:
        >>> with ScriptedModel(Path("policy.yaml")) as model:  # doctest: +SKIP
        ...     print(model.base_url(arm="control"))
    """

    def __init__(
        self,
        policy: Policy | Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log: Path | None = None,
        taken: Iterable[Attempt] = (),
    ) -> None:
        self.policy = load_policy(policy) if isinstance(policy, Path) else policy
        self._log = RequestLog(log)
        self._stopping = threading.Event()
        app = App(self.policy, Conversations(self.policy, taken), self._log, self._stopping)
        try:
            self._server = _Server((host, port), app)
        except OSError as error:
            self._log.close()
            message = f"cannot listen on {host}:{port} ({error.strerror})"
            raise AkmHarborError(message, hint="Choose another --port, or 0 for a free one.") from None
        self.host, self.port = host, int(self._server.server_address[1])
        self._thread: threading.Thread | None = None

    def base_url(self, arm: str | None = None) -> str:
        """The base URL to give a client, for one arm or for none."""
        host = "127.0.0.1" if self.host in {"", "0.0.0.0"} else self.host  # noqa: S104 - compared, not bound
        return f"http://{host}:{self.port}" + (f"/arm/{arm}" if arm else "") + "/v1"

    def start(self) -> Self:
        """Serve in a background thread."""
        if self._thread is None:
            serve = self._server.serve_forever
            self._thread = threading.Thread(target=serve, args=(0.05,), name="scripted-model", daemon=True)
            self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving, end stalls, drop open connections, close the log."""
        if self._thread is not None:
            self._stopping.set()
            self._server.stop()
            self._thread.join()
            self._thread = None
        self._server.server_close()
        self._log.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], app: App) -> None:
        self._open: set[socket.socket] = set()
        self._idle = threading.Condition()
        super().__init__(address, handler_for(app))

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        with self._idle:
            self._open.add(request)
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._idle:
                self._open.discard(request)
                self._idle.notify_all()

    def stop(self) -> None:
        """Stop accepting; give answers under way a moment, then cut what is left."""
        self.shutdown()
        with self._idle:
            for connection in self._open:
                _half_close(connection)
            self._idle.wait_for(lambda: not self._open, timeout=_GRACE)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002 - stdlib signature
        _LOG.debug("connection from %s broke", client_address, exc_info=True)


def _half_close(connection: socket.socket) -> None:
    """End a read that waits for a client with nothing to say; an answer still goes out."""
    try:
        connection.shutdown(socket.SHUT_RD)
    except OSError:
        _LOG.debug("a connection was gone before it could be closed")
