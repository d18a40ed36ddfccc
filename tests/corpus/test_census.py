"""The shipped corpus is what it says it is."""

import hashlib
from collections import Counter

import pytest

from akm_harbor.corpus import lint
from akm_harbor.corpus.bundle import assets
from akm_harbor.corpus.registry import registry_complaints
from akm_harbor.corpus.sync import sync
from akm_harbor.corpus.task import read_task, task_folders
from akm_harbor.resources import resource


@pytest.fixture(scope="module")
def tasks():
    return [read_task(folder) for folder in task_folders(resource("tasks"))]


def count(tasks, key):
    return Counter(task.text(key) for task in tasks)


def test_forty_six_tasks(tasks):
    main = [task for task in tasks if task.text("slice") != "local"]
    assert count(main, "domain") == {
        "az-cli": 6, "docker-homelab": 6, "drillbit": 7, "inkwell": 9, "opencode": 6, "workflow-compliance": 11,
        "reference": 1,
    }  # fmt: skip
    assert count(main, "verifier") == {"script": 29, "pytest": 17}
    assert count(main, "slice") == {"train": 27, "eval": 19}


def test_eight_local_conventions(tasks):
    local = [task for task in tasks if task.text("slice") == "local"]
    assert len(local) == 8
    assert all(task.text("knowledge") == "local" and task.texts("withheld") for task in local)


def test_both_shapes_in_each_fictional_family(tasks):
    for domain in ("drillbit", "inkwell"):
        shapes = Counter(task.text("shape") for task in tasks if task.text("domain") == domain)
        assert set(shapes) == {"edit-existing", "create-new"}
        assert min(shapes.values()) >= 3
        assert {task.text("knowledge") for task in tasks if task.text("domain") == domain} == {"fictional"}


def test_slices_share_families_and_no_solution(tasks):
    fictional = [task for task in tasks if task.text("knowledge") == "fictional"]
    families = {
        one: {task.text("family") for task in fictional if task.text("slice") == one} for one in ("train", "eval")
    }
    assert families["eval"] & families["train"] >= {
        "drillbit/commands", "drillbit/migration", "inkwell/service-sections", "inkwell/new-service",
    }  # fmt: skip
    scripts = [(task.path / "solution/solve.sh").read_bytes() for task in tasks]
    assert len({hashlib.sha256(text).digest() for text in scripts}) == len(tasks)


def test_special_cases_are_there(tasks):
    groups = Counter(task.text("repeated_failure_group") for task in tasks if task.text("repeated_failure_group"))
    assert groups == {"opencode-providers": 3, "az-storage-lifecycle": 3}
    assert count(tasks, "trap") >= Counter(
        {"distractor": 1, "feedback": 2, "repeated-failure": 6, "tempting-shortcut": 1}
    )
    assert count(tasks, "memory_ability")["conflict_resolution"] >= 1
    assert count(tasks, "memory_ability")["noisy_retrieval"] >= 4
    assert any(task.abstention for task in tasks)
    assert any("press-change-followed" in task.workflows for task in tasks)


def test_bundles():
    held = {path.name: len(list(assets(path))) for path in resource("agents", "bundles").iterdir() if path.is_dir()}
    assert held["software-practice"] == 25
    assert set(held) >= {
        "az-cli", "brackenfield", "docker-homelab", "drillbit", "inkwell", "minimal", "multi-domain", "noisy",
    }  # fmt: skip
    assert held["noisy"] >= 20


def test_static_rules_are_silent(tasks):
    corpus, findings = lint.read_corpus(resource("tasks"))
    findings += lint.run_rules(corpus, lint.select({"static"}))
    assert lint.report(findings, resource("tasks")) == ""


def test_nothing_generated_is_stale(tasks):
    assert sync(tasks, check=True) == []


def test_the_registry_is_frozen(tasks):
    assert registry_complaints(resource("tasks"), tasks) == []
