"""Converting a legacy checkout: a small one made here, sound and broken."""

import json
import tomllib

import pytest

from akm_harbor.corpus import lint, rig
from akm_harbor.corpus.harbor_contract import refusal
from akm_harbor.corpus.legacy import convert_checkout
from akm_harbor.corpus.legacy_text import graded_files, instruction, strip_hints
from akm_harbor.corpus.task import read_task
from akm_harbor.errors import AkmHarborError

from .support import write

TASK_YAML = """\
id: {id}
title: "{title}"
domain: {domain}
difficulty: easy
slice: train
stash: works
gold_ref: skill:gauge
verifier: {verifier}
budget:
  tokens: 25000
  wallMs: 90000
memory_ability: procedural_lookup
task_family: works/gauges
akm_keywords: "gauge reading"
"""
VERIFY = """\
#!/usr/bin/env bash
set -euo pipefail
[[ -f commands.txt ]] || { echo missing; exit 1; }
grep -qE 'gauge read' commands.txt
"""
README = """\
# Task: read a gauge

Append to `commands.txt` the command that reads
the gauge. Do not run it.

Use `akm search gauge` to find the flags. Consult the gauge skill.

Requirements:
- one command
- Run `akm show skill:gauge` first
"""
SKILL = "# Reading gauges\n\nUse skill:gauge with `gauge read`.\n"
WORKFLOW = """\
---
description: Reading a gauge step by step
params:
  name: The gauge
---

# Workflow: Read

## Step: Look
Step ID: look-first

### Instructions
Look.

### Completion Criteria
- looked

## Step: Write it down

Write.
"""
TEST_PY = """\
import pathlib
import yaml

FILE = pathlib.Path(__file__).parent.parent / "workspace" / "gauge.yaml"


def test_gauge():
    assert yaml.safe_load(FILE.read_text())["gauge"] == 7
"""


def legacy_task(root, name, *, verifier="script", title="Read a gauge", files=None, **overrides):
    folder = root / "fixtures/corpus/tasks" / name
    values = {"id": name, "title": title, "domain": name.split("/")[0], "verifier": verifier, **overrides}
    write(folder / "task.yaml", TASK_YAML.format(**values))
    if verifier == "script":
        write(folder / "verify.sh", VERIFY)
    elif verifier == "pytest":
        write(folder / "tests/test_gauge.py", TEST_PY)
    for path, text in (files or {"workspace/README.md": README, "workspace/commands.txt": "# none yet\n"}).items():
        write(folder / path, text)
    return folder


@pytest.fixture
def checkout(tmp_path):
    root = tmp_path / "akm-bench"
    stash = root / "fixtures/stashes/works"
    write(stash / "MANIFEST.json", "{}")
    write(stash / "skills/gauge/SKILL.md", SKILL)
    entry = {"name": "gauge", "description": "How gauges are read", "tags": ["gauge"], "filename": "SKILL.md"}
    write(stash / "skills/gauge/.stash.json", json.dumps({"entries": [entry]}))
    write(stash / "workflows/read.md", WORKFLOW)
    write(stash / "memories/old.md", "A gauge stuck once.\n")
    write(root / "fixtures/corpus/base/workspace/AGENTS.md", "Always use akm.\n")
    write(root / "fixtures/corpus/base/domains/works/workspace/opencode.json", "{}")
    write(root / "fixtures/corpus/base/domains/works/workspace/shared.txt", "for all\n")
    legacy_task(root, "works/read-gauge")
    return root


def test_one_task(checkout, tmp_path):
    result = convert_checkout(checkout, tmp_path / "out")
    task = tmp_path / "out/tasks/works--read-gauge"
    assert list(result.tasks) == ["works--read-gauge"]
    assert not result.problems
    assert refusal(task) is None
    config = tomllib.loads((task / "task.toml").read_text())
    assert config["task"]["name"] == "akm-bench/works--read-gauge"
    assert config["verifier"]["timeout_sec"] == 270.0
    assert config["metadata"] == {
        "domain": "works", "family": "works/gauges", "shape": "edit-existing", "knowledge": "public", "slice": "train",
        "bundle": "works", "gold_ref": "skills/gauge", "difficulty": "easy", "verifier": "script",
        "memory_ability": "procedural_lookup", "keywords": ["gauge reading"], "budget_tokens": 25000,
        "budget_wall_ms": 90000, "legacy_id": "works/read-gauge", "review": ["instruction", "knowledge", "solution"],
    }  # fmt: skip
    assert (task / "instruction.md").read_text() == (
        "Working directory: `/app`.\n\nRead a gauge.\n\n"
        "Append to `commands.txt` the command that reads the gauge. Do not run it.\n\n"
        "Requirements:\n- one command\n\nWhat is looked at: `/app/commands.txt`.\n"
    )
    held = sorted(p.name for p in (task / "environment/workspace").iterdir())
    assert held == ["commands.txt", "shared.txt"], "AGENTS.md, opencode.json and README.md stay out"


def test_the_bundle_is_one_that_akm_indexes(checkout, tmp_path):
    convert_checkout(checkout, tmp_path / "out")
    bundle = tmp_path / "out/bundles/works"
    assert sorted(p.relative_to(bundle).as_posix() for p in bundle.rglob("*") if p.is_file()) == [
        "memories/old.md", "skills/gauge/SKILL.md", "workflows/read.md",
    ]  # fmt: skip
    corpus, _ = lint.read_corpus(tmp_path / "out/tasks")
    assets = {asset.ref: asset for asset in corpus.assets("works")}
    assert assets["skills/gauge"].frontmatter == {"description": "How gauges are read", "tags": ["gauge"]}
    assert "skills/gauge with" in assets["skills/gauge"].body
    workflow = assets["workflows/read"]
    assert workflow.frontmatter["type"] == "workflow"
    assert workflow.frontmatter["steps"] == [{"id": "look-first"}, {"id": "write-it-down"}]
    assert workflow.frontmatter["params"] == {"name": {"type": "string", "description": "The gauge"}}
    assert "## look-first" in workflow.body
    assert "### gate" in workflow.body
    assert not list(lint.run_rules(corpus, lint.select({"static"}, ["asset-unindexable"])))


def test_paths_and_names_in_verifiers_are_mended(checkout, tmp_path):
    files = {"workspace/gauge.yaml": "gauge: 1\n"}
    legacy_task(checkout, "works/set-gauge", verifier="pytest", files=files)
    files = {"workspace/AGENTS.md": "old\n", "workspace/README.md": "# x\n\nEdit `AGENTS.md`.\n"}
    graded = legacy_task(checkout, "works/guide", title="Mend AGENTS.md", files=files)
    write(graded / "verify.sh", "grep -q 'read the gauge' AGENTS.md\n")
    result = convert_checkout(checkout, tmp_path / "out")
    assert not result.problems
    test = (tmp_path / "out/tasks/works--set-gauge/tests/test_gauge.py").read_text()
    assert '/app") / "gauge.yaml"' in test
    assert "__file__" not in test
    guide = tmp_path / "out/tasks/works--guide"
    assert "agent-guidance.md" in (guide / "tests/legacy_verify.sh").read_text()
    assert (guide / "environment/workspace/agent-guidance.md").read_text() == "old\n"
    assert "AGENTS.md" not in (guide / "instruction.md").read_text()


@pytest.mark.sandbox
def test_verdicts_are_those_of_the_old_verifiers(checkout, tmp_path):
    assert rig.why_not() is None
    legacy_task(checkout, "works/set-gauge", verifier="pytest", files={"workspace/gauge.yaml": "gauge: 1\n"})
    done = {"workspace/commands.txt": "gauge read\n"}
    legacy_task(checkout, "works/done-already", files=done)
    result = convert_checkout(checkout, tmp_path / "out")
    assert result.pristine == ["works--done-already"]
    cases = {
        "works--read-gauge": [({"commands.txt": b"gauge read\n"}, 1), ({"commands.txt": b"x\n"}, 0), ({}, 0)],
        "works--set-gauge": [({"gauge.yaml": b"gauge: 7\n"}, 1), ({"gauge.yaml": b"gauge: 8\n"}, 0), ({}, 0)],
    }
    for name, answers in cases.items():
        with rig.bench(read_task(tmp_path / "out/tasks" / name)) as place:
            for files, reward in answers:
                place.reset(files)
                assert place.judge().reward == reward, (name, files)


@pytest.mark.sandbox
def test_a_missing_tool_is_no_wrong_answer(checkout, tmp_path):
    folder = legacy_task(checkout, "works/tool")
    write(folder / "verify.sh", "no-such-tool commands.txt\n")
    convert_checkout(checkout, tmp_path / "out")
    with rig.bench(read_task(tmp_path / "out/tasks/works--tool")) as place:
        assert place.judge().reward is None


def _big(folder):
    (folder / "workspace/big.bin").write_bytes(b"\0" * 10_000_000)


MALFORMED = {
    "missing id": (lambda f: write(f / "task.yaml", "title: x\n"), "`id` is missing"),
    "bad YAML": (lambda f: write(f / "task.yaml", "id: [\n"), "not valid YAML"),
    "a list": (lambda f: write(f / "task.yaml", "- id\n"), "not a mapping"),
    "unknown verifier": (lambda f: rewrite(f, "verifier: script", "verifier: oracle"), "unknown verifier 'oracle'"),
    "regex verifier": (lambda f: rewrite(f, "verifier: script", "verifier: regex"), "what the agent printed"),
    "missing verifier": (lambda f: (f / "verify.sh").unlink(), "verify.sh is missing"),
    "id that leaves the tree": (lambda f: rewrite(f, "id: works/bad", "id: ../../etc"), "not of the form"),
    "stash that leaves the tree": (lambda f: rewrite(f, "stash: works", "stash: ../../etc"), "leaves the folder"),
    "stash that is not there": (lambda f: rewrite(f, "stash: works", "stash: mill"), "no stash 'mill'"),
    "link out": (lambda f: (f / "workspace/x").symlink_to("/etc/passwd"), "a link that leaves the task"),
    "10 MB": (_big, "10,000,000 bytes"),
    "not UTF-8": (lambda f: (f / "task.yaml").write_bytes(b"id: \xff\n"), "cannot be read"),
    "same name": (lambda f: rewrite(f, "id: works/bad", "id: works/read_gauge"), "already called works--read-gauge"),
    "no budget": (lambda f: rewrite(f, "budget:", "spending:"), "`budget` is missing"),
    "odd difficulty": (lambda f: rewrite(f, "difficulty: easy", "difficulty: epic"), "'epic' is not one of"),
}


def rewrite(folder, old, new):
    text = (folder / "task.yaml").read_text()
    assert old in text
    (folder / "task.yaml").write_text(text.replace(old, new))


@pytest.mark.parametrize("defect", MALFORMED)
def test_a_malformed_task_is_reported_and_the_others_convert(checkout, tmp_path, defect, monkeypatch):
    monkeypatch.setattr(rig, "why_not", lambda: "not tried here")
    seed, why = MALFORMED[defect]
    # "zz" comes after the sound one, so that a doubled name hits the malformed one
    folder = legacy_task(checkout, "works/bad")
    folder = folder.rename(folder.with_name("zz-bad"))
    seed(folder)
    result = convert_checkout(checkout, tmp_path / "out")
    assert list(result.tasks) == ["works--read-gauge"]
    assert result.pristine is None
    (problem,) = result.problems
    assert why in problem.detail
    assert "zz-bad" in problem.path
    assert why in (tmp_path / "out/review.md").read_text()
    assert json.loads((tmp_path / "out/conversion.json").read_text())["problems"][0]["detail"] == problem.detail
    assert "1 of 2 tasks converted" in result.summary()


def test_a_stash_with_a_link_out_takes_its_tasks_with_it(checkout, tmp_path):
    (checkout / "fixtures/stashes/works/knowledge").symlink_to("/etc/passwd")
    result = convert_checkout(checkout, tmp_path / "out")
    assert not result.tasks
    assert [p.kind for p in result.problems] == ["stash-not-converted", "task-not-converted"]


def test_where_to(checkout, tmp_path):
    with pytest.raises(AkmHarborError, match="no legacy corpus"):
        convert_checkout(tmp_path, tmp_path / "out")
    write(tmp_path / "out/file", "x")
    with pytest.raises(AkmHarborError, match="not an empty folder"):
        convert_checkout(checkout, tmp_path / "out")


def test_instructions():
    assert strip_hints("Do it.\nUse `akm search x`. Keep the rest.") == "Do it. Keep the rest."
    assert strip_hints("Steps:\n\n- run `akm show x`\n\nThen write.") == "Steps:\n\nThen write."
    assert graded_files(["grep x commands.txt; cat conf/a.yaml", "commands.txt"]) == ["commands.txt", "conf/a.yaml"]
    text, about_akm = instruction("Teach akm", "# T\n\nWrite `akm search` into `x.sh`.", ["grep 'akm search' x.sh"])
    assert about_akm
    assert "akm search" in text
