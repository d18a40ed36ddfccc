"""A small sound corpus to seed defects into."""

import json
from pathlib import Path

from akm_harbor.corpus.new import new_task
from akm_harbor.corpus.sync import sync
from akm_harbor.corpus.task import read_task

ASSET = """---
description: How gauges are read in the works
tags: [gauge, reading]
---
# Gauges

A gauge at rest is written down as `ready`, a moving one as `busy`.
"""


def small_corpus(root: Path, *names: str, knowledge: str = "fictional") -> Path:
    """tasks/ with the named tasks and agents/bundles/works; returns the folder of tasks."""
    bundle = root / "agents" / "bundles" / "works"
    (bundle / "knowledge").mkdir(parents=True)
    (bundle / "knowledge" / "gauges.md").write_text(ASSET)
    for name in names or ("works--gauge",):
        new_task(root / "tasks", name, bundle="works", gold_ref="knowledge/gauges", verifier="script")
        task = root / "tasks" / name
        change(
            task / "task.toml",
            ('knowledge = "public"', f'knowledge = "{knowledge}"\nwithheld = ["ready"]'),
            ('public_tokens = ["ready"]\n', ""),
        )
        sync([read_task(task)])
    return root / "tasks"


def change(path: Path, *pairs: tuple[str, str]) -> None:
    """Replace text in a file; each text must be there."""
    text = path.read_text()
    for old, new in pairs:
        assert old in text, f"{old!r} is not in {path}"
        text = text.replace(old, new)
    path.write_text(text)


def write(path: Path, text: str) -> Path:
    """Write a file, folders included."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def fake_akm(path: Path, refs: list[str]) -> str:
    """A test double of the akm command line: `search` answers with the given references."""
    hits = json.dumps({"hits": [{"ref": f"corpus//{ref}"} for ref in refs]})
    write(path, f"#!/bin/sh\n[ \"$1\" = search ] && echo '{hits}'\nexit 0\n").chmod(0o755)
    return str(path)
