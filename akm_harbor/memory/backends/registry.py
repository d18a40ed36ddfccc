"""Make an arm from its text: `bm25`, `akm:command=curate,synthesis=lead,query=raw`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.errors import UsageError
from akm_harbor.memory.protocol import Backend
from akm_harbor.memory.text import RAW, TRANSFORMS

NAMES = ("none", "full", "oracle", "bm25", "bow", "dense", "grep", "akm", "mem0")
_OPTIONS: Mapping[str, frozenset[str]] = {
    "akm": frozenset({"path", "command", "synthesis", "body"}),
    "dense": frozenset({"model"}),
    "mem0": frozenset({"model"}),
}
_HIDDEN = frozenset({"path", "model"})  # places on one machine: told by digests, not by name


@dataclass(frozen=True, slots=True)
class Arm:
    """A backend with its settings.

    Attributes:
        backend: its name.
        options: its settings, sorted.
        query: what is done to a question before it is asked.
    """

    backend: str
    options: tuple[tuple[str, str], ...] = ()
    query: str = RAW

    @property
    def label(self) -> str:
        """The arm as text, without the places on this machine: the same everywhere."""
        shown = [f"{key}={value}" for key, value in self.options if key not in _HIDDEN]
        shown += [f"query={self.query}"] if self.query != RAW else []
        return f"{self.backend}:{','.join(shown)}" if shown else self.backend


def parse_arm(text: str) -> Arm:
    """Read an arm.

    Raises:
        UsageError: an unknown backend, option or value.
    """
    backend, _, rest = text.partition(":")
    if backend not in NAMES:
        raise UsageError(f"no backend {backend!r}", hint=f"One of: {', '.join(NAMES)}.")
    options: dict[str, str] = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise UsageError(f"{part!r} in arm {text!r} is not name=value")
        options[key] = value
    query = options.pop("query", RAW)
    if query not in TRANSFORMS:
        raise UsageError(f"no query transform {query!r}", hint=f"One of: {', '.join(TRANSFORMS)}.")
    allowed = _OPTIONS.get(backend, frozenset())
    unknown = sorted(options.keys() - allowed)
    if unknown:
        hint = f"It has: {', '.join(sorted(allowed | {'query'}))}."
        raise UsageError(f"backend {backend} has no option {unknown[0]!r}", hint=hint)
    if backend == "akm":
        options = {"command": "curate", "synthesis": "lead", **options}
    return Arm(backend, tuple(sorted(options.items())), query)


def make_backend(arm: Arm, work: Path) -> Backend:
    """Build an arm's backend, with a folder of its own below `work`.

    Raises:
        UsageError: a value that does not exist.
        BackendError: something it needs is missing.
    """
    options = dict(arm.options)
    return _MAKERS[arm.backend](options, work / arm.backend)


def _dense(options: Mapping[str, str], _work: Path) -> Backend:
    from akm_harbor.memory.backends.dense import Dense

    return Dense(_path(options, "model"))


def _grep(_options: Mapping[str, str], work: Path) -> Backend:
    from akm_harbor.memory.backends.grep import Grep

    return Grep(work)


def _akm(options: Mapping[str, str], work: Path) -> Backend:
    from akm_harbor.memory.backends.akm import Akm

    body = options.get("body", "off")
    if body not in ("off", "opening"):
        raise UsageError(f"no body setting {body!r}", hint="One of: off, opening.")
    return Akm(
        Path(options.get("path", "akm")),
        work,
        command=options["command"],
        synthesis=options["synthesis"],
        body_opening=body == "opening",
    )


def _mem0(options: Mapping[str, str], work: Path) -> Backend:
    from akm_harbor.memory.backends.mem0 import Mem0

    return Mem0(work, _path(options, "model"))


def _plain(name: str) -> Callable[[Mapping[str, str], Path], Backend]:
    def make(_options: Mapping[str, str], _work: Path) -> Backend:
        from akm_harbor.memory.backends import lexical, reference

        classes: Mapping[str, Callable[[], Backend]] = {
            "none": reference.NoMemory,
            "full": reference.FullContext,
            "oracle": reference.Oracle,
            "bm25": lexical.Bm25,
            "bow": lexical.BagOfWords,
        }
        return classes[name]()

    return make


def _path(options: Mapping[str, str], key: str) -> Path | None:
    return Path(options[key]) if key in options else None


_MAKERS: Mapping[str, Callable[[Mapping[str, str], Path], Backend]] = {
    **{name: _plain(name) for name in ("none", "full", "oracle", "bm25", "bow")},
    "dense": _dense,
    "grep": _grep,
    "akm": _akm,
    "mem0": _mem0,
}
