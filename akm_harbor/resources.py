"""Find the files that ship with the package: agents/, arms/, notebooks/, tasks/.

In a wheel they lie in `akm_harbor/_data`; in a checkout, at its root.
"""

import os
import sys
from functools import cache
from pathlib import Path

from akm_harbor.errors import AkmHarborError

_PACKAGE = Path(__file__).resolve().parent


@cache
def data_root() -> Path:
    """The folder that holds agents/, arms/, notebooks/ and tasks/."""
    for root in (_PACKAGE / "_data", _PACKAGE.parent):
        if (root / "agents" / "pins.toml").is_file():
            return root
    raise AkmHarborError("the installation lacks its data files", path=_PACKAGE, hint="Reinstall akm-harbor.")


def resource(*parts: str) -> Path:
    """The path of a shipped file or folder, e.g. `resource("agents", "pins.toml")`.

    Raises:
        AkmHarborError: nothing of that name ships with this version.
    """
    path = data_root().joinpath(*parts)
    if not path.exists():
        raise AkmHarborError("not part of this installation", path=path, hint="Reinstall akm-harbor.")
    return path


def sample_jobs() -> Path:
    """The recorded demo jobs that ship with the package: real Harbor trials, a folder of jobs."""
    return _PACKAGE / "_samples" / "demo-jobs"


def cache_root() -> Path:
    """Where fetched and derived files are kept: `$AKM_HARBOR_CACHE`, else the platform's cache folder."""
    named = os.environ.get("AKM_HARBOR_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "akm_harbor"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "akm_harbor"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "akm_harbor"
