"""The agents against an environment that only records what it is asked (a test double)."""

import asyncio
import json
import shlex
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from akm_harbor import AkmOpenCode, ControlOpenCode
from akm_harbor.agent import layout
from akm_harbor.agent.errors import AgentError, BundleError, SelfCheckError, ToolchainError
from akm_harbor.agent.npm_install import bring_by_npm
from akm_harbor.agent.pins import load_pins
from tests.agent.support import fake_toolchain

PREPARED = {
    "index": {"ok": True, "total_entries": 2, "detail": ""},
    "selfcheck": {"ok": True, "detail": "2 entries"},
    "timings": {"index": 0.2},
}


class RecordingEnvironment:
    """Answers every command with success; keeps commands, environments and uploaded texts."""

    default_user = None

    def __init__(self, task: Path, *, mounts: bool = True) -> None:
        self.environment_dir = task / "environment"
        self.commands: list[tuple[str, dict[str, str], Any]] = []
        self.files: dict[str, str] = {}
        self.mounted: list[tuple[Path, str]] = []
        self.prepared: Any = PREPARED
        self.on_run: Callable[[], Awaitable[None]] | None = None
        self.capturing: asyncio.Event = asyncio.Event()
        self.captured = 0
        self.present = ""
        if mounts:
            self.add_readonly_mount = lambda host, container: self.mounted.append((host, container))

    async def exec(self, command: str, env: Any = None, user: Any = None, **_: Any) -> SimpleNamespace:
        self.commands.append((command, dict(env or {}), user))
        if "opencode --model=" in command and self.on_run is not None:
            await self.on_run()
        stdout = ""
        if "uname -m" in command:
            stdout = f"x86_64\nglibc\navx2\n{self.present}"
        elif "prepare.js" in command:
            stdout = json.dumps(self.prepared)
        elif "--version" in command:
            stdout = "1.18.33\n"
        elif "capture.js" in command:
            self.capturing.set()
            await asyncio.sleep(0.05)
            self.captured += 1
        return SimpleNamespace(return_code=0, stdout=stdout, stderr="")

    async def upload_dir(self, source_dir: Path, target_dir: str) -> None:
        for path in sorted(Path(source_dir).rglob("*")):  # noqa: ASYNC240 (a test double)
            if path.is_file():
                self.files[f"{target_dir}/{path.relative_to(source_dir).as_posix()}"] = path.read_text()

    async def upload_file(self, source_path: Path, target_path: str) -> None:
        self.files[target_path] = f"<{Path(source_path).name}>"

    def run_command(self) -> tuple[str, dict[str, str]]:
        (found,) = [(command, env) for command, env, _ in self.commands if "opencode --model=" in command]
        return found


@pytest.fixture
def task(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "zorbl--listen"
    (folder / "environment").mkdir(parents=True)
    (folder / "task.toml").write_text('[metadata]\nbundle = "zorbl"\n')
    for name in ("zorbl", "other"):
        bundle = tmp_path / "agents" / "bundles" / name / "knowledge"
        bundle.mkdir(parents=True)
        (bundle / f"{name}.md").write_text(f"# {name}\n\nThe {name} port is 4117.\n")
    return folder


@pytest.fixture
def arm(tmp_path: Path) -> Callable[..., Any]:
    """Makes an agent on a toolchain without binaries."""
    toolchain = fake_toolchain(tmp_path / "toolchain")

    def make(cls: type, **kwargs: Any) -> Any:
        return cls(logs_dir=tmp_path / "logs", model_name="scripted/demo", **{"toolchain": str(toolchain), **kwargs})

    return make


def trial(agent: Any, environment: RecordingEnvironment, instruction: str = "Do it.") -> None:
    async def go() -> None:
        from harbor.models.agent.context import AgentContext

        await agent.setup(environment)
        await agent.run(instruction, environment, AgentContext())

    asyncio.run(go())


def test_the_control_arm_is_given_neither_bundle_nor_akm(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    trial(arm(ControlOpenCode), environment)
    assert not any("akm" in name.removeprefix(layout.ROOT) or "zorbl" in name for name in environment.files)
    _, env = environment.run_command()
    assert not any(name.startswith("AKM_") for name in env)
    assert not any("prepare.js" in command or "bin/akm" in command for command, _, _ in environment.commands)


def test_the_treatment_arm_is_given_its_own_bundle_and_no_other(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    trial(arm(AkmOpenCode), environment)
    inside = [name for name in environment.files if name.startswith(layout.BUNDLE)]
    assert inside == [f"{layout.BUNDLE}/knowledge/zorbl.md"]
    command, env = environment.run_command()
    assert env["AKM_DATA_DIR"] == layout.DATA
    assert "AKM_EVENT_SOURCE" not in env
    assert "AKM_EVENT_SOURCE" not in command


def test_both_arms_boot_and_run_alike(arm: Callable[..., Any], task: Path) -> None:
    first, second = RecordingEnvironment(task), RecordingEnvironment(task)
    control, treatment = arm(ControlOpenCode), arm(AkmOpenCode)
    treatment._run_id = control._run_id
    trial(control, first)
    trial(treatment, second)
    shared = {name: text for name, text in first.files.items() if name != layout.OPENCODE_CONFIG}
    assert shared.items() <= second.files.items()
    assert first.run_command()[0] == second.run_command()[0]
    assert first.run_command()[1].items() <= second.run_command()[1].items()
    assert first.mounted == second.mounted


def test_opencodes_config_folder_is_complete_before_it_starts(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    trial(arm(ControlOpenCode), environment)
    lock = json.loads(environment.files[f"{layout.ROOT}/home/package-lock.json"])
    wanted = json.loads(environment.files[f"{layout.ROOT}/home/package.json"])["dependencies"]
    assert lock["packages"] == {"": {"dependencies": wanted}}
    assert any("~/.config/opencode/node_modules" in command for command, _, _ in environment.commands)


def test_the_config_is_uploaded_and_never_part_of_a_logged_command(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    config = {"provider": {"scripted": {"options": {"baseURL": "http://127.0.0.1:9/v1"}}}}
    trial(arm(ControlOpenCode, opencode_config=config), environment)
    written = json.loads(environment.files[layout.OPENCODE_CONFIG])
    assert written["provider"]["scripted"]["options"]["baseURL"] == "http://127.0.0.1:9/v1"
    assert "demo" in written["provider"]["scripted"]["models"]
    assert written["agent"]["title"]["disable"] is True
    assert not any("127.0.0.1:9" in command for command, _, _ in environment.commands)


def test_the_run_is_wrapped_but_is_still_harbors(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    agent = arm(ControlOpenCode)
    trial(agent, environment, "Say 'hi' & \"bye\"; $HOME")
    command, _ = environment.run_command()
    assert shlex.quote("Say 'hi' & \"bye\"; $HOME") in command
    assert f'export PATH={layout.BIN}:"$PATH"' in command
    assert '[ -n "${HTTPS_PROXY:-}" ] || unset HTTPS_PROXY' in command
    assert f"drain.js {agent._run_id}" in command
    assert command.rstrip().endswith("exit $akm_harbor_rc")


def test_empty_proxy_variables_are_dropped_and_real_ones_kept(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    agent = arm(ControlOpenCode)
    env = {"HTTP_PROXY": "", "https_proxy": "http://proxy:8080", "OTHER": ""}
    asyncio.run(agent.exec_as_agent(environment, "true", env=env))
    _, seen, _ = environment.commands[-1]
    assert "HTTP_PROXY" not in seen
    assert seen["https_proxy"] == "http://proxy:8080"
    assert seen["OTHER"] == ""


def test_a_toolchain_already_there_is_used_and_another_is_replaced(arm: Callable[..., Any], task: Path) -> None:
    agent = arm(ControlOpenCode)
    for present, mounts in ((f'"digest": "{agent._toolchain.digest}"\n', 0), ('"digest": "0123"\n', 1)):
        environment = RecordingEnvironment(task)
        environment.present = present
        asyncio.run(agent.setup(environment))
        assert len(environment.mounted) == mounts


def test_without_mounts_one_archive_is_uploaded(arm: Callable[..., Any], tmp_path: Path, task: Path) -> None:
    (tmp_path / "toolchain.tar").write_text("tar")
    (tmp_path / "toolchain").rename(tmp_path / "tree")
    environment = RecordingEnvironment(task, mounts=False)
    trial(arm(ControlOpenCode, toolchain=str(tmp_path / "toolchain.tar")), environment)
    assert environment.files[f"{layout.TMP}/toolchain.tar"] == "<toolchain.tar>"
    assert any("tar -xf" in command for command, _, _ in environment.commands)


def test_a_folder_without_its_archive_cannot_be_uploaded(arm: Callable[..., Any], task: Path) -> None:
    with pytest.raises(ToolchainError, match="archive is needed"):
        asyncio.run(arm(ControlOpenCode).setup(RecordingEnvironment(task, mounts=False)))


def test_oracle_context_needs_no_akm(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    agent = arm(ControlOpenCode, context="bundle")
    trial(agent, environment)
    assert "The zorbl port is 4117." in environment.files[layout.CONTEXT]
    assert json.loads(environment.files[layout.OPENCODE_CONFIG])["instructions"] == [layout.CONTEXT]
    assert not any(name.startswith(layout.BUNDLE) for name in environment.files)
    assert agent._facts("ok")["bundle"] == "zorbl"


def test_a_placebo_bundle_is_named_in_the_facts(arm: Callable[..., Any], task: Path) -> None:
    agent = arm(AkmOpenCode, bundle="other", arm="irrelevant")
    trial(agent, RecordingEnvironment(task))
    facts = agent._facts("ok")
    assert (facts["arm"], facts["bundle"], facts["bundle_files"], facts["akm_expected"]) == (
        "irrelevant",
        "other",
        1,
        True,
    )
    assert facts["index"] == {"ok": True, "total_entries": 2}


def test_a_treatment_without_a_bundle_is_no_treatment(arm: Callable[..., Any], task: Path, tmp_path: Path) -> None:
    (task / "task.toml").write_text("[metadata]\n")
    with pytest.raises(BundleError, match="names no bundle"):
        asyncio.run(arm(AkmOpenCode).setup(RecordingEnvironment(task)))
    note = json.loads((tmp_path / "logs" / "akm" / "capture.json").read_text())
    assert {entry["why"] for entry in note["missing"]} == {"set-up failed: BundleError"}
    asyncio.run(arm(ControlOpenCode).setup(RecordingEnvironment(task)))


def test_a_failed_selfcheck_fails_the_trial_and_is_written_down(
    arm: Callable[..., Any], task: Path, tmp_path: Path
) -> None:
    environment = RecordingEnvironment(task)
    environment.prepared = {**PREPARED, "index": {"ok": True, "total_entries": 0, "detail": ""}}
    with pytest.raises(SelfCheckError, match="indexed nothing"):
        asyncio.run(arm(AkmOpenCode).setup(environment))
    note = json.loads((tmp_path / "logs" / "akm" / "capture.json").read_text())
    assert note["index"] == {"ok": True, "total_entries": 0}
    assert {entry["why"] for entry in note["missing"]} == {"set-up failed: SelfCheckError"}


def test_a_failed_selfcheck_may_be_recorded_instead(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)
    environment.prepared = {**PREPARED, "selfcheck": {"ok": False, "detail": "exit 1"}}
    agent = arm(AkmOpenCode, selfcheck="record")
    trial(agent, environment)
    assert agent._facts("ok")["selfcheck"] == {"ok": False, "detail": "exit 1"}


def test_a_command_that_fails_says_what_it_was_for(arm: Callable[..., Any], task: Path) -> None:
    environment = RecordingEnvironment(task)

    async def failing(command: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(return_code=1, stdout="", stderr="read-only file system")

    environment.exec = failing  # type: ignore[method-assign,assignment]
    with pytest.raises(AgentError, match=r"folders failed.*read-only"):
        asyncio.run(arm(ControlOpenCode).install(environment))


def test_an_npm_that_fails_ends_the_setup_and_brings_nothing(task: Path) -> None:
    environment = RecordingEnvironment(task)

    async def offline(command: str, **_: Any) -> SimpleNamespace:
        return SimpleNamespace(return_code=1, stdout="", stderr="npm error code ECONNREFUSED")

    environment.exec = offline  # type: ignore[method-assign,assignment]
    with pytest.raises(AgentError, match=r"installing by npm failed.*ECONNREFUSED"):
        asyncio.run(bring_by_npm(environment, load_pins(), treatment=True))  # type: ignore[arg-type]
    assert environment.files == {}


@pytest.mark.parametrize("how", ["time-out", "crash", "interrupt"])
def test_evidence_is_captured_whatever_ends_the_run(how: str, arm: Callable[..., Any], task: Path) -> None:
    from harbor.models.agent.context import AgentContext

    environment = RecordingEnvironment(task)
    agent = arm(AkmOpenCode)

    async def hang() -> None:
        if how == "crash":
            raise RuntimeError("exec died")
        await asyncio.sleep(60)

    environment.on_run = hang

    async def go() -> None:
        await agent.setup(environment)
        run = agent.run("Do it.", environment, AgentContext())
        if how == "interrupt":
            work = asyncio.ensure_future(run)
            await asyncio.sleep(0.1)
            work.cancel()
            await asyncio.wait_for(environment.capturing.wait(), 5)
            work.cancel()  # a second Ctrl-C while the evidence is copied
            await work
        else:
            await asyncio.wait_for(run, timeout=0.2)

    expected: dict[str, type[BaseException]] = {
        "time-out": TimeoutError,
        "crash": RuntimeError,
        "interrupt": asyncio.CancelledError,
    }
    with pytest.raises(expected[how]):
        asyncio.run(go())
    assert environment.captured == 1
    (command,) = [command for command, _, _ in environment.commands if "capture.js" in command]
    assert f"drain.js {agent._run_id} 1 kill" in command
    assert f'"ended": "{"error" if how == "crash" else "cancelled"}"' in command


def test_a_capture_that_fails_leaves_a_note_with_the_reason(
    arm: Callable[..., Any], task: Path, tmp_path: Path
) -> None:
    from harbor.models.agent.context import AgentContext

    environment = RecordingEnvironment(task)
    answer = environment.exec

    async def exec_(command: str, **options: Any) -> SimpleNamespace:
        if "capture.js" in command:
            return SimpleNamespace(return_code=127, stdout="", stderr="bun: not found")
        return await answer(command, **options)

    environment.exec = exec_  # type: ignore[method-assign]
    agent = arm(AkmOpenCode)
    trial(agent, environment)
    (tmp_path / "logs" / "akm").mkdir(parents=True)
    (tmp_path / "logs" / "akm" / "probe.jsonl").write_text('{"version":1}\n')
    agent.populate_context_post_run(AgentContext())
    note = json.loads((tmp_path / "logs" / "akm" / "capture.json").read_text())
    assert [entry["role"] for entry in note["files"]] == ["probe"]
    assert all("bun: not found" in entry["why"] for entry in note["missing"])


def test_the_models_key_is_blanked_in_what_the_agent_wrote(
    arm: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from harbor.models.agent.context import AgentContext

    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    agent = ControlOpenCode(
        logs_dir=tmp_path / "logs", model_name="openai/gpt-4o", toolchain=str(tmp_path / "toolchain")
    )
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "opencode.txt").write_text('{"type":"text","part":{"text":"sk-0123456789abcdef"}}\n')
    agent.populate_context_post_run(AgentContext())
    assert "sk-0123" not in (tmp_path / "logs" / "opencode.txt").read_text()
