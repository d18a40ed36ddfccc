from typing import Any

import pytest

from akm_harbor.agent import layout
from akm_harbor.agent.config import ArmConfig, base_config, check_job_config, finish_config
from akm_harbor.agent.errors import ConfigConflictError

PROBE = "/logs/agent/akm/probe.jsonl"
CONTROL = ArmConfig("off", context=False, plugin=None, probe=PROBE)
TREATMENT = ArmConfig("off", context=False, plugin={"entry": "/x", "note": "/y"}, probe=PROBE)


def entries(config: dict[str, Any]) -> list[str]:
    return [item if isinstance(item, str) else item[0] for item in config["plugin"]]


def test_the_base_is_explicit() -> None:
    base = base_config()
    assert base["$schema"] == "https://opencode.ai/config.json"
    assert base["autoupdate"] is False
    assert base["share"] == "disabled"
    assert set(base["permission"].values()) == {"allow"}


def test_the_arms_differ_by_the_shim_alone() -> None:
    control, treatment = finish_config(base_config(), CONTROL), finish_config(base_config(), TREATMENT)
    extra = [item for item in treatment["plugin"] if item not in control["plugin"]]
    assert [item[0] for item in extra] == [f"file://{layout.TOOLCHAIN}/shim/akm.js"]
    del control["plugin"], treatment["plugin"]
    assert control == treatment


def test_the_probe_frames_the_plugins_and_the_jobs_own_stay() -> None:
    config = finish_config({**base_config(), "plugin": ["mine", ["yours", {"a": 1}]]}, TREATMENT)
    names = [name.rpartition("/")[2] for name in entries(config)]
    assert names == ["first.js", "akm.js", "mine", "yours", "probe.js"]


def test_the_title_request_is_off_unless_asked_for() -> None:
    assert finish_config(base_config(), CONTROL)["agent"]["title"]["disable"] is True
    on = ArmConfig("on", context=False, plugin=None, probe=PROBE)
    assert "agent" not in finish_config(base_config(), on)


def test_the_context_file_comes_first_and_is_told_to_the_probe() -> None:
    arm = ArmConfig("off", context=True, plugin=None, probe=PROBE)
    config = finish_config({**base_config(), "instructions": ["mine.md"]}, arm)
    assert config["instructions"] == [layout.CONTEXT, "mine.md"]
    assert config["plugin"][-1][1] == {"file": PROBE, "context": layout.CONTEXT}


def test_finishing_changes_nothing_it_was_given() -> None:
    given = base_config()
    finish_config(given, TREATMENT)
    assert given == base_config()


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ({"autoupdate": True}, "autoupdate"),
        ({"share": "auto"}, "share"),
        ({"agent": {"title": {"disable": False}}}, "title"),
        ({"permission": {"bash": "ask"}}, "ask"),
        ({"agent": {"build": {"permission": {"edit": "ask"}}}}, "ask"),
        ({"permission": {"bash": {"git *": "ask"}}}, "ask"),
        ({"permission": "ask"}, "ask"),
        ({"mode": {"build": {"permission": {"edit": "ask"}}}}, "ask"),
        ({"tools": {"akm_search": False}}, "switch off"),
        ({"tools": {"*": False}}, "switch off"),
        ({"agent": {"build": {"tools": {"akm*": False}}}}, "switch off"),
        ({"permission": {"akm_show": "deny"}}, "switch off"),
        ({"provider": {"x": {"options": {"apiKey": "sk-0123456789abcdef"}}}}, "secret"),
        ({"provider": {"x": {"options": {"headers": {"Authorization": "Bearer 0123456789ab"}}}}}, "secret"),
        ({"mcp": {"x": {"environment": {"GITHUB_TOKEN": "ghp_0123456789abcdef"}}}}, "secret"),
    ],
)
def test_a_job_cannot_drop_what_the_arm_needs_nor_carry_a_secret(config: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigConflictError, match=what):
        check_job_config(config, title="off", treatment=True)


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"autoupdate": False, "share": "disabled", "agent": {"title": {"disable": True}}},
        {"permission": {"webfetch": "deny"}, "tools": {"webfetch": False}},
        {"agent": {"ask": {"description": "ask"}}},
        {"provider": {"x": {"options": {"apiKey": "{env:X_API_KEY}", "baseURL": "http://127.0.0.1/v1"}}}},
        {"provider": {"x": {"options": {"apiKey": "none"}}}},
        {"provider": {"x": {"options": {"max_tokens_per_request": 100000}}}},
    ],
)
def test_a_job_may_add(config: dict[str, Any]) -> None:
    check_job_config(config, title="off", treatment=True)


def test_a_control_arm_has_no_akm_tools_to_lose() -> None:
    check_job_config({"tools": {"akm_search": False}}, title="off", treatment=False)
