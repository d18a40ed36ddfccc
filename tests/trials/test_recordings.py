"""Every recording loads with the statuses and delivery verdicts it is known to have."""

from collections import Counter
from pathlib import Path

import pandas as pd
import pytest

from akm_harbor.tables import read_frame, read_manifest
from akm_harbor.trials import CollectResult, collect
from tests.trials.conftest import RECORDINGS


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CollectResult]:
    dataset = tmp_path_factory.mktemp("recordings") / "dataset"
    result = collect([RECORDINGS / "harbor", RECORDINGS / "p0"], dataset, tasks=[RECORDINGS / "p0-tasks"], workers=1)
    return dataset, result


@pytest.fixture(scope="module")
def trials(collected: tuple[Path, CollectResult]) -> pd.DataFrame:
    return read_frame(collected[0], "trials")


STATUSES = {
    "v0.22-ab-baseline": {"scored": 24},
    "v0.22-ab-treatment": {"scored": 24},
    "v0.22-install-only": {"install_only": 1},
    "v0.22-killed-before-resume": {"scored": 2, "unfinished": 1},
    "v0.22-nop-3": {"scored": 3},
    "v0.22-opencode-akm-mixed": {"scored": 6, "scored_with_error": 4},
    "v0.22-opencode-plugin": {"scored": 1},
    "v0.22-opencode-stock": {"scored": 1},
    "v0.22-oracle-3x2": {"scored": 6},
    "v0.22-retry": {"unscored": 1},
    "v0.22-sigint-cancelled": {"cancelled": 2},
    "v0.25-opencode-bwrap": {"scored": 3},
    "v0.25-oracle-3x2": {"scored": 6},
}


@pytest.mark.parametrize("job", sorted(STATUSES))
def test_statuses_of_the_harbor_recordings(trials: pd.DataFrame, job: str) -> None:
    rows = trials[trials.trial_path.str.startswith(f"{job}/")]
    assert dict(Counter(rows.status)) == STATUSES[job]


def test_every_trial_directory_is_a_row(trials: pd.DataFrame, collected: tuple[Path, CollectResult]) -> None:
    folders = {
        str(path.relative_to(root))
        for root in (RECORDINGS / "harbor", RECORDINGS / "p0")
        for path in root.glob("*/*__*")
        if path.is_dir()
    }
    assert set(trials.trial_path) == folders
    assert collected[1].n_trials == len(folders) == len(trials)


def test_rewards_exceptions_and_tokens_of_the_mixed_job(trials: pd.DataFrame) -> None:
    rows = trials[trials.trial_path.str.startswith("v0.22-opencode-akm-mixed/")].set_index("trial_name")
    assert rows.loc["hello__9BDMY5k", "reward"] == 1.0
    multi = rows.loc["multi__mt48WjE"]
    assert (multi.reward, multi.reward_key, multi.rewards_json) == (0.5, "reward", '{"reward":0.5,"a":1.0,"b":0.0}')
    sleepy = rows.loc["sleepy__EZyPMvS"]
    assert (sleepy.exception_type, sleepy.exception_cause, sleepy.reward) == ("AgentTimeoutError", "budget", 0.0)
    denied = rows.loc["err401__Qoi9ym2"]
    assert (denied.exception_type, denied.exception_cause) == ("NonZeroAgentExitCodeError", "provider")
    assert pd.isna(denied.n_input_tokens)
    assert pd.isna(denied.token_source)
    assert "sk-none" not in " ".join(rows.agent_kwargs_json.dropna())
    assert rows.loc["count__HJ4eRXr", "n_input_tokens"] == 4803
    assert set(rows.model_name) == {"fake/scripted"}


def test_models_are_named_alike_by_both_harbor_versions(trials: pd.DataFrame) -> None:
    rows = trials[trials.agent_name == "opencode"]
    assert set(rows.harbor_version) == {"0.22.0", "0.25.0"}
    assert set(rows.model_name) == {"fake/scripted"}


def test_job_columns_and_identity(trials: pd.DataFrame) -> None:
    row = trials[trials.trial_name == "hello__9BDMY5k"].iloc[0]
    assert row.job_name == "oc-akm-mixed"
    assert row.job_id == "cf035de5-87af-4cdd-9b7f-801262c6f160"
    assert (row.n_concurrent, row.max_retries) == (2, 0)
    assert row.task_digest == "sha256:22c61a9819cbdff0bd6700ad08bb1827aa31386834ebc4c6559339f1a53ca462"
    assert row.trial_path == "v0.22-opencode-akm-mixed/hello__9BDMY5k"
    assert trials.trial_id.dropna().is_unique
    assert str(row.started_at.tz) == "UTC"


def test_attempts_are_numbered_within_job_arm_and_task(trials: pd.DataFrame) -> None:
    rows = trials[trials.trial_path.str.startswith("v0.22-ab-baseline/")]
    assert all(sorted(group) == [1, 2, 3] for _, group in rows.groupby("task_name").attempt)
    first = rows[rows.task_name == rows.task_name.iloc[0]].sort_values("attempt")
    assert first.started_at.is_monotonic_increasing


DELIVERY = {
    "p0-baseline": (None, None),
    "p0-treatment": (True, ["not-probed"]),
    "p0-title-disabled": (True, ["not-probed"]),
    "p0-broken-plugin-missing": (False, ["plugin-not-loaded"]),
    "p0-broken-akm-exit1": (False, ["akm-cli-failing"]),
    "p0-broken-empty-bundle": (False, ["bundle-empty"]),
}


@pytest.mark.parametrize("job", sorted(DELIVERY))
def test_delivery_verdicts_of_the_pilot(trials: pd.DataFrame, job: str) -> None:
    rows = trials[trials.trial_path.str.startswith(f"{job}/")]
    delivered, reasons = DELIVERY[job]
    assert len(rows)
    for row in rows.itertuples():
        assert row.treatment_delivered is delivered or (delivered is None and pd.isna(row.treatment_delivered))
        assert (None if reasons is None else list(row.delivery_reasons)) == reasons


def test_the_model_called_akm_and_the_gold_note_has_its_rank(collected: tuple[Path, CollectResult]) -> None:
    calls = read_frame(collected[0], "tool_calls")
    mine = calls[calls.trial_path == "p0-treatment/zorbl-listen__Q4HyPcc"].sort_values("index")
    assert list(mine.tool) == ["akm_curate", "akm_show", "bash"]
    assert list(mine.status) == ["completed"] * 3
    curate = mine.iloc[0]
    assert curate.akm_query == "Zorbl 3 service definition file with listen port and workers"
    assert list(curate.akm_refs) == ["skills/zorbl-services", "knowledge/zorbl-service-format"]
    assert curate.gold_rank == 2
    assert mine.iloc[1].gold_rank == 1
    assert pd.isna(mine.iloc[2].akm_verb)


def test_the_ledger_joins_the_calls_by_their_id(collected: tuple[Path, CollectResult]) -> None:
    calls = read_frame(collected[0], "tool_calls")
    events = read_frame(collected[0], "plugin_events")
    akm = calls[calls.tool.str.startswith("akm_") & calls.trial_path.str.startswith("p0-treatment/")]
    seen = events[events.event == "tool_observation"]
    assert set(akm.call_id) <= set(seen.call_id)


def test_automatic_akm_traffic_is_told_from_the_models(collected: tuple[Path, CollectResult]) -> None:
    usage = read_frame(collected[0], "akm_usage")
    ignored = usage[usage.trial_path.str.startswith("p0-treatment/threnody-pin")]
    assert (len(ignored), ignored.automatic.all()) == (6, True)
    used = usage[usage.trial_path == "p0-treatment/zorbl-listen__Q4HyPcc"].sort_values("id")
    assert list(zip(used.event_type, used.automatic, strict=True)) == [
        *[("curate", True)] * 3,
        *[("curate", False)] * 3,
        ("show", False),
        ("feedback", True),
    ]


def test_the_tasks_are_joined_by_content_digest(collected: tuple[Path, CollectResult], trials: pd.DataFrame) -> None:
    tasks = read_frame(collected[0], "tasks")
    pilot = trials[trials.trial_path.str.startswith("p0-")]
    assert set(pilot.task_digest) <= set(tasks.task_digest)
    assert tasks.set_index("task_name").loc["p0/zorbl-listen", "gold_ref"] == "knowledge/zorbl-service-format"
    assert set(pilot.agent_timeout_seconds) == {120.0}


def test_the_manifest_says_what_it_was_made_from(collected: tuple[Path, CollectResult]) -> None:
    manifest = read_manifest(collected[0])
    assert manifest["versions"]["harbor"] == ["0.22.0", "0.25.0"]
    assert manifest["models"] == ["fake/scripted"]
    assert [entry["n_trials"] for entry in manifest["inputs"]] == [85, 9]
    assert manifest["trials"]["by_status"]["cancelled"] == 2


def test_a_retry_and_missing_trials_are_told(collected: tuple[Path, CollectResult]) -> None:
    problems = read_frame(collected[0], "problems")
    found = {(Path(p).name, k) for p, k in zip(problems.path, problems.kind, strict=True)}
    assert ("v0.22-killed-before-resume", "trials-missing") in found
    assert any(kind == "retried" for _, kind in found)
