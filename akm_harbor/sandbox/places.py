"""Where the sandbox keeps things on the host: bases, built images, the folders of running trials."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.sandbox.failures import SandboxError


@dataclass(frozen=True, slots=True)
class Places:
    """Folders below one cache folder, apart for each user of the machine."""

    cache: Path

    @property
    def bases(self) -> Path:
        """Skeletons under every sandbox."""
        return self.cache / "bases"

    @property
    def images(self) -> Path:
        """Layers built from Dockerfiles, by content."""
        return self.cache / "images"

    @property
    def trials(self) -> Path:
        """Writable layers of running sandboxes."""
        return self.cache / "trials"


def places(cache_dir: str | Path | None = None) -> Places:
    """The folders to use: `cache_dir`, else `$AKM_HARBOR_CACHE/sandbox`, else the user's cache.

    Raises:
        SandboxError: the folder cannot be made.
    """
    if cache_dir is not None:
        base = Path(cache_dir).expanduser()
    elif chosen := os.environ.get("AKM_HARBOR_CACHE"):
        base = Path(chosen).expanduser() / "sandbox"
    else:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = Path(home) / "akm_harbor" / "sandbox"
    uid = os.geteuid() if sys.platform != "win32" else 0
    cache = base.resolve() / f"user-{uid}"
    found = Places(cache)
    try:
        for folder in (found.bases, found.images, found.trials):
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SandboxError(f"cannot make the sandbox cache: {error}", path=cache) from error
    return found
