"""How Harbor's side and the supervisor talk: JSON frames one way, JSON lines back.

A frame is four bytes of length, big endian, then that many bytes of JSON. File
descriptors (a command's stdin, stdout, stderr) travel with its first byte.
"""

import json
import os
import socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_HEADER = 4
_MAX_FDS = 3


def send(sock: socket.socket, kind: str, body: "dict[str, Any]", fds: "Sequence[int]" = ()) -> None:
    """Write one frame; the descriptors go with its first bytes."""
    payload = json.dumps({"kind": kind, "body": body}).encode()
    frame = len(payload).to_bytes(_HEADER, "big") + payload
    sent = socket.send_fds(sock, [frame], list(fds)) if fds else 0
    sock.sendall(frame[sent:])


def receive(sock: socket.socket) -> "tuple[str, dict[str, Any], list[int]] | None":
    """Read one frame: kind, body and descriptors; None when the other side is gone."""
    header, fds, _, _ = socket.recv_fds(sock, _HEADER, _MAX_FDS)
    header += _exactly(sock, _HEADER - len(header)) if header else b""
    if len(header) < _HEADER:
        return None
    length = int.from_bytes(header, "big")
    payload = _exactly(sock, length)
    if len(payload) < length:
        return None
    message = json.loads(payload)
    return message["kind"], message["body"], fds


def _exactly(sock: socket.socket, count: int) -> bytes:
    parts = []
    while count and (part := sock.recv(min(count, 1 << 16))):
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def say(event: str, **values: object) -> None:
    """Tell Harbor's side something: one JSON line on stdout."""
    try:
        os.write(1, json.dumps({"event": event, **values}).encode() + b"\n")
    except BrokenPipeError:
        pass  # it is gone; the closed socket will say so
