import json
import shutil
import time
from pathlib import Path

import pytest

from akm_harbor.errors import AkmHarborError
from akm_harbor.trials.tasks import open_tasks, task_digest
from tests.trials.conftest import RECORDINGS

TASKS = RECORDINGS / "p0-tasks"
ZORBL = "sha256:1d45488663f62408bdf7feec6f08583a02a3f44ec670fd0306d9c536120822ef"


def test_digests_are_the_ones_harbor_wrote() -> None:
    locks = [json.loads(p.read_text())["task"] for p in (RECORDINGS / "p0").glob("*/*/lock.json")]
    assert len(locks) == 9
    for lock in locks:
        assert task_digest(str(TASKS / lock["name"])) == lock["digest"]


def test_a_digest_we_cannot_be_sure_of_is_none(tmp_path: Path) -> None:
    task = tmp_path / "task"
    shutil.copytree(TASKS / "zorbl-listen", task)
    assert task_digest(str(task)) == ZORBL
    (task / "tests" / "__pycache__").mkdir()
    (task / "tests" / "__pycache__" / "x.pyc").touch()
    (task / "notes.txt").touch()
    assert task_digest(str(task)) == ZORBL
    (task / "tests" / "link").symlink_to("test.sh")
    assert task_digest(str(task)) is None
    (task / "tests" / "link").unlink()
    (task / ".gitignore").write_text("x")
    assert task_digest(str(task)) is None


def test_rows_and_lookups() -> None:
    tasks = open_tasks([TASKS], [], time.time_ns())
    task = tasks.of(ZORBL, None, None, "")
    assert task is not None
    assert task.gold == ("knowledge/zorbl-service-format",)
    assert task.row["task_name"] == "p0/zorbl-listen"
    assert (task.row["path"], task.row["slice"], task.row["bundle"]) == ("p0-tasks/zorbl-listen", "fictional", "zorbl")
    assert tasks.of(None, "p0/zorbl-listen", None, "") is task
    assert tasks.of("sha256:other", "prefix/zorbl-listen", None, "") is task
    assert tasks.of(None, "unknown", None, "") is None


def test_a_config_cannot_make_us_read_outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    for place in (work / "tasks" / "inside", outside / "secret"):
        place.mkdir(parents=True)
        (place / "task.toml").write_text('[metadata]\ndomain = "d"\n')
    (work / "link").symlink_to(outside / "secret")
    monkeypatch.chdir(work)
    tasks = open_tasks([TASKS], [], time.time_ns())
    assert tasks.of(None, None, "tasks/inside", "/srv/jobs/j") is not None
    for path in (
        str(outside / "secret"),
        "../outside/secret",
        "link",
        "tasks/../../outside/secret",
        "https://x#tasks/inside",
    ):
        assert tasks.of(None, None, path, "/srv/jobs/j") is None


def test_two_tasks_of_one_name_are_found_by_digest_only(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task.toml").write_text(f'[task]\nname = "org/same"\n[metadata]\ndomain = "{name}"\n')
    tasks = open_tasks([tmp_path], [], time.time_ns())
    assert tasks.of(None, "org/same", None, "") is None
    two = tasks.of(task_digest(str(tmp_path / "two")), "org/same", None, "")
    assert two is not None
    assert two.row["domain"] == "two"


def test_a_broken_task_is_a_finding(tmp_path: Path) -> None:
    shutil.copytree(TASKS / "zorbl-listen", tmp_path / "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "task.toml").write_text("[task\n")
    tasks = open_tasks([tmp_path], [], time.time_ns())
    assert [(Path(f.path).parent.name, f.kind) for f in tasks.findings] == [("bad", "invalid-task")]
    assert sum(1 for t in tasks.by_path.values() if t) == 1


def test_a_folder_without_tasks_is_an_error_when_it_was_asked_for(tmp_path: Path) -> None:
    with pytest.raises(AkmHarborError, match="no such folder"):
        open_tasks([tmp_path / "none"], [], 0)
    with pytest.raises(AkmHarborError, match="no Harbor task"):
        open_tasks([tmp_path], [], 0)
