"""What the scripted model does with one HTTP request.

Routes: `/v1/chat/completions`, `/arm/<arm>/v1/chat/completions`, `/v1/models`.
"""

import json
import logging
import re
import select
import socket
import struct
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import cast
from urllib.parse import unquote, urlsplit

from akm_harbor.sandbox.model.conversation import Conversation, Conversations
from akm_harbor.sandbox.model.faults import due_fault
from akm_harbor.sandbox.model.policy import Fault, Policy
from akm_harbor.sandbox.model.request_log import RequestLog, RequestRecord
from akm_harbor.sandbox.model.wire import (
    BadRequestError,
    ChatRequest,
    Reply,
    Usage,
    completion,
    error_payload,
    parse_request,
    stream_events,
    usage_of,
)

_LOG = logging.getLogger(__name__)
_ROUTE = re.compile(r"^(?:/arm/(?P<arm>[^/]+))?/v1/(?P<what>chat/completions|models)/?$")
_MAX_BODY = 64 << 20
_READ_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True)
class App:
    """What all requests of a server share."""

    policy: Policy
    conversations: Conversations
    log: RequestLog
    stopping: threading.Event


def handler_for(app: App) -> type[BaseHTTPRequestHandler]:
    """A handler class bound to one server's state, as `http.server` wants it."""
    return type("Handler", (_Handler,), {"app": app})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "akm-harbor-scripted-model"
    timeout = _READ_TIMEOUT
    disable_nagle_algorithm = True

    app: App

    def do_GET(self) -> None:
        """List the models; it also tells that the server is up."""
        route = _ROUTE.match(urlsplit(self.path).path)
        if route is None or route["what"] != "models":
            return self._error(404, "there is nothing here; use /v1/chat/completions or /v1/models", "not_found")
        return self._json(200, {"object": "list", "data": [{"id": "demo", "object": "model", "owned_by": "scripted"}]})

    def do_POST(self) -> None:
        """Answer a chat-completions request and log it."""
        arrived, started = datetime.now(UTC), time.monotonic()
        record = RequestRecord(kind="main")
        try:
            route = _ROUTE.match(urlsplit(self.path).path)
            if route is None or route["what"] != "chat/completions":
                self._read_body()
                return self._error(404, "there is nothing here; use /v1/chat/completions", "not_found")
            record = replace(record, arm=unquote(route["arm"]) if route["arm"] else None)
            record = self._chat(record)
        except BadRequestError as error:
            record = replace(record, status=400, outcome="bad-request")
            self._error(400, str(error), "invalid_request_error")
        except (ConnectionError, TimeoutError):
            record = replace(record, outcome="client-gone")
            self.close_connection = True
        except Exception:  # noqa: BLE001 - a client must get an answer, whatever went wrong
            _LOG.exception("the scripted model failed")
            record = replace(record, status=500, outcome="error")
            self._error(500, "the scripted model failed; see its log", "server_error")
        self.app.log.write(replace(record, seconds=round(time.monotonic() - started, 4)), arrived)
        return None

    def _chat(self, record: RequestRecord) -> RequestRecord:
        request = parse_request(self._read_body())
        conversations = self.app.conversations
        session = self.headers.get("x-session-id") or self.headers.get("x-session-affinity")
        conversation = conversations.open(request, record.arm, session, self.headers.get("x-parent-session-id"))
        fault: Fault | None = None
        reply: Reply | None = None
        with conversation.lock:
            due = due_fault(self.app.policy, conversation, request)
            refused = due is not None and due[1].kind in {"unauthorized", "rate-limited"}
            if not refused:
                malformed = due is not None and due[1].kind == "malformed-tool-call"
                reply = conversations.reply(conversation, request, malformed=malformed)
                due = None if malformed and not reply.calls else due
            if due is not None:
                fault = due[1]
                conversation.faults[due[0]] += 1
            seen_before = conversation.last_prompt_tokens
            conversation.last_prompt_tokens = request.prompt_tokens if request.kind == "main" else seen_before
        record = _described(replace(record, session=session), request, conversation, reply, fault)
        if reply is None:
            conversations.failed(conversation)
            return self._refuse(record, cast("Fault", fault))
        usage = usage_of(request, reply, seen_before)
        return replace(record, outcome=self._answer(request, reply, usage, fault))

    def _refuse(self, record: RequestRecord, fault: Fault) -> RequestRecord:
        if fault.kind == "unauthorized":
            self._error(401, "Incorrect API key provided.", "invalid_request_error", code="invalid_api_key")
            return replace(record, status=401, outcome="fault")
        retry = {"Retry-After": f"{fault.retry_after:g}"}
        self._error(429, "Rate limit reached.", "requests", code="rate_limit_exceeded", headers=retry)
        return replace(record, status=429, outcome="fault")

    def _answer(self, request: ChatRequest, reply: Reply, usage: Usage, fault: Fault | None) -> str:
        """Send the answer, with the fault that belongs in it; what became of it."""
        kind = fault.kind if fault else None
        if request.stream:
            self._start_stream()
        if fault and kind == "stall" and not self._stall(fault.seconds):
            self.close_connection = True
            return "client-gone"
        if request.stream:
            events = stream_events(request.model, reply, usage, with_usage=request.usage_in_stream)
            self._send_events(events, fault.chunks if fault and kind == "cut-stream" else None)
        else:
            body = json.dumps(completion(request.model, reply, usage), ensure_ascii=False).encode()
            self._json_bytes(200, body, cut=kind == "cut-stream")
        return "fault" if fault else "answered"

    def _start_stream(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Transfer-Encoding", "chunked")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.flush()

    def _send_events(self, events: Iterable[bytes], cut_after: int | None) -> None:
        for index, event in enumerate(events):
            if cut_after is not None and index >= cut_after:
                return self._reset()
            self.wfile.write(b"%X\r\n%s\r\n" % (len(event), event))
        self.wfile.write(b"0\r\n\r\n")
        self.close_connection = True
        return None

    def _stall(self, seconds: float) -> bool:
        """Say nothing for a while; False when the client left or the server stops."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.app.stopping.wait(0.05):
                return False
            if select.select([self.connection], [], [], 0)[0]:
                return False
        return True

    def _reset(self) -> None:
        """Drop the connection so that the client sees an error, not an end."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def _read_body(self) -> bytes:
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            self.close_connection = True
            raise BadRequestError("a Content-Length is needed")
        if int(length) > _MAX_BODY:
            self.close_connection = True
            raise BadRequestError(f"the body is larger than {_MAX_BODY} bytes")
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise ConnectionError("the client left in the middle of its request")
        return body

    def _error(
        self, status: int, message: str, kind: str, *, code: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        self._json(status, error_payload(message, kind, code or kind), headers)

    def _json(self, status: int, payload: object, headers: dict[str, str] | None = None) -> None:
        self._json_bytes(status, json.dumps(payload, ensure_ascii=False).encode(), headers=headers)

    def _json_bytes(
        self, status: int, body: bytes, *, headers: dict[str, str] | None = None, cut: bool = False
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if cut else body)
        if cut:
            self._reset()
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - stdlib signature
        _LOG.debug(format, *args)


def _described(
    record: RequestRecord, request: ChatRequest, conversation: Conversation, reply: Reply | None, fault: Fault | None
) -> RequestRecord:
    """The record, filled with everything but the outcome."""
    return replace(
        record,
        kind=request.kind,
        task=conversation.task,
        conversation=conversation.id,
        attempt=conversation.attempt,
        turn=reply.turn if reply else None,
        rule=reply.rule if reply else None,
        model=request.model,
        stream=request.stream,
        tools=request.tools,
        system_chars=sum(len(part) for part in request.system),
        system_parts=tuple(len(part) for part in request.system),
        prompt_tokens=request.prompt_tokens,
        called=tuple(call.tool for call in reply.calls) if reply else (),
        fault=fault.kind if fault else None,
    )
