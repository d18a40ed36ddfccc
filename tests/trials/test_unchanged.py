import os
import subprocess
import sys
from pathlib import Path

import pytest

from akm_harbor.trials.stamps import FOLDER
from akm_harbor.trials.unchanged import unchanged


def stamps(folder: Path) -> tuple[list[str], list[int], list[int]]:
    paths = [folder, *sorted(folder.iterdir())]
    infos = [path.lstat() for path in paths]
    sizes = [FOLDER if path.is_dir() else info.st_size for path, info in zip(paths, infos, strict=True)]
    return [str(path) for path in paths], sizes, [info.st_mtime_ns for info in infos]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    for i in range(8):
        (inside / str(i)).write_text("x")
    return inside


def test_sizes_mtimes_and_presence_count(folder: Path) -> None:
    paths, sizes, mtimes = stamps(folder)
    assert unchanged(paths, sizes, mtimes)
    assert not unchanged(paths, sizes, [*mtimes[:-1], mtimes[-1] + 1])
    assert not unchanged(paths, [*sizes[:-1], 2], mtimes)
    assert not unchanged([*paths[:-1], f"{folder}/gone"], sizes, mtimes)
    (folder / "new").touch()
    os.utime(folder, ns=(0, 0))
    assert not unchanged(paths, sizes, mtimes)


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="forks only where the system counts threads")
@pytest.mark.parametrize(("touched", "answer"), [(None, True), (0, False), (7, False)])
def test_two_processes_say_what_one_says(folder: Path, touched: int | None, answer: bool) -> None:
    paths, sizes, mtimes = stamps(folder)
    if touched is not None:
        os.utime(folder / str(touched), ns=(0, 0))
    code = (
        "import os; from akm_harbor.trials import unchanged as module; forks = []\n"
        "fork = os.fork; os.fork = lambda: forks.append(1) or fork()\n"
        "os.cpu_count = lambda: 2; module._WORTH = 2\n"
        f"print(module.unchanged({paths!r}, {sizes!r}, {mtimes!r}), len(forks))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.cwd())
    assert done.stdout == f"{answer} 1\n"
