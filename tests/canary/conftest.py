"""Fixtures of the canary tests."""

from pathlib import Path

import pytest

from tests.canary.support import unpack


@pytest.fixture
def collapse(tmp_path: Path) -> Path:
    """akm's data directory after twelve detector cycles, six of them lossy merges."""
    folder = tmp_path / "collapse"
    unpack("collapse/index.db", folder / "index.db")
    unpack("collapse/state.db", folder / "state.db")
    return folder


@pytest.fixture
def healthy(tmp_path: Path) -> Path:
    """akm's data directory of a healthy store of 63 assets."""
    folder = tmp_path / "healthy"
    unpack("healthy/index.db", folder / "index.db")
    unpack("healthy/state.db", folder / "state.db")
    return folder
