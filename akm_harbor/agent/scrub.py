"""Blank out known secret values in what a trial leaves behind."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from harbor.utils.env import is_sensitive_env_key

_SHORTEST = 8


def secret_values(environments: Iterable[Mapping[str, str]]) -> frozenset[bytes]:
    """Values of sensitively named variables that are long enough to be secrets."""
    return frozenset(
        value.encode()
        for environment in environments
        for key, value in environment.items()
        if is_sensitive_env_key(key) and len(value) >= _SHORTEST
    )


def scrub(root: Path, secrets: frozenset[bytes]) -> int:
    """Overwrite every occurrence below `root` with stars of the same length.

    The length stays, so that JSON lines and SQLite pages keep their shape.

    Returns:
        How many files were changed.
    """
    if not secrets:
        return 0
    changed = 0
    for folder, _dirs, names in os.walk(root, followlinks=False):
        for name in names:
            path = Path(folder) / name
            if path.is_symlink() or not path.is_file():
                continue
            try:
                content = path.read_bytes()
                clean = content
                for secret in secrets:
                    clean = clean.replace(secret, b"*" * len(secret))
                if clean != content:
                    path.write_bytes(clean)
                    changed += 1
            except OSError:
                continue  # not ours to write; Harbor's own scrubber comes later
    return changed
