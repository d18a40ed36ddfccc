"""How the Harbor process and a trial's supervisor talk: JSON frames one way, JSON lines back.

A frame is four bytes of length, big endian, then that many bytes of JSON. File
descriptors (the command's stdin, stdout, stderr) travel with the first byte.
"""

import json
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

_HEADER = 4
_MAX_FDS = 3


@dataclass(frozen=True, slots=True)
class Overlay:
    """One overlay mount: read-only `lower` folders, topmost first, with a writable `upper`."""

    target: str
    lower: tuple[str, ...]
    upper: str
    work: str


@dataclass(frozen=True, slots=True)
class Bind:
    """A host path seen inside the sandbox."""

    source: str
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Setup:
    """What a supervisor needs to build a sandbox; `root` is its folder, removed at the end.

    `durable`: what is written has to survive a crash of the machine (an image is built).
    """

    root: str
    overlays: tuple[Overlay, ...]
    binds: tuple[Bind, ...]
    hostname: str
    bwrap: str
    new_user_namespace: bool
    durable: bool = False


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `user` is `name`, `uid`, `name:group` or `uid:gid`."""

    id: int
    argv: tuple[str, ...]
    env: dict[str, str] = field(default_factory=dict)
    cwd: str = "/"
    user: str = "0"
    network: bool = True


def encode(kind: str, body: "dict[str, Any] | Setup | Command") -> bytes:
    """A frame that carries `body` as a message of this kind."""
    payload = json.dumps({"kind": kind, "body": body if isinstance(body, dict) else asdict(body)}).encode()
    return len(payload).to_bytes(_HEADER, "big") + payload


def send(sock: socket.socket, frame: bytes, fds: Sequence[int] = ()) -> None:
    """Write one frame; the descriptors go with its first bytes."""
    sent = socket.send_fds(sock, [frame], list(fds)) if fds else 0
    sock.sendall(frame[sent:])


def receive(sock: socket.socket) -> tuple[str, Any, list[int]] | None:
    """Read one frame: kind, body and descriptors; None when the other side is gone."""
    data, fds, _, _ = socket.recv_fds(sock, _HEADER, _MAX_FDS)
    while 0 < len(data) < _HEADER:
        more = sock.recv(_HEADER - len(data))
        if not more:
            return None
        data += more
    if not data:
        return None
    left = int.from_bytes(data, "big")
    parts = []
    while left:
        part = sock.recv(min(left, 1 << 16))
        if not part:
            return None
        parts.append(part)
        left -= len(part)
    message = json.loads(b"".join(parts))
    return message["kind"], message["body"], fds
