"""The quick way and the lenient way give the same row wherever both apply."""

import json
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.trials import trial as trial_module
from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.trial import TrialRead, read_trial
from akm_harbor.trials.usual import usual_row
from tests.trials.conftest import RECORDINGS, RESULT, Jobs, exception

TRIALS = sorted(path.parent for path in RECORDINGS.glob("*/*/*__*/result.json"))


def read(path: Path) -> TrialRead:
    files = tuple(p.name for p in path.iterdir() if p.is_file())
    folders = tuple(p.name for p in path.iterdir() if p.is_dir())
    return read_trial(TrialDir(str(path), path.name, files, folders, 0), "reward", 2**62)


def both(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[TrialRead, TrialRead]:
    quick = read(path)
    with monkeypatch.context() as patched:
        patched.setattr(trial_module, "usual_row", lambda *_: None)
        return quick, read(path)


def known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def test_every_recording_reads_the_same_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    for path in TRIALS:
        quick, lenient = both(path, monkeypatch)
        assert known(quick.row) == known(lenient.row)
        assert known(quick.private) == known(lenient.private)
        assert (quick.problems, quick.notes) == (lenient.problems, lenient.notes)
        taken += usual_row((path / "result.json").read_bytes(), "reward") is not None
    assert taken > 0.9 * len(TRIALS)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"source": None, "agent_result": None, "verifier_result": None},
        {"verifier_result": {"rewards": {}}},
        {"verifier_result": {"rewards": {"reward": 1, "b": 0.5}}},
        {"verifier_result": {"rewards": {"b": 0.5}}},
        {"verifier_result": {"rewards": {"reward": True}}},
        {"agent_result": {"n_input_tokens": 0, "n_output_tokens": 0, "cost_usd": 1}},
        {"agent_result": {"n_input_tokens": 1.0, "n_output_tokens": 2}},
        {"agent_info": {"name": "", "version": "", "model_info": {"name": "a/b", "provider": "c"}}},
        {"agent_info": {"name": "x", "version": "1", "model_info": None}},
        {"exception_info": exception("AgentTimeoutError", "m" * 5000)},
        {"exception_info": exception("", "")},
        {"exception_info": {"exception_type": "X"}},
        {"agent_execution": {"started_at": "2026-01-01T00:00:05Z", "finished_at": None}},
        {"agent_execution": {"started_at": "2026-01-01T00:00:05Z", "finished_at": "2026-01-01T00:00:01Z"}},
        {"agent_execution": {"started_at": "soon", "finished_at": "2026-01-01T00:00:01"}},
        {"started_at": "2026-01-01T00:00:00"},
        {"started_at": "2026-01-01T02:00:00.25+02:00"},
        {"started_at": "never"},
        {"finished_at": None},
        {"task_id": {"git_url": "u", "git_commit_id": "c", "path": "p"}},
        {"task_id": {"path": 3}},
        {"step_results": []},
        {"id": ""},
        {"trial_name": ""},
    ],
)
def test_variations_read_the_same_both_ways(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    quick, lenient = both(jobs.trial(**fields), monkeypatch)
    assert known(quick.row) == known(lenient.row)
    assert known(quick.private) == known(lenient.private)
    assert (quick.problems, quick.notes) == (lenient.problems, lenient.notes)


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("timeout_multiplier", 2),
        ("timeout_multiplier", None),
        ("agent_timeout_multiplier", 3.0),
        ("install_only", True),
        ("job_id", None),
        ("source_trial", {"action": "regrade", "type": "hub", "trial_id": "o"}),
        ("agent", {"import_path": "akm_harbor:AkmOpenCode", "kwargs": {"arm": "x", "apiKey": "k"}}),
        ("agent", {"name": "a", "kwargs": {"arm": 3}}),
        ("agent", {"name": "a", "kwargs": []}),
        ("agent", {"name": "a", "override_timeout_sec": 9, "max_timeout_sec": 5}),
        ("environment", {"type": "of-our-own"}),
        ("environment", {"type": None, "import_path": "m:E"}),
        ("environment", {"type": "docker", "override_cpus": 2, "cpu_enforcement_policy": "limit"}),
        ("environment", {"type": "docker", "cpu_enforcement_policy": "auto"}),
        ("verifier", {"max_timeout_sec": 5}),
        ("verifier", None),
    ],
)
def test_configs_read_the_same_both_ways(jobs: Jobs, monkeypatch: pytest.MonkeyPatch, where: str, value: Any) -> None:
    config = json.loads(json.dumps(RESULT["config"]))
    config[where] = value
    quick, lenient = both(jobs.trial(config=config), monkeypatch)
    assert known(quick.row) == known(lenient.row)
    assert known(quick.private) == known(lenient.private)
