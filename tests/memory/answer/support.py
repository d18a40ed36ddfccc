"""Studies over the shipped datasets, read and judged by the double."""

import dataclasses
from pathlib import Path

import yaml

from akm_harbor.memory.answer.publish import publish
from akm_harbor.memory.answer.spec import load_study
from akm_harbor.memory.answer.study import Options, StudyRun
from akm_harbor.memory.datasets.store import Store
from akm_harbor.memory.documents import History
from tests.memory.answer.model_double import BEHAVIOURS, Script


def script_for(store: Store, behaviours=BEHAVIOURS, judge=("strict",)) -> Script:
    """Every question with its gold answer and evidence; behaviours and judges take turns."""
    script = Script()
    number = 0
    for instance in store.read():
        history = History(instance, store.benchmark, "turn")
        for question in instance.questions:
            gold = question.answer or "; ".join(question.rubric) or "nothing"
            script.reader[question.text] = {
                "gold": "No information available" if question.is_abstention else gold,
                "evidence": list(history.gold(question).texts),
                "behaviour": behaviours[number % len(behaviours)],
            }
            script.judge[question.text] = judge[number % len(judge)]
            number += 1
    return script


def declare(folder: Path, url: str, **changes) -> Path:
    """Write a study file."""
    study = {
        "version": 1,
        "name": "double",
        "dataset": "demo-locomo",
        "arms": ["none", "full", "oracle", "bm25"],
        "granularity": "turn",
        "topk": 3,
        "reader": {"model": "openai/double-reader", "price": {"input": 1.0, "output": 2.0}},
        "scorer": {"name": "locomo-f1"},
        "concurrency": 4,
    }
    study |= changes
    for role in ("reader", "judge"):
        if study.get(role):
            price = {"input": 1, "output": 2}
            base = {"api_base": url, "api_key_env": "DOUBLE_KEY", "first_wait": 0.01, "price": price}
            study[role] = {**base, **study[role]}
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(study))
    return path


def execute(path: Path, store: Store, out: Path, **options):
    """Run a study; (report, run)."""
    run = StudyRun(load_study(path), store, out, Options(**options))
    try:
        run.execute()
    finally:
        run.close()
    return publish(run), run


def stable(frame):
    """A table without what a clock, a dice or the state of the network decides."""
    clock = ["ingest_ms", "search_ms", "started_at", "ended_at", "run_id", "attempt", "attempts"]
    return frame.drop(columns=[c for c in clock if c in frame])


def replaced(script: Script, **changes) -> Script:
    """A script with other faults."""
    return dataclasses.replace(script, **changes)
