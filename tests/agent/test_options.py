import json
from pathlib import Path
from typing import Any

import pytest

from akm_harbor import AkmOpenCode, ControlOpenCode
from akm_harbor.agent import compat
from akm_harbor.agent.errors import ConfigConflictError, ToolchainError, ToolchainIncompleteError, ToolchainMissingError
from akm_harbor.agent.options import AkmOptions, ControlOptions
from tests.agent.support import fake_toolchain


def make(cls: type, tmp_path: Path, **kwargs: Any) -> Any:
    return cls(logs_dir=tmp_path / "logs", model_name="scripted/demo", **kwargs)


@pytest.fixture
def toolchain(tmp_path: Path) -> str:
    return str(fake_toolchain(tmp_path / "toolchain"))


@pytest.mark.parametrize("cls", [ControlOpenCode, AkmOpenCode])
@pytest.mark.parametrize("name", ["titel", "akm_flag", "Arm"])
def test_an_unknown_kwarg_is_an_error(cls: type, name: str, toolchain: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"Unknown option '{name}'"):
        make(cls, tmp_path, toolchain=toolchain, **{name: "x"})


def test_a_near_match_is_named(toolchain: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Did you mean 'title'"):
        make(ControlOpenCode, tmp_path, toolchain=toolchain, titel="on")


@pytest.mark.parametrize("name", ["inject", "tools", "write_gate", "index", "selfcheck"])
def test_the_treatments_kwargs_are_unknown_to_the_control_arm(name: str, toolchain: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unknown option"):
        make(ControlOpenCode, tmp_path, toolchain=toolchain, **{name: "off"})
    assert make(AkmOpenCode, tmp_path, toolchain=toolchain).arm is not None


@pytest.mark.parametrize(
    ("kwarg", "value"),
    [
        ("title", "maybe"),
        ("install", "apt"),
        ("context", "all"),
        ("write_gate", "on"),
        ("selfcheck", "off"),
        ("arm", ""),
    ],
)
def test_a_wrong_value_is_an_error(kwarg: str, value: str, toolchain: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=kwarg):
        make(AkmOpenCode, tmp_path, toolchain=toolchain, **{kwarg: value})


def test_yaml_booleans_mean_on_and_off() -> None:
    options = AkmOptions.model_validate({"title": True, "inject": False, "tools": True, "write_gate": False})
    assert (options.title, options.inject, options.tools, options.write_gate) == ("on", "off", "on", "off")


def test_the_defaults() -> None:
    options = AkmOptions()
    assert (options.title, options.context, options.bundle, options.install) == ("off", "none", "task", "toolchain")
    assert (options.inject, options.tools, options.index, options.selfcheck) == ("on", "on", "on", "strict")


def test_names_arms_and_versions_are_distinct_and_say_what_ran(toolchain: str, tmp_path: Path) -> None:
    control = make(ControlOpenCode, tmp_path, toolchain=toolchain)
    treatment = make(AkmOpenCode, tmp_path, toolchain=toolchain, arm="tools-only")
    assert (control.name(), treatment.name()) == ("opencode-control", "opencode-akm")
    assert (control.arm_label, treatment.arm_label) == ("control", "tools-only")
    digest = json.loads((Path(toolchain) / "toolchain.json").read_text())["digest"]
    assert control.version() == treatment.version() == f"1.18.33+tc.{digest[:12]}"
    assert control.to_agent_info().name == "opencode-control"


def test_harbors_own_arguments_are_not_kwargs_of_ours(toolchain: str, tmp_path: Path) -> None:
    agent = make(
        ControlOpenCode,
        tmp_path,
        toolchain=toolchain,
        extra_env={"A": "b"},
        mcp_servers=[],
        skills_dir=None,
        variant="high",
    )
    assert agent.extra_env == {"A": "b"}
    assert "--variant high" in agent.build_cli_flags()


def test_a_missing_toolchain_says_how_to_build_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("AKM_HARBOR_TOOLCHAIN", raising=False)
    with pytest.raises(ToolchainMissingError, match="akm-harbor toolchain build"):
        make(ControlOpenCode, tmp_path)
    with pytest.raises(ToolchainMissingError, match="no such toolchain"):
        make(ControlOpenCode, tmp_path, toolchain=str(tmp_path / "nothing.tar"))


def test_a_control_only_toolchain_serves_the_control_arm_alone(tmp_path: Path) -> None:
    half = str(fake_toolchain(tmp_path / "half", parts=("opencode", "bun")))
    make(ControlOpenCode, tmp_path, toolchain=half)
    with pytest.raises(ToolchainIncompleteError, match="control-only"):
        make(AkmOpenCode, tmp_path, toolchain=half)


def test_a_version_other_than_the_toolchains_is_refused(toolchain: str, tmp_path: Path) -> None:
    make(ControlOpenCode, tmp_path, toolchain=toolchain, version="1.18.33")
    with pytest.raises(ToolchainError, match=r"1\.17\.0"):
        make(ControlOpenCode, tmp_path, toolchain=toolchain, version="1.17.0")


def test_install_by_npm_needs_no_toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AKM_HARBOR_CACHE", str(tmp_path / "cache"))
    assert make(AkmOpenCode, tmp_path, install="npm").version() == "1.18.33+npm"
    assert make(AkmOpenCode, tmp_path, install="npm", version="1.18.1").version() == "1.18.1+npm"


def test_a_secret_in_the_kwargs_is_refused(toolchain: str, tmp_path: Path) -> None:
    config = {"provider": {"x": {"options": {"apiKey": "sk-0123456789abcdef"}}}}
    with pytest.raises(ConfigConflictError, match="env:NAME"):
        make(ControlOpenCode, tmp_path, toolchain=toolchain, opencode_config=config)


@pytest.mark.skipif(not compat.HARBOR_VALIDATES, reason="Harbor before 0.25 has no preflight")
def test_preflight_refuses_before_any_trial(tmp_path: Path, toolchain: str) -> None:
    ControlOpenCode.preflight({"toolchain": toolchain, "arm": "a"}, {})
    for kwargs in ({"titel": "on"}, {"toolchain": str(tmp_path / "none.tar")}, {"opencode_config": {"share": "auto"}}):
        with pytest.raises((ValueError, ToolchainError, ConfigConflictError)):
            ControlOpenCode.preflight({"toolchain": toolchain, **kwargs}, {})


@pytest.mark.skipif(not compat.HARBOR_VALIDATES, reason="Harbor before 0.26 has no skip_install")
def test_skipping_the_install_would_skip_the_arm(tmp_path: Path, toolchain: str) -> None:
    if "skip_install" not in ControlOptions.model_fields:
        pytest.skip("this Harbor has no skip_install")
    with pytest.raises(ConfigConflictError, match="skip"):
        make(ControlOpenCode, tmp_path, toolchain=toolchain, skip_install=True)
