import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.tables import atomic
from akm_harbor.tables.atomic import filled_whole, recover, replaced_directory, write_file


def fill(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "a").write_text(text)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


@pytest.fixture(params=[True, False], ids=["exchange", "two renames"])
def swap(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel's exchange where there is one, and as where there is none."""
    if not request.param:
        monkeypatch.setattr(atomic, "_exchange", lambda a, b: False)


@pytest.mark.usefixtures("swap")
def test_the_new_folder_takes_the_old_ones_place(tmp_path: Path) -> None:
    fill(tmp_path / "t", "old")
    (tmp_path / "t" / "gone").touch()
    with replaced_directory(tmp_path / "t") as new:
        assert (tmp_path / "t" / "a").read_text() == "old"
        fill(new, "new")
    assert (tmp_path / "t" / "a").read_text() == "new"
    assert names(tmp_path / "t") == ["a"]
    assert names(tmp_path) == ["t"]


@pytest.mark.usefixtures("swap")
def test_an_error_leaves_everything_as_it_was(tmp_path: Path) -> None:
    fill(tmp_path / "t", "old")

    def interrupted() -> None:
        with replaced_directory(tmp_path / "t") as new:
            fill(new, "new")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert (tmp_path / "t" / "a").read_text() == "old"
    assert names(tmp_path) == ["t"]


def test_a_replacement_killed_between_its_two_renames_is_undone(tmp_path: Path) -> None:
    fill(tmp_path / ".t.old", "old")
    recover(tmp_path / "t")
    assert (tmp_path / "t" / "a").read_text() == "old"
    assert names(tmp_path) == ["t"]


def test_what_dead_processes_left_is_swept_and_what_living_ones_use_is_not(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    fill(tmp_path / f".t.new-{dead.pid}-0a", "half")
    fill(tmp_path / f".t.new-{os.getpid()}-0b", "half")
    fill(tmp_path / ".t.new-odd", "somebody else's")
    recover(tmp_path / "t")
    assert names(tmp_path) == [f".t.new-{os.getpid()}-0b", ".t.new-odd"]


def test_a_link_to_a_folder_is_replaced_not_followed(tmp_path: Path) -> None:
    fill(tmp_path / "real", "old")
    (tmp_path / "t").symlink_to(tmp_path / "real")
    with replaced_directory(tmp_path / "t") as new:
        fill(new, "new")
    assert (tmp_path / "t" / "a").read_text() == "new"
    assert (tmp_path / "real" / "a").read_text() == "old"


def test_write_file(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "file"
    write_file(target, "text")
    write_file(target, b"bytes")
    assert target.read_bytes() == b"bytes"
    assert names(tmp_path / "deep") == ["file"]


def test_a_pipe_or_device_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(pipe, "told")
        assert os.read(reader, 10) == b"told"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_folder_is_filled_or_left_as_it_was(tmp_path: Path, failure: BaseException, *, there: bool) -> None:
    folder = tmp_path / "new"
    if there:
        folder.mkdir()
    with pytest.raises(AkmHarborError if isinstance(failure, OSError) else KeyboardInterrupt) as caught:
        filled(folder, failure)
    assert folder.exists() == there
    assert not there or list(folder.iterdir()) == []
    if isinstance(failure, OSError):
        assert "No space left on device" in str(caught.value)
    filled(folder, None)
    assert (folder / "a" / "b").read_text() == "x"


def filled(folder: Path, failure: BaseException | None) -> None:
    with filled_whole(folder):
        (folder / "a").mkdir(parents=True)
        (folder / "a" / "b").write_text("x")
        (folder / "c").symlink_to(folder / "a")
        if failure is not None:
            raise failure
