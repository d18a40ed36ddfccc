"""The agents of the study's arms: Harbor's OpenCode with everything held equal but the treatment."""

import asyncio
import json
import shlex
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, override

from harbor.agents.installed.opencode import OpenCode
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext

from akm_harbor.agent import akm, capture, compat, delivery, layout, npm_install, scrub
from akm_harbor.agent.bundle import Bundle, find_bundle
from akm_harbor.agent.config import ArmConfig, base_config, check_job_config, finish_config
from akm_harbor.agent.errors import ConfigConflictError, ToolchainError
from akm_harbor.agent.layout import Logs
from akm_harbor.agent.options import AkmOptions, ControlOptions
from akm_harbor.agent.pins import load_pins
from akm_harbor.agent.toolchain import Toolchain, find

_COMMON_ENV = {
    "OPENCODE_DISABLE_AUTOUPDATE": "true",
    "OPENCODE_DISABLE_MODELS_FETCH": "true",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "true",
    "TMPDIR": layout.TMP,
}
"""Every command of every arm: nothing is fetched inside a trial, and temporary files outlive one exec."""


class ControlOpenCode(OpenCode):  # type: ignore[misc]
    """opencode without akm: the baseline, and with `context=bundle` the oracle-context arm.

    Toolchain, boot, config, permissions, probe and capture are the same on every arm.
    """

    options_model: ClassVar[Any] = ControlOptions
    TREATMENT: ClassVar[bool] = False
    _version: str | None
    _FOLDERS: ClassVar[tuple[str, ...]] = (layout.ROOT, layout.CONFIG, layout.TMP)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.arm: ControlOptions = compat.check_options(type(self), self.options_model, kwargs)
        if not compat.HARBOR_VALIDATES:
            known = compat.framework_names(OpenCode) | {"variant"}
            kwargs = {name: value for name, value in kwargs.items() if name in known}
        super().__init__(*args, **kwargs)
        self._check(self.arm)
        self._DEFAULT_CONFIG = base_config()
        self._toolchain: Toolchain | None = None
        if self.arm.install == "toolchain":
            self._toolchain = find(self.arm.toolchain, need_akm=self.TREATMENT)
            self._take_version(self._toolchain)
        elif self._version is None:
            self._version = load_pins()["opencode"].version
        self._opencode_version = self._version
        self._run_id = uuid.uuid4().hex
        self._bundle: Bundle | None = None
        self._prepared: akm.Prepared | None = None
        self._timings: dict[str, float] = {}
        self._capture_note = "the agent did not run"

    @classmethod
    def _check(cls, options: ControlOptions) -> None:
        if getattr(options, "skip_install", False):  # Harbor 0.26 and newer have it
            raise ConfigConflictError(
                "skip_install would skip the arm itself",
                hint="A toolchain that is in the image or mounted by the job is found without it.",
            )
        check_job_config(options.opencode_config or {}, title=options.title, treatment=cls.TREATMENT)

    @classmethod
    def preflight(cls, kwargs: dict[str, Any] | None = None, env: Mapping[str, str] | None = None) -> None:
        """Check kwargs, config and toolchain before any trial (Harbor 0.25 and newer)."""
        super().preflight(kwargs, env)
        options = compat.check_options(cls, cls.options_model, kwargs or {})
        cls._check(options)
        if options.install == "toolchain":
            find(options.toolchain, need_akm=cls.TREATMENT)

    @staticmethod
    @override
    def name() -> str:
        return "opencode-control"

    @override
    def version(self) -> str | None:
        if self._toolchain is not None:
            return self._toolchain.agent_version
        return f"{self._version}+npm"

    @property
    def arm_label(self) -> str:
        """The study arm's label: the `arm` kwarg, else `control` or `akm`."""
        return self.arm.arm or ("akm" if self.TREATMENT else "control")

    @property
    def _logs(self) -> Logs:
        return Logs(str(self.environment_logs_dir))

    def _take_version(self, toolchain: Toolchain) -> None:
        held = toolchain.versions["opencode"]
        wanted = self._version or held
        self._version = held  # set, or some Harbor versions ask the container for it
        if wanted != held:
            raise ToolchainError(
                f"version={wanted}, but the toolchain holds opencode {held}",
                path=toolchain.tar or toolchain.tree,
                hint=f"Build one: akm-harbor toolchain build --opencode {wanted}; then --ak toolchain=PATH.",
            )

    # Set-up

    @override
    async def install(self, environment: BaseEnvironment) -> None:
        try:
            await self._set_up(environment)
        except BaseException as error:
            self._note_missing_capture("error", f"set-up failed: {type(error).__name__}")
            raise

    async def _set_up(self, environment: BaseEnvironment) -> None:
        task_dir = Path(environment.environment_dir).parent
        self._bundle = self._choose_bundle(task_dir)
        target, present = await delivery.look(environment, list(self._FOLDERS))
        if self.arm.install == "npm":
            await OpenCode.install(self, environment)
            await delivery.must(environment, "making room", f"mkdir -m 777 -p {layout.TOOLCHAIN}", user="root")
            await npm_install.bring_by_npm(environment, load_pins(), treatment=self.TREATMENT)
        else:
            if self.arm.toolchain is None and target is not None:
                self._toolchain = find(None, target=target, need_akm=self.TREATMENT)
            assert self._toolchain is not None
            if present != self._toolchain.digest:
                await delivery.bring_toolchain(environment, self._toolchain)
        await delivery.upload_files(
            environment, {**delivery.config_folder(), **self._files()}, self._treatment_bundle()
        )
        await delivery.must(environment, "settling the arm's files", self._settle_command(), user="root")
        await self._boot(environment)

    def _choose_bundle(self, task_dir: Path) -> Bundle | None:
        if not self.TREATMENT and self.arm.context == "none":
            return None
        return find_bundle(self.arm.bundle, task_dir, self.arm.bundles_dir)

    def _treatment_bundle(self) -> Bundle | None:
        return None

    def _files(self) -> dict[str, str | Path]:
        if self.arm.context == "bundle" and self._bundle is not None:
            return {"config/context.md": self._bundle.context_text()}
        return {}

    def _settle_command(self) -> str:
        links = " && ".join(f"ln -sf {layout.TOOLCHAIN}/bin/{name} {layout.BIN}/{name}" for name in self._commands())
        return f"chmod -R a+rwX {layout.CONFIG} {layout.ROOT}/home && mkdir -p {layout.BIN} && {links}"

    def _commands(self) -> tuple[str, ...]:
        return ("opencode",)

    async def _boot(self, environment: BaseEnvironment) -> None:
        """As the agent's user: fill opencode's config folder, and see that the toolchain runs at all."""
        # opencode is a program made with Bun: the toolchain's own Bun fails where it would, and starts
        # in no time. Which opencode it is, the toolchain's digest says; npm's has to be asked.
        program = f"{layout.TOOLCHAIN}/bin/bun" if self._toolchain else f"{layout.BIN}/opencode"
        command = f"{delivery.settle_command()} && mkdir -p {self._logs.evidence} && {program} --version"
        try:
            seen = await delivery.must(environment, "starting opencode", command, env=self._environment())
        except RuntimeError as error:
            held = self._toolchain.platform if self._toolchain else "npm"
            raise ToolchainError(
                f"opencode ({held}) does not start in this container: {error}",
                hint="Build for the container's platform, e.g. akm-harbor toolchain build --platform linux-x64-musl.",
            ) from error
        if self._toolchain is None:
            self._opencode_version = seen.strip().splitlines()[-1]

    def _environment(self) -> dict[str, str]:
        """Variables of every command the agent runs."""
        return dict(_COMMON_ENV)

    @override
    async def exec_as_agent(
        self,
        environment: BaseEnvironment,
        command: str,
        env: dict[str, str] | None = None,
        cwd: str | None = None,
        timeout_sec: int | None = None,
    ) -> Any:
        if "opencode --model=" in command:
            command = self._wrap_run(command)
        merged = {**self._environment(), **delivery.without_empty_proxies(env)}
        return await super().exec_as_agent(environment, command, env=merged, cwd=cwd, timeout_sec=timeout_sec)

    def _wrap_run(self, command: str) -> str:
        # The drain is part of the same exec: some environments end detached
        # children, such as a last feedback call, together with their exec.
        drain = f"{layout.TOOLCHAIN}/bin/bun {layout.TOOLCHAIN}/scripts/drain.js {self._run_id} {capture.DRAIN_SECONDS}"
        return f"{delivery.run_prefix(self._run_id)}{command}; akm_harbor_rc=$?; {drain}; exit $akm_harbor_rc"

    # opencode.json

    def _arm_config(self) -> ArmConfig:
        return ArmConfig(self.arm.title, self.arm.context == "bundle", self._plugin_options(), self._logs.probe)

    def _plugin_options(self) -> dict[str, str] | None:
        return None

    def effective_config(self) -> dict[str, Any]:
        """The opencode.json of this arm: base, Harbor's own, the job's, then what the arm needs."""
        words = shlex.split(super()._build_register_config_command() or "")
        merged = json.loads(words[words.index("echo") + 1]) if "echo" in words else base_config()
        return finish_config(merged, self._arm_config())

    @override
    def _build_register_config_command(self) -> str:
        # The text itself is uploaded, not echoed: commands end up in trial.log.
        return f"mkdir -p ~/.config/opencode && cp {layout.OPENCODE_CONFIG} ~/.config/opencode/opencode.json"

    # Run and evidence

    @override
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        ended = "error"
        try:
            config = json.dumps(self.effective_config(), indent=2) + "\n"
            await delivery.upload_files(environment, {"config/opencode.json": config})
            await super().run(instruction, environment, context)
            ended = "ok"
        except asyncio.CancelledError:
            ended = "cancelled"
            raise
        finally:
            await self._capture(environment, ended)

    async def _capture(self, environment: BaseEnvironment, ended: str) -> None:
        """Capture within a bound, whatever ended the run; a failure is noted, never raised."""
        command = capture.capture_command(self._facts(ended), self._logs, self._run_id)
        work = asyncio.ensure_future(environment.exec(command, timeout_sec=capture.CAPTURE_SECONDS))
        try:
            # Harbor cancels a run at its time limit; the copy must still happen.
            done, _ = await asyncio.wait({work}, timeout=capture.CAPTURE_SECONDS + 5)
        except asyncio.CancelledError:
            done, _ = await asyncio.wait({work}, timeout=5)
            raise
        finally:
            if not work.done():
                work.cancel()
                self._capture_note = "the capture did not finish in time"
        for finished in done:
            error = finished.exception()
            result = None if error else finished.result()
            if result is not None and result.return_code == 0:
                self._capture_note = ""
            else:
                self._capture_note = f"the capture failed: {error or (result and result.stderr) or 'no output'}"[:300]
                self.logger.warning(self._capture_note)

    def _facts(self, ended: str) -> dict[str, Any]:
        bundle = self._bundle
        return {
            "version": capture.VERSION,
            "arm": self.arm_label,
            "agent": self.name(),
            "ended": ended,
            "opencode_version": self._opencode_version,
            "akm_version": None,
            "plugin_version": None,
            "toolchain_digest": self._toolchain.digest if self._toolchain else None,
            "toolchain_platform": self._toolchain.platform if self._toolchain else None,
            "install": self.arm.install,
            "title": self.arm.title,
            "context": self.arm.context,
            "inject": None,
            "tools": None,
            "bundle": bundle.name if bundle else None,
            "bundle_digest": bundle.digest if bundle else None,
            "bundle_files": len(bundle.files) if bundle else None,
            "bundle_left_out": list(bundle.left_out) if bundle else [],
            "bundle_dir": None,
            "akm_expected": self.TREATMENT,
            "index": None,
            "selfcheck": None,
            "timings": self._timings,
        }

    @override
    def populate_context_post_run(self, context: AgentContext) -> None:
        self._note_missing_capture("error", self._capture_note)
        scrub.scrub(self.logs_dir, scrub.secret_values([self.model_connection.env, self.extra_env]))
        super().populate_context_post_run(context)

    def _note_missing_capture(self, ended: str, why: str) -> None:
        """On the host: a run without a capture.json gets one that says why."""
        evidence = self.logs_dir / "akm"
        if (evidence / "capture.json").is_file():
            return
        try:
            capture.write_fallback(evidence, self._facts(ended), self._logs, why)
        except OSError as error:
            self.logger.warning("can't write %s: %s", evidence / "capture.json", error)

    @override
    def _convert_events_to_trajectory(self, events: list[dict[str, Any]]) -> Any:
        trajectory = super()._convert_events_to_trajectory(events)
        if trajectory is not None:
            trajectory.agent.name = self.name()
        return trajectory


class AkmOpenCode(ControlOpenCode):
    """opencode with the akm-opencode plugin, akm and the task's own bundle."""

    options_model: ClassVar[Any] = AkmOptions
    TREATMENT: ClassVar[bool] = True
    _FOLDERS: ClassVar[tuple[str, ...]] = (
        layout.ROOT,
        layout.CONFIG,
        layout.TMP,
        layout.BUNDLE,
        *layout.AKM_DIRS.values(),
    )
    arm: AkmOptions

    @staticmethod
    @override
    def name() -> str:
        return "opencode-akm"

    @override
    def _treatment_bundle(self) -> Bundle | None:
        return self._bundle

    @override
    def _files(self) -> dict[str, str | Path]:
        evidence = self._logs.evidence
        return {
            **super()._files(),
            "config/akm/config.json": akm.akm_config(),
            "config/prepare.json": akm.prepare_spec(index=self.arm.index == "on", evidence=evidence),
        }

    @override
    def _settle_command(self) -> str:
        return f"{super()._settle_command()} && chmod -R a+rwX {layout.BUNDLE}"

    @override
    def _commands(self) -> tuple[str, ...]:
        return ("opencode", "akm")

    @override
    def _environment(self) -> dict[str, str]:
        return {**super()._environment(), **akm.akm_environment(self.arm.write_gate)}

    @override
    def _plugin_options(self) -> dict[str, str]:
        return {
            "entry": layout.PLUGIN_PACKAGE,
            "note": self._logs.plugin_load,
            "inject": self.arm.inject,
            "tools": self.arm.tools,
        }

    @override
    async def _boot(self, environment: BaseEnvironment) -> None:
        command = f"{layout.TOOLCHAIN}/bin/bun {layout.TOOLCHAIN}/scripts/prepare.js {layout.CONFIG}/prepare.json"
        preparing = environment.exec(command, env=self._environment(), timeout_sec=300)
        _, done = await asyncio.gather(super()._boot(environment), preparing)
        self._prepared = akm.read_prepared(done.stdout, done.stderr, done.return_code)
        self._timings = dict(self._prepared.timings)
        if self.arm.selfcheck == "strict":
            self._prepared.require_healthy(files=len(self._bundle.files) if self._bundle else 0)

    @override
    def _facts(self, ended: str) -> dict[str, Any]:
        versions: Mapping[str, str] = self._toolchain.versions if self._toolchain else {}
        prepared = self._prepared
        index = prepared.index if prepared else None
        return {
            **super()._facts(ended),
            "akm_version": versions.get("akm") or load_pins()["akm"].version,
            "plugin_version": versions.get("plugin") or load_pins()["plugin"].version,
            "inject": self.arm.inject,
            "tools": self.arm.tools,
            "write_gate": self.arm.write_gate,
            "bundle_dir": layout.BUNDLE,
            "index": {"ok": index["ok"], "total_entries": index["total_entries"]} if index else None,
            "index_mode": self.arm.index,
            "selfcheck": dict(prepared.selfcheck) if prepared else None,
            "selfcheck_mode": self.arm.selfcheck,
            "akm_calls_env": {k: v for k, v in self.extra_env.items() if k.startswith("AKM_") and len(v) < 40},
        }
