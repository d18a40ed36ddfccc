"""The gate: a real akm and a real akm-opencode through `harbor run -a akm_harbor:AkmOpenCode`.

    AKM_HARBOR_AKM_SPEC=npm:akm-cli@0.9.0 AKM_HARBOR_PLUGIN_SPEC=npm:akm-opencode@… pytest tests/live

Either spec may be `file:` a tarball or a package folder.
"""

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.agent.build import build
from akm_harbor.agent.pins import load_pins, parse_spec
from akm_harbor.agent.platforms import host
from akm_harbor.agent.toolchain import Toolchain
from akm_harbor.sandbox.model.server import ScriptedModel
from akm_harbor.tables.dataset import read_table
from akm_harbor.trials import collect
from tests.agent.support import (
    PLAIN,
    PORT,
    agent,
    akm_exits_1,
    broken_toolchain,
    policy,
    run_job,
    trials,
    without_akm_cli,
    without_plugin,
    zorbl_tasks,
)

pytestmark = [
    pytest.mark.live_akm,
    pytest.mark.sandbox,
    pytest.mark.opencode,
    pytest.mark.xdist_group("trials"),
]

BROKEN = {"plugin-missing": without_plugin, "akm-cli-missing": without_akm_cli, "akm-exit1": akm_exits_1}


@pytest.fixture(scope="module")
def whole() -> Toolchain:
    """A full toolchain from the specs of the environment."""
    pins = load_pins()
    for part, name in (("akm", "AKM_HARBOR_AKM_SPEC"), ("plugin", "AKM_HARBOR_PLUGIN_SPEC")):
        pins[part] = parse_spec(os.environ[name], pins[part])
    return build(pins, host())


def verdicts(job: Path, dataset: Path) -> dict[str, tuple[bool | None, set[str]]]:
    """What the collected table says of each arm's trial."""
    collect([job], dataset)
    rows = read_table(dataset, "trials").to_pylist()
    return {row["arm"]: (row["treatment_delivered"], set(row["delivery_reasons"] or [])) for row in rows}


def test_the_treatment_is_delivered_through_harbor_run(tmp_path: Path, whole: Toolchain) -> None:
    tree = str(whole.tree)
    with ScriptedModel(policy()) as model:
        arms = [
            agent("ControlOpenCode", "control", model, toolchain=tree),
            agent("AkmOpenCode", "akm", model, toolchain=tree),
        ]
        job = run_job(tmp_path, "gate", arms, [PORT, PLAIN], tasks_dir=zorbl_tasks(tmp_path), n_concurrent_trials=2)
    found = trials(job)
    assert {key: trial.reward for key, trial in found.items()} == {
        ("control", PORT): 0,
        ("control", PLAIN): 1,
        ("akm", PORT): 1,
        ("akm", PLAIN): 1,
    }
    treated = found["akm", PORT]
    assert treated.capture["plugin_load"]["ok"] is True
    assert treated.capture["index"]["total_entries"] == 2
    first = treated.probe[0]
    assert first["kind"] == "main"
    assert {"akm_curate", "akm_show"} <= set(first["tools"])
    assert first["system_chars"] > first["system_chars_before"]
    database = sqlite3.connect(f"file:{treated.folder}/agent/akm/state.db?mode=ro", uri=True)
    events = dict(database.execute("select event_type, count(*) from usage_events where source = 'user' group by 1"))
    harness = database.execute("select count(*) from usage_events where source <> 'user'").fetchone()[0]
    database.close()
    assert events["curate"] >= 1
    assert events["show"] >= 1
    assert harness == 0
    assert verdicts(job, tmp_path / "dataset") == {"control": (None, set()), "akm": (True, set())}


def test_the_title_request_takes_the_injection_and_the_placebos_take_a_half_away(
    tmp_path: Path, whole: Toolchain
) -> None:
    tree = str(whole.tree)
    arms: dict[str, dict[str, Any]] = {
        "title-on": {"title": "on"},
        "tools-only": {"inject": "off"},
        "injection-only": {"tools": "off"},
    }
    with ScriptedModel(policy()) as model:
        entries = [agent("AkmOpenCode", arm, model, toolchain=tree, **kwargs) for arm, kwargs in arms.items()]
        job = run_job(tmp_path, "placebos", entries, tasks_dir=zorbl_tasks(tmp_path), n_concurrent_trials=2)
    found = {arm: trial.probe for (arm, _), trial in trials(job).items()}

    def injected(arm: str, kind: str) -> int:
        lines = [line for line in found[arm] if line["kind"] == kind]
        return sum(line["system_chars"] - line["system_chars_before"] for line in lines)

    def offered(arm: str) -> bool:
        return any(tool.startswith("akm_") for line in found[arm] for tool in line["tools"])

    assert injected("title-on", "title") > 0
    assert injected("title-on", "main") == 0
    assert injected("tools-only", "main") == 0
    assert injected("injection-only", "main") > 0
    assert [offered(arm) for arm in arms] == [True, True, False]


def test_every_broken_variant_gets_its_verdict(tmp_path: Path, whole: Toolchain) -> None:
    with ScriptedModel(policy()) as model:
        arms = [
            agent(
                "AkmOpenCode",
                name,
                model,
                toolchain=str(broken_toolchain(whole, tmp_path / name, damage)),
                selfcheck="record",
            )
            for name, damage in BROKEN.items()
        ]
        arms += [
            agent("AkmOpenCode", "empty-bundle", model, toolchain=str(whole.tree), bundle="empty"),
            agent("AkmOpenCode", "no-index", model, toolchain=str(whole.tree), index="off"),
        ]
        job = run_job(tmp_path, "broken", arms, tasks_dir=zorbl_tasks(tmp_path), n_concurrent_trials=2)
    assert not any(trial.exception for trial in trials(job).values())
    said = verdicts(job, tmp_path / "dataset")
    assert {arm: delivered for arm, (delivered, _) in said.items()} == {
        "plugin-missing": False,
        "akm-cli-missing": False,
        "akm-exit1": False,
        "empty-bundle": False,
        "no-index": True,
    }
    assert "plugin-not-loaded" in said["plugin-missing"][1]
    assert "plugin-not-loaded" in said["akm-cli-missing"][1]
    assert "akm-cli-failing" in said["akm-exit1"][1]
    assert "bundle-empty" in said["empty-bundle"][1]
    assert said["no-index"][1] == {"index-built-by-akm"}


def test_a_broken_treatment_fails_its_trial_by_default(tmp_path: Path, whole: Toolchain) -> None:
    with ScriptedModel(policy()) as model:
        arms = [
            agent("AkmOpenCode", name, model, toolchain=str(broken_toolchain(whole, tmp_path / name, damage)))
            for name, damage in BROKEN.items()
        ]
        job = run_job(tmp_path, "strict", arms, tasks_dir=zorbl_tasks(tmp_path), n_concurrent_trials=2)
    found = {arm: (trial.exception, trial.reward) for (arm, _), trial in trials(job).items()}
    assert found == dict.fromkeys(BROKEN, ("SelfCheckError", None))
