import json
import math
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.trials.discover import TrialDir
from akm_harbor.trials.trial import TrialRead, read_trial
from tests.trials.conftest import Jobs, exception


def read(path: Path, reward_key: str = "reward") -> TrialRead:
    files = tuple(p.name for p in path.iterdir() if p.is_file())
    folders = tuple(p.name for p in path.iterdir() if p.is_dir())
    return read_trial(TrialDir(str(path), path.name, files, folders, path.stat().st_mtime_ns), reward_key, 2**62)


def kinds(trial: TrialRead) -> list[str]:
    return [kind for _, kind, _, _ in trial.problems]


def test_an_ordinary_trial(jobs: Jobs) -> None:
    row = read(jobs.trial()).row
    assert row["own_status"] == "scored"
    assert (row["reward"], row["reward_key"], row["rewards_json"]) == (1.0, "reward", '{"reward":1.0}')
    assert (row["environment_seconds"], row["setup_seconds"], row["agent_seconds"], row["verifier_seconds"]) == (
        2.0,
        3.0,
        40.5,
        2.0,
    )
    assert row["started_at"] == 1767225600_000_000
    assert (row["n_input_tokens"], row["n_output_tokens"], row["cost_usd"]) == (100, 10, 0.5)
    assert row["token_source"] == "harbor"
    assert row["model_name"] == "prov/model"
    assert row["schema_ok"] is True
    assert row["treatment_delivered"] is None if "treatment_delivered" in row else True


@pytest.mark.parametrize(
    ("rewards", "reward", "status", "problem"),
    [
        ({"reward": 1}, 1.0, "scored", None),
        ({"reward": 0}, 0.0, "scored", None),
        ({"reward": 0.25, "a": 1}, 0.25, "scored", None),
        ({"reward": True}, 1.0, "scored", None),
        (None, None, "unscored", None),
        ({}, None, "unscored", None),
        ({"reward": None}, None, "unscored", "bad-reward"),
        ({"reward": "1"}, None, "unscored", "bad-reward"),
        ({"reward": "INVALID"}, None, "unscored", "bad-reward"),
        ({"reward": [1]}, None, "unscored", "bad-reward"),
        ({"reward": math.nan}, None, "unscored", "bad-reward"),
        ({"reward": math.inf}, None, "unscored", "bad-reward"),
        ({"score": 1}, None, "unscored", "no-primary-reward"),
        ([1], None, "unscored", "bad-reward"),
        ("1", None, "unscored", "bad-reward"),
    ],
)
def test_no_reward_is_ever_a_silent_zero(
    jobs: Jobs, rewards: Any, reward: float | None, status: str, problem: str | None
) -> None:
    got = read(jobs.trial(verifier_result={"rewards": rewards}))
    assert got.row.get("reward") == reward
    assert got.row["own_status"] == status
    assert kinds(got) == ([problem] if problem else [])
    if got.row.get("rewards_json") is not None:
        json.loads(got.row["rewards_json"], parse_constant=pytest.fail)


def test_another_primary_reward_key(jobs: Jobs) -> None:
    row = read(jobs.trial(verifier_result={"rewards": {"score": 0.5, "reward": 1}}), reward_key="score").row
    assert (row["reward"], row["reward_key"]) == (0.5, "score")


@pytest.mark.parametrize(
    ("fields", "status", "cause"),
    [
        ({"exception_info": exception("AgentTimeoutError")}, "scored_with_error", "budget"),
        ({"exception_info": exception("VerifierTimeoutError"), "verifier_result": None}, "unscored", "verifier"),
        ({"exception_info": exception("EnvironmentStartTimeoutError"), "verifier_result": None}, "unscored", "sandbox"),
        ({"exception_info": exception("CancelledError"), "verifier_result": None}, "cancelled", "cancelled"),
        ({"exception_info": exception("CancelledError")}, "scored_with_error", "cancelled"),
        ({"exception_info": exception("SomethingNew"), "verifier_result": None}, "unscored", "unclassified"),
        ({"verifier_result": None}, "unscored", None),
    ],
)
def test_statuses(jobs: Jobs, fields: dict[str, Any], status: str, cause: str | None) -> None:
    row = read(jobs.trial(**fields)).row
    assert row["own_status"] == status
    assert row.get("exception_cause") == cause


def test_a_timeout_with_reward_one_keeps_its_reward(jobs: Jobs) -> None:
    row = read(jobs.trial(exception_info=exception("AgentTimeoutError"))).row
    assert (row["own_status"], row["reward"], row["exception_type"]) == ("scored_with_error", 1.0, "AgentTimeoutError")


def test_install_only(jobs: Jobs) -> None:
    path = jobs.trial(verifier_result=None, agent_result=None)
    result = json.loads((path / "result.json").read_text())
    result["config"]["install_only"] = True
    (path / "result.json").write_text(json.dumps(result))
    assert read(path).row["own_status"] == "install_only"


def test_without_a_result_the_config_tells_what_it_can(jobs: Jobs) -> None:
    path = jobs.trial()
    (path / "result.json").unlink()
    config = {
        "task": {"path": "ocm/task-a", "source": "ocm"},
        "trial_name": path.name,
        "agent": {"import_path": "akm_harbor:AkmOpenCode", "model_name": "p/m", "kwargs": {"arm": "akm"}},
        "job_id": "j",
    }
    (path / "config.json").write_text(json.dumps(config))
    (path / "lock.json").write_text(json.dumps({"task": {"digest": "sha256:abc", "name": "task-a"}}))
    got = read(path)
    assert got.row["own_status"] == "unfinished"
    assert (got.row["task_name"], got.row["task_digest"], got.row["source"]) == ("task-a", "sha256:abc", "ocm")
    assert (got.row["agent_name"], got.row["model_name"], got.private["arm"]) == ("opencode-akm", "p/m", "akm")
    assert got.row["environment"] == "docker"
    assert (got.row["treatment_delivered"], got.row["delivery_reasons"]) == (False, ["no-evidence"])


def test_an_empty_trial_directory_is_unfinished(jobs: Jobs) -> None:
    path = jobs.trial()
    (path / "result.json").unlink()
    got = read(path)
    assert (got.row["own_status"], got.row["trial_name"], got.problems) == ("unfinished", path.name, [])


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "empty-file"),
        (b"\x00" * 512, "empty-file"),
        (b'{"id": "x", "trial_name"', "invalid-json"),
        (b"[" * 100_000, "invalid-json"),
        (b"[1, 2]", "not-a-result"),
        (b'"text"', "not-a-result"),
        (b"{}", "not-a-result"),
        (b'\xff\xfe{"a": 1}', "invalid-json"),
    ],
)
def test_what_is_no_result_is_an_unreadable_row(jobs: Jobs, raw: bytes, problem: str) -> None:
    got = read(jobs.trial(raw=raw))
    assert got.row["own_status"] == "unreadable"
    assert got.row["trial_name"] == "task-a__AAAAAAA"
    assert got.row.get("reward") is None
    assert kinds(got) == [problem]
    assert got.problems[0][3] == "row kept, status unreadable, no reward" or problem == "not-a-result"


def test_a_result_broken_by_the_secret_scrubber_keeps_its_identity_but_no_score(jobs: Jobs) -> None:
    whole = (jobs.trial("job", "other__BBBBBBB") / "result.json").read_text()
    broken = whole.replace('"timeout_multiplier": 1.0', '"timeout_multiplier": [REDACTED]')
    broken = broken.replace('"cost_usd": 0.5', '"cost_usd": 0[REDACTED]')
    got = read(jobs.trial(raw=broken.encode()))
    assert got.row["own_status"] == "unreadable"
    assert got.row["reward"] is None
    assert got.row["rewards_json"] == '{"reward":1.0}'
    assert got.row["trial_id"] == json.loads(whole)["id"]
    assert got.row["schema_ok"] is False
    assert kinds(got) == ["redacted-json"]
    assert "line" in got.problems[0][2]


def test_nan_anywhere_does_not_lose_the_rest(jobs: Jobs) -> None:
    path = jobs.trial(agent_result={"n_input_tokens": 5, "n_output_tokens": 1, "cost_usd": math.nan})
    got = read(path)
    assert (got.row["own_status"], got.row["n_input_tokens"], got.row["cost_usd"]) == ("scored", 5, None)


def test_nul_bytes_and_lone_surrogates_in_texts(jobs: Jobs) -> None:
    path = jobs.trial(exception_info=exception("RuntimeError", "a\x00b \ud83d c"))
    row = read(path).row
    assert row["exception_message"] == "a\x00b \ufffd c"
    row["exception_message"].encode()


def test_secrets_in_kwargs_are_redacted(jobs: Jobs) -> None:
    key = "sk-" + "a1B2" * 8
    path = jobs.trial()
    result = json.loads((path / "result.json").read_text())
    result["config"]["agent"]["kwargs"] = {"options": {"apiKey": "short", "n": 1}, "note": key}
    (path / "result.json").write_text(json.dumps(result))
    assert json.loads(read(path).row["agent_kwargs_json"]) == {
        "options": {"apiKey": "[REDACTED]", "n": 1},
        "note": "[REDACTED]",
    }


def test_times_without_offset_are_utc_and_noted(jobs: Jobs) -> None:
    got = read(jobs.trial(started_at="2026-01-01T00:00:00", finished_at="2026-01-01T00:01:00.5", agent_execution=None))
    assert got.row["started_at"] == 1767225600_000_000
    assert got.row["finished_at"] == 1767225660_500_000
    assert got.row["agent_seconds"] is None
    assert list(got.notes) == ["naive-timestamp"]


def test_times_that_are_none_are_null_and_a_problem(jobs: Jobs) -> None:
    got = read(jobs.trial(started_at="yesterday", finished_at=17))
    assert (got.row["started_at"], got.row["finished_at"]) == (None, None)
    assert kinds(got) == ["bad-timestamp", "bad-timestamp"]


def test_a_phase_that_ends_before_it_starts_has_no_duration(jobs: Jobs) -> None:
    span = {"started_at": "2026-01-01T00:00:05Z", "finished_at": "2026-01-01T00:00:01Z"}
    got = read(jobs.trial(agent_execution=span))
    assert got.row["agent_seconds"] is None
    assert kinds(got) == ["negative-duration"]


def test_zero_tokens_are_nobodys_measurement(jobs: Jobs) -> None:
    got = read(
        jobs.trial(agent_result={"n_input_tokens": 0, "n_cache_tokens": 0, "n_output_tokens": 0, "cost_usd": 0.1})
    )
    assert (got.row["n_input_tokens"], got.row["n_output_tokens"], got.row["token_source"]) == (None, None, None)
    assert got.row["cost_usd"] == 0.1
    assert list(got.notes) == ["zero-tokens"]


def test_a_directory_renamed_after_the_run_is_noted_and_identity_stays_the_id(jobs: Jobs) -> None:
    got = read(jobs.trial(name="task-a__BBBBBBB", trial_name="task-a__AAAAAAA"))
    assert got.row["trial_name"] == "task-a__AAAAAAA"
    assert list(got.notes) == ["renamed-trial"]


def step(name: str, reward: float | None, failed: str | None = None, **agent: Any) -> dict[str, Any]:
    return {
        "step_name": name,
        "agent_result": {"n_input_tokens": 10, "n_cache_tokens": 1, "n_output_tokens": 2, "cost_usd": 0.1, **agent},
        "verifier_result": None if reward is None else {"rewards": {"reward": reward}},
        "exception_info": exception(failed, f"in {name}") if failed else None,
        "agent_execution": {"started_at": "2026-01-01T00:00:00Z", "finished_at": "2026-01-01T00:00:10Z"},
        "verifier": {"started_at": "2026-01-01T00:00:10Z", "finished_at": "2026-01-01T00:00:11Z"},
    }


def multi(jobs: Jobs, *steps: dict[str, Any], reward: float | None = 0.5) -> dict[str, Any]:
    return read(
        jobs.trial(
            agent_result=None,
            agent_execution=None,
            verifier=None,
            verifier_result=None if reward is None else {"rewards": {"reward": reward}},
            step_results=list(steps),
        )
    ).row


def test_steps_add_up(jobs: Jobs) -> None:
    row = multi(jobs, step("one", 1.0), step("two", 0.0))
    assert (row["n_input_tokens"], row["n_cache_tokens"], row["n_output_tokens"]) == (20, 2, 4)
    assert row["cost_usd"] == pytest.approx(0.2)
    assert (row["agent_seconds"], row["verifier_seconds"]) == (20.0, 2.0)
    assert (row["own_status"], row.get("exception_type")) == ("scored", None)


def test_a_step_without_tokens_makes_the_sum_unknown(jobs: Jobs) -> None:
    row = multi(jobs, step("one", 1.0), step("two", 0.0, n_input_tokens=None))
    assert (row["n_input_tokens"], row["n_output_tokens"]) == (None, 4)


def test_the_deciding_step_is_the_first_that_failed_without_a_verdict(jobs: Jobs) -> None:
    row = multi(jobs, step("one", 0.0, "AgentTimeoutError"), step("two", None, "HealthcheckError"), reward=0.0)
    assert (row["exception_type"], row["exception_message"]) == ("HealthcheckError", "in two")
    assert row["own_status"] == "scored_with_error"
    row = multi(Jobs(jobs.root / "b"), step("one", 1.0), step("two", 0.0, "AgentTimeoutError"))
    assert row["exception_type"] == "AgentTimeoutError"


def test_null_step_results_of_single_step_trials(jobs: Jobs) -> None:
    assert read(jobs.trial(step_results=None)).row["own_status"] == "scored"


def test_config_columns(jobs: Jobs) -> None:
    path = jobs.trial()
    result = json.loads((path / "result.json").read_text())
    result["config"].update(
        timeout_multiplier=2.0,
        agent_timeout_multiplier=None,
        agent_setup_timeout_multiplier=3.0,
        source_trial={"action": "regrade", "type": "hub", "trial_id": "orig"},
    )
    result["config"]["agent"].update(override_timeout_sec=100.0, max_timeout_sec=60.0)
    result["config"]["environment"] = {
        "import_path": "m:Env",
        "override_cpus": 4,
        "override_memory_mb": None,
        "cpu_enforcement_policy": "auto",
        "memory_enforcement_policy": "limit",
    }
    (path / "result.json").write_text(json.dumps(result))
    row = read(path).row
    assert (row["timeout_multiplier"], row["agent_timeout_seconds"]) == (2.0, 120.0)
    assert json.loads(row["timeouts_json"]) == {
        "agent.max_timeout_sec": 60.0,
        "agent.override_timeout_sec": 100.0,
        "agent_setup_timeout_multiplier": 3.0,
    }
    assert json.loads(row["resources_json"]) == {"memory_enforcement_policy": "limit", "override_cpus": 4}
    assert (row["environment"], row["regrade_of"]) == ("m:Env", "orig")


@pytest.mark.parametrize(
    ("task_id", "path"),
    [
        ({"path": "tasks/a"}, "tasks/a"),
        ({"git_url": "https://x/r.git", "git_commit_id": "abc", "path": "a"}, "https://x/r.git#a@abc"),
        ({"org": "o", "name": "n", "ref": "sha256:1"}, "o/n@sha256:1"),
        ({}, None),
    ],
)
def test_task_paths(jobs: Jobs, task_id: dict[str, Any], path: str | None) -> None:
    assert read(jobs.trial(task_id=task_id)).row["task_path"] == path


@pytest.mark.parametrize(
    "fields",
    [
        {"config": None},
        {"config": []},
        {"agent_info": "opencode"},
        {"agent_result": 3},
        {"verifier_result": []},
        {"exception_info": "boom"},
        {"step_results": {"a": 1}},
        {"task_id": "x"},
        {"started_at": {}},
        {"environment_setup": "soon"},
        {"id": 7},
        {"agent_result": {"n_input_tokens": "many", "rollout_details": {"a": 1}}},
        {"agent_result": {"n_input_tokens": 10**30, "n_output_tokens": 1}},
        {"verifier_result": {"rewards": {"reward": 10**400}}},
    ],
)
def test_a_field_of_another_type_never_loses_the_row(jobs: Jobs, fields: dict[str, Any]) -> None:
    got = read(jobs.trial(**fields))
    assert got.row["own_status"] in ("scored", "unscored", "unreadable")
    assert got.row["task_name"] == "org/task-a"


def test_rollouts_of_another_shape_are_fine(jobs: Jobs) -> None:
    row = read(jobs.trial(agent_result={"n_input_tokens": 5, "n_output_tokens": 1, "rollout_details": {"a": 1}})).row
    assert (row["n_input_tokens"], row["own_status"], row["schema_ok"]) == (5, "scored", False)
    row = read(jobs.trial(name="b__AAAAAAA", agent_result={"rollout_details": [{"a": 1}]})).row
    assert row["schema_ok"] is True


def test_a_custom_environment_type_is_fine(jobs: Jobs) -> None:
    path = jobs.trial()
    result = json.loads((path / "result.json").read_text())
    result["config"]["environment"]["type"] = "aone-sandbox"
    (path / "result.json").write_text(json.dumps(result))
    row = read(path).row
    assert (row["environment"], row["own_status"], row["schema_ok"]) == ("aone-sandbox", "scored", False)
