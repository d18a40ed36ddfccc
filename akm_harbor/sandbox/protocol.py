"""What Harbor's side tells a supervisor, as values; `supervisor.wire` carries them as JSON."""

from dataclasses import dataclass, field


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
    """What a supervisor needs to build a sandbox in the folder `root`.

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
