"""Run akm's command line in an environment of its own, and say in one word what went wrong."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.memory.protocol import BackendError

BUNDLE = "bench"
_TIMEOUT_S = 300
_BUSY = 75
_BUSY_RETRIES = 5
# better-sqlite3 without its compiled part: akm then answers `ok` with exit 0 and stores nothing.
_NO_SQLITE = re.compile(r"bindings file|better[-_]sqlite3|no sqlite|SQLITE_CANTOPEN", re.IGNORECASE)
_KEPT = ("PATH", "SYSTEMROOT")


class AkmError(BackendError):
    """akm could not do what it was asked."""

    kind = "akm-failed"


class AkmMissingError(AkmError):
    """There is no such program, or it cannot be started."""

    kind = "akm-missing"


class AkmExitError(AkmError):
    """akm ended with an exit code other than 0."""

    kind = "akm-exit"

    def __init__(self, message: str, *, code: str | None, status: int, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.status = status


class AkmNoSqliteError(AkmError):
    """akm runs without a SQLite binding: exit 0, nothing stored."""

    kind = "akm-no-sqlite"


class AkmIndexError(AkmError):
    """The index does not hold what was written."""

    kind = "akm-index-incomplete"


class AkmSelfCheckError(AkmError):
    """A document that must be found is not."""

    kind = "akm-self-check"


class AkmOutputError(AkmError):
    """akm printed something other than the JSON it was asked for."""

    kind = "akm-output"


@dataclass(frozen=True, slots=True)
class Reply:
    """What one call of akm returned.

    Attributes:
        data: its JSON.
        stderr: its other channel.
    """

    data: dict[str, Any]
    stderr: str


class AkmCli:
    """One akm with one store, below one folder; nothing of the user's own akm is seen or touched."""

    def __init__(self, executable: Path, work: Path, settings: Mapping[str, Any] | None = None) -> None:
        """Name the program and where its store goes.

        Args:
            executable: a path, or a name on PATH.
            work: a folder of its own.
            settings: entries added to its configuration.

        Raises:
            AkmMissingError: there is no such program.
        """
        found = shutil.which(executable)
        if found is None:
            raise AkmMissingError("no such program", path=executable, hint="Name an akm executable with akm:path=PATH.")
        self.executable = Path(found)
        self.work = work
        self._settings = dict(settings or {})

    @property
    def bundle(self) -> Path:
        """The folder that akm indexes."""
        return self.work / "bundle"

    @property
    def state_db(self) -> Path:
        """Where akm keeps its events."""
        return self.work / "data" / "state.db"

    def create(self) -> None:
        """Make an empty store; what was there is gone."""
        shutil.rmtree(self.work, ignore_errors=True)
        for name in ("config", "data", "cache", "state", "home", "tmp"):
            (self.work / name).mkdir(parents=True)
        (self.bundle / "memories").mkdir(parents=True)
        (self.work / "config" / "config.json").write_text(json.dumps(self.config()))

    def config(self) -> dict[str, Any]:
        """Offline, deterministic, keyword search only; the keys that every akm since 0.9.0 accepts."""
        return {
            "configVersion": "0.9.0",
            "semanticSearchMode": "off",
            "registries": [],
            "bundles": {BUNDLE: {"path": str(self.bundle), "writable": True}},
            "defaultBundle": BUNDLE,
            "output": {"format": "json", "detail": "brief"},
            **self._settings,
        }

    def environment(self) -> dict[str, str]:
        """The whole environment of a call: every ambient AKM_ variable is left out, and no home is shared."""
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        folders = {
            f"AKM_{name.upper()}_DIR": str(self.work / name) for name in ("config", "data", "cache", "state", "bundle")
        }
        return {
            **kept,
            **folders,
            "HOME": str(self.work / "home"),
            "TMPDIR": str(self.work / "tmp"),
            "AKM_EVENT_SOURCE": "audit",
            "AKM_FORCE_INIT_TMP_STASH": "1",
            "AKM_FORCE_SETUP_TMP_STASH": "1",
            "LC_ALL": "C.UTF-8",
            "TZ": "UTC",
            "NO_COLOR": "1",
        }

    def call(self, *arguments: str) -> Reply:
        """Run one command and return its JSON; a store that is busy is asked again.

        Raises:
            AkmMissingError: the program cannot be started.
            AkmExitError: it ended with an error.
            AkmNoSqliteError: it has no SQLite binding.
            AkmOutputError: it printed no JSON object.
        """
        for attempt in range(_BUSY_RETRIES + 1):
            done = self._run(arguments)
            if done.returncode != _BUSY or attempt == _BUSY_RETRIES:
                break
            time.sleep(0.2 * 2**attempt)
        if _NO_SQLITE.search(done.stderr):
            raise AkmNoSqliteError(
                f"has no working SQLite: {_last_line(done.stderr)}",
                path=self.executable,
                hint="Run it under Bun, or install it so that better-sqlite3 is compiled.",
            )
        if done.returncode != 0:
            raise self._failure(arguments, done)
        try:
            data = json.loads(done.stdout)
        except ValueError as error:
            raise AkmOutputError(
                f"`akm {arguments[0]}` printed no JSON: {done.stdout[:120]!r}", path=self.executable
            ) from error
        if not isinstance(data, dict):
            raise AkmOutputError(f"`akm {arguments[0]}` printed {type(data).__name__}, not an object")
        return Reply(data, done.stderr)

    def version(self) -> str:
        """What it calls itself; recorded, never relied on."""
        lines = self._run(("--version",)).stdout.strip().splitlines()
        return lines[-1] if lines else "unknown"

    def build_sha(self) -> str:
        """Digest of the executable file (of what a link points at)."""
        with self.executable.resolve().open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()

    def index_bytes(self) -> int:
        """Size of the index with its log."""
        return sum(file.stat().st_size for file in (self.work / "data").glob("index.db*") if file.is_file())

    def _run(self, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        (self.work / "home").mkdir(parents=True, exist_ok=True)
        try:
            return subprocess.run(
                [str(self.executable), *arguments],
                cwd=self.work / "home",
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                encoding="utf-8",
                errors="replace",
                timeout=_TIMEOUT_S,
                check=False,
            )
        except OSError as error:
            raise AkmMissingError(f"cannot be started ({error.strerror})", path=self.executable) from error
        except subprocess.TimeoutExpired as error:
            raise AkmError(f"`akm {arguments[0]}` did not end within {_TIMEOUT_S} s", path=self.executable) from error

    def _failure(self, arguments: tuple[str, ...], done: subprocess.CompletedProcess[str]) -> AkmExitError:
        """The error envelope is the last JSON object on stderr; progress lines may stand before it."""
        start = done.stderr.find("{")
        envelope: Any = None
        if start >= 0:
            try:
                envelope = json.loads(done.stderr[start:])
            except ValueError:
                envelope = None
        envelope = envelope if isinstance(envelope, dict) else {}
        said = envelope.get("error") or _last_line(done.stderr) or "it said nothing"
        return AkmExitError(
            f"`akm {arguments[0]}` ended with exit code {done.returncode}: {said}",
            code=envelope.get("code"),
            status=done.returncode,
            hint=envelope.get("hint"),
        )


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""
