"""arms/eight.yaml and its policy fit each other, the corpus, the agents' kwargs and the planned contrasts."""

import pytest
import yaml

from akm_harbor.ab.factorial import INJECTION_BY_TOOLS
from akm_harbor.ab.many import PLAN
from akm_harbor.agent.bundle import find_bundle
from akm_harbor.agent.options import AkmOptions, ControlOptions

from .eight import ARMS, ROOT, TASKS, Scripted

JOB = yaml.safe_load((ROOT / "arms" / "eight.yaml").read_text())
AGENTS = {agent["kwargs"]["arm"]: agent for agent in JOB["agents"]}


def test_the_job_has_the_arms_and_tasks_that_are_scripted():
    assert tuple(AGENTS) == ARMS
    assert sorted(JOB["datasets"][0]["task_names"]) == sorted(TASKS.values())
    assert JOB["n_attempts"] == 3


@pytest.mark.parametrize("arm", ARMS)
def test_kwargs_are_those_of_its_agent(arm):
    agent = AGENTS[arm]
    kwargs = {k: v for k, v in agent["kwargs"].items() if k != "opencode_config"}
    model = AkmOptions if agent["import_path"].endswith(":AkmOpenCode") else ControlOptions
    options = model.model_validate(kwargs)
    assert options.arm == arm
    provider = agent["kwargs"]["opencode_config"]["provider"]["scripted"]
    assert provider["options"]["baseURL"] == f"http://127.0.0.1:18080/arm/{arm}/v1"
    wanted = {
        "empty-bundle": ("bundle", "empty"),
        "irrelevant-bundle": ("bundle", "software-practice"),
        "injection-only": ("tools", "off"),
        "tools-only": ("inject", "off"),
        "oracle-context": ("context", "bundle"),
        "akm-write-gate": ("write_gate", "enforce"),
    }
    if arm in wanted:
        name, value = wanted[arm]
        assert getattr(options, name) == value
        assert set(kwargs) == {"arm", name}


def test_the_irrelevant_bundle_is_no_tasks_own():
    folders = [ROOT / "tasks" / folder for folder in TASKS.values()]
    own = {find_bundle("task", folder, None).name for folder in folders}
    assert AGENTS["irrelevant-bundle"]["kwargs"]["bundle"] not in own


@pytest.mark.parametrize("task", TASKS)
def test_the_policy_knows_each_instruction(task):
    instruction = (ROOT / "tasks" / TASKS[task] / "instruction.md").read_text()
    assert Scripted().policy.task_of(instruction) == task


def test_every_failure_mode_of_the_treatment_is_scripted():
    modes = {truth.mode for (arm, _), cell in Scripted().table().items() if arm == "akm" for truth in cell}
    assert modes == {
        *("solved", "never-looked", "gold-absent", "gold-low", "found-not-opened"),
        *("opened-wrong", "opened-ignored", "followed-failed"),
    }


def test_the_plan_and_the_design_name_these_arms():
    assert {name for p in PLAN for name in (p.arm, p.versus)} == set(ARMS)
    assert set(INJECTION_BY_TOOLS) < set(ARMS)
