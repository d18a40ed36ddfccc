import fcntl
import os
import sys
import time
from pathlib import Path

import pytest

from akm_harbor.sandbox.places import Places, places

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is for Linux")


@pytest.fixture
def where(tmp_path: Path) -> Places:
    return places(tmp_path)


def folder(parent: Path, name: str, *, lock: bool = True, age: float = 0) -> Path:
    made = parent / name
    (made / "work" / "work").mkdir(parents=True)
    (made / "data").write_text("x" * 10_000)
    if lock:
        (made / "lock").touch()
    (made / "work" / "work").chmod(0)  # as overlayfs leaves it
    os.utime(made, (time.time() - age,) * 2)
    return made


def test_only_what_nobody_holds_goes(where: Places) -> None:
    from akm_harbor.sandbox.cleanup import sweep

    dead = folder(where.trials, "dead")
    alive = folder(where.trials, "alive")
    starting = folder(where.trials, "starting", lock=False)
    never_started = folder(where.trials, "never-started", lock=False, age=120)
    abandoned = folder(where.images, "k1.building-x", lock=False)
    (where.images / "k1.lock").touch()
    building = folder(where.images, "k2.building-x", lock=False)
    image = folder(where.images, "k3", lock=False)
    with (alive / "lock").open() as one, (where.images / "k2.lock").open("w") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        fcntl.flock(two, fcntl.LOCK_EX)
        swept = sweep(where, images=True)
    assert set(swept.removed) == {dead, never_started, abandoned}
    assert set(swept.running) == {alive, starting, building}
    assert swept.freed > 30_000
    assert all(path.exists() for path in (alive, starting, building, image))
    assert not any(path.exists() for path in (dead, never_started, abandoned))


def test_images_go_when_asked_and_nothing_runs(where: Places) -> None:
    from akm_harbor.sandbox.cleanup import sweep

    image, base = folder(where.images, "k3", lock=False), folder(where.bases, "host-1", lock=False)
    (where.images / "k3.lock").touch()
    assert sweep(where).removed == ()
    assert set(sweep(where, images=True).removed) == {image, base}
    assert not any(where.images.iterdir())


def test_where_it_all_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = f"user-{os.geteuid()}"
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "chosen"))
    assert places().cache == tmp_path / "chosen" / "sandbox" / user
    assert places(tmp_path / "given").cache == tmp_path / "given" / user
    monkeypatch.delenv("AKM_HARBOR_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert places().cache == tmp_path / "xdg" / "akm_harbor" / "sandbox" / user


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    from akm_harbor.sandbox.failures import SandboxError

    (tmp_path / "file").touch()
    with pytest.raises(SandboxError, match="cannot make the sandbox cache"):
        places(tmp_path / "file" / "below")
