"""Every field of every file that a trial is read from, in turn replaced by something that does not belong there."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.tables import read_frame
from akm_harbor.trials import collect, worker
from tests.trials.conftest import RESULT, Jobs, exception

P0 = Path(__file__).parents[1] / "data" / "p0"
WRONG: tuple[Any, ...] = (None, "", -1, 10**30, 1e300, float("inf"), True, [], {}, ["a", 1, None], "a\0b", "\ud800")
DEEP = "too deep"

type Keys = tuple[str | int, ...]


def fields(value: Any, above: Keys = ()) -> Iterator[Keys]:
    yield above
    inside = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, part in inside:
        yield from fields(part, (*above, key))


def replaced(value: Any, keys: Keys, by: Any) -> Any:
    if not keys:
        return by
    changed = list(value) if isinstance(value, list) else dict(value)
    changed[keys[0]] = replaced(value[keys[0]], keys[1:], by)
    return changed


def written(value: Any) -> str:
    return json.dumps(value).replace(f'"{DEEP}"', "[" * 3000 + "]" * 3000).replace("Infinity", "1e400")


def variants(text: str) -> Iterator[str]:
    """A file with one wrong value; of lines of JSON, one line of each kind is taken."""
    try:
        parts, lines = {0: json.loads(text)}, [text]
    except ValueError:
        lines = text.splitlines()
        told = [json.loads(line) for line in lines]
        kinds = {(t.get("type"), t.get("event"), t.get("kind")): i for i, t in reversed(list(enumerate(told)))}
        parts = {i: told[i] for i in kinds.values()}
    for i, value in parts.items():
        for keys in fields(value):
            for by in (*WRONG, DEEP):
                yield "\n".join([*lines[:i], written(replaced(value, keys, by)), *lines[i + 1 :]])


def result_with_all() -> dict[str, Any]:
    steps = [{"step_name": "a", **{k: RESULT[k] for k in ("agent_result", "verifier_result", "agent_execution")}}]
    return {**RESULT, "step_results": steps, "exception_info": exception("NonZeroAgentExitCodeError")}


def collected(root: Path, n: int, dataset: Path) -> None:
    found = collect([root], dataset, workers=1)
    assert found.n_trials == n
    assert n > 50
    told = read_frame(dataset, "problems")
    assert list(told[told.kind.isin(["reader-failed", "reader-died"])].detail) == []


def test_in_a_result(jobs: Jobs, tmp_path: Path) -> None:
    texts = list(variants(json.dumps(result_with_all())))
    for i, text in enumerate(texts):
        jobs.trial("job", f"t__{i:07d}", raw=text.encode())
    collected(jobs.root, len(texts), tmp_path / "data")


@pytest.mark.parametrize("name", ["config.json", "lock.json"])
def test_in_a_file_beside_the_result(jobs: Jobs, tmp_path: Path, name: str) -> None:
    trial = next(t for t in sorted((P0 / "p0-placebos").glob("*/")) if (t / name).exists())
    texts = list(variants((trial / name).read_text()))
    for i, text in enumerate(texts):
        (jobs.trial("job", f"t__{i:07d}") / name).write_text(text)
        if name == "config.json":
            (jobs.root / "job" / f"t__{i:07d}" / "result.json").unlink()
    collected(jobs.root, len(texts), tmp_path / "data")


@pytest.mark.parametrize(
    "name",
    [
        "agent/trajectory.json",
        "agent/opencode.txt",
        "agent/akm/capture.json",
        "agent/akm/probe.jsonl",
        "agent/akm/ledger/events.jsonl",
    ],
)
def test_in_an_agents_evidence(jobs: Jobs, tmp_path: Path, name: str) -> None:
    trial = next(t for t in sorted((P0 / "p0-placebos").glob("*/")) if (t / name).exists())
    base = tmp_path / "base"
    shutil.copytree(trial / "agent", base / "agent")
    texts = list(variants((trial / name).read_text()))[:: 1 if name == "agent/trajectory.json" else 5]
    for i, text in enumerate(texts):
        own = jobs.trial("job", f"t__{i:07d}")
        shutil.copytree(base / "agent", own / "agent", copy_function=os.link)
        (own / name).unlink()
        (own / name).write_text(text)
    collected(jobs.root, len(texts), tmp_path / "data")


def test_what_nobody_thought_of_keeps_a_row(jobs: Jobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        jobs.trial("one", f"t{i}__AAAAAA{i}")
    read = worker.read_trial

    def faulty(trial: Any, *rest: Any) -> Any:
        if trial.name.startswith("t1"):
            raise ZeroDivisionError("by a strange file")
        return read(trial, *rest)

    monkeypatch.setattr(worker, "read_trial", faulty)
    found = collect([jobs.root], tmp_path / "d", workers=1)
    assert found.statuses == {"scored": 2, "unreadable": 1}
    told = read_frame(tmp_path / "d", "problems")
    assert list(told.kind) == ["reader-failed"]
    assert told.detail[0] == "reading this trial failed with ZeroDivisionError: by a strange file"
