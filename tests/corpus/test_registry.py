"""Releasing versions, and noticing that a released one has changed."""

import json

import pytest
from harbor.models.registry import Registry

from akm_harbor.corpus.registry import register, registry_complaints
from akm_harbor.corpus.task import read_task
from akm_harbor.errors import AkmHarborError, UsageError

from .support import change, small_corpus, write


def read(tasks):
    return [read_task(path) for path in sorted(tasks.iterdir()) if path.is_dir()]


@pytest.fixture
def tasks(tmp_path):
    tasks = small_corpus(tmp_path, "works--gauge", "works--valve")
    change(tasks / "works--valve/task.toml", ('slice = "train"', 'slice = "eval"'))
    return tasks


def test_a_version_is_written_for_each_slice(tasks):
    lines = register(tasks, read(tasks), "1.0")
    assert [line.partition(",")[0] for line in lines] == ["akm-tasks-train@1.0: 1 tasks", "akm-tasks-eval@1.0: 1 tasks"]
    registry = Registry.from_path(tasks / "registry.json")
    assert [(d.name, d.version, [t.name for t in d.tasks]) for d in registry.datasets] == [
        ("akm-tasks-train", "1.0", ["works--gauge"]),
        ("akm-tasks-eval", "1.0", ["works--valve"]),
    ]
    assert registry_complaints(tasks, read(tasks)) == []


def test_changes_are_noticed(tasks):
    register(tasks, read(tasks), "1.0")
    write(tasks / "works--gauge/instruction.md", "Write /app/answer.txt.\n")
    (line,) = registry_complaints(tasks, read(tasks))
    assert line == "akm-tasks-train@1.0: works--gauge has changed since its release"
    with pytest.raises(AkmHarborError, match="released with other content"):
        register(tasks, read(tasks), "1.0")


@pytest.mark.parametrize("version", ["", "1\n0", "a/b", " 1", "@1"])
def test_what_is_no_version_is_refused(tasks, version):
    with pytest.raises(UsageError, match="is no version"):
        register(tasks, read(tasks), version)
    assert not (tasks / "registry.json").exists()


def test_a_new_version_replaces_what_cannot_be_run_any_more(tasks):
    register(tasks, read(tasks), "1.0")
    write(tasks / "works--gauge/instruction.md", "Write /app/answer.txt.\n")
    register(tasks, read(tasks), "1.1")
    versions = {(one["name"], one["version"]) for one in json.loads((tasks / "registry.json").read_text())}
    assert versions == {("akm-tasks-train", "1.1"), ("akm-tasks-eval", "1.0"), ("akm-tasks-eval", "1.1")}
    assert "akm-tasks-train@1.0" in json.loads((tasks / "registry.lock.json").read_text())
    assert registry_complaints(tasks, read(tasks)) == []


def test_additions_losses_and_edits_by_hand_are_noticed(tasks):
    register(tasks, read(tasks), "1.0")
    everything = read(tasks)
    assert registry_complaints(tasks, everything[:1]) == ["akm-tasks-eval@1.0: works--valve is gone"]
    lock = json.loads((tasks / "registry.lock.json").read_text())
    del lock["akm-tasks-eval@1.0"]
    (tasks / "registry.lock.json").write_text(json.dumps(lock))
    assert registry_complaints(tasks, everything)[0] == "akm-tasks-eval@1.0 has no digest in registry.lock.json"
    registry = json.loads((tasks / "registry.json").read_text())
    (tasks / "registry.json").write_text(json.dumps(registry[:1]))
    assert registry_complaints(tasks, everything) == ["works--valve is in no dataset"]
    registry[0]["tasks"] = []
    (tasks / "registry.json").write_text(json.dumps(registry[:1]))
    assert "akm-tasks-train@1.0: its list of tasks is not the released one" in registry_complaints(tasks, everything)
    (tasks / "registry.json").write_text("{")
    with pytest.raises(AkmHarborError, match="not valid JSON"):
        registry_complaints(tasks, everything)
