"""`harbor run -e akm_harbor:SandboxEnvironment`: Harbor trials without Docker.

For demos, tests and CI. A live model belongs in Docker or a cloud environment: see
docs/sandbox.md for what the sandbox keeps apart and what it does not.
"""

import asyncio
import contextlib
import inspect
import logging
import os
import re
import sys
import tempfile
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities
from harbor.models.task.config import NetworkMode

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.sandbox import check, dockerfile, environ, image, root, transfer
from akm_harbor.sandbox.failures import SandboxError, SandboxUnsupportedError
from akm_harbor.sandbox.places import Places, places
from akm_harbor.sandbox.process import Sandbox
from akm_harbor.sandbox.protocol import Bind, Overlay, Setup

_COMPOSE_FILES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")
_PURPOSE = "the sandbox is for demos, tests and CI: run a live model in Docker or a cloud environment"
_TOLD: set[str] = set()
_OPTIONS = ("rootfs", "cache_dir", "pass_env")


class SandboxEnvironment(BaseEnvironment):  # type: ignore[misc]
    """A Harbor environment over bubblewrap and overlayfs, on the host's own system.

    Args:
        rootfs: a folder with a root file system to run on, instead of the host's system.
        cache_dir: where layers are kept (default: the user's cache, or `$AKM_HARBOR_CACHE`).
        pass_env: names of environment variables of the host to pass on (comma-separated or a list).
    """

    def __init__(
        self,
        *args: Any,
        rootfs: str | Path | None = None,
        cache_dir: str | Path | None = None,
        pass_env: str | Sequence[str] = (),
        **kwargs: Any,
    ) -> None:
        self._check_options(kwargs)
        self._rootfs = Path(rootfs) if rootfs else None
        self._cache_dir = cache_dir
        self._pass_env = tuple(pass_env.split(",") if isinstance(pass_env, str) else pass_env)
        self._sandbox: Sandbox | None = None
        self._image: image.Image | None = None
        self._extra_binds: list[Bind] = []
        self._binds_changed = False
        self._sandbox_is_single_user = sys.platform == "linux" and os.geteuid() != 0
        check.linux()
        self._phases_left = 0
        self._reset_due = False
        if "auto_mounting" in inspect.signature(BaseEnvironment.__init__).parameters:  # since Harbor 0.25
            kwargs.setdefault("auto_mounting", True)
        super().__init__(*args, **kwargs)

    # -- what Harbor asks before a trial ------------------------------------------------

    @staticmethod
    @override
    def type() -> str:
        return "akm-sandbox"

    @property
    @override
    def capabilities(self) -> EnvironmentCapabilities:
        return EnvironmentCapabilities(disable_internet=True, dynamic_network_policy=True, mounted=True)

    @classmethod
    @override
    def resource_capabilities(cls) -> EnvironmentResourceCapabilities | None:
        # No limit is enforced; a job that insists on one is refused, a task that names one runs.
        fields = EnvironmentResourceCapabilities.model_fields
        return EnvironmentResourceCapabilities(**({"fractional_cpus": True} if "fractional_cpus" in fields else {}))

    @classmethod
    def _check_options(cls, kwargs: dict[str, Any]) -> None:
        known = set(inspect.signature(BaseEnvironment.__init__).parameters) | {"suppress_override_warnings"}
        unknown = sorted(set(kwargs) - known - set(_OPTIONS))
        if unknown:
            raise UsageError(
                f"unknown option of the sandbox: {', '.join(unknown)}",
                hint=f"It takes: {', '.join(_OPTIONS)}.",
            )

    @override
    def _validate_definition(self) -> None:
        for name in _COMPOSE_FILES:
            if (self.environment_dir / name).exists():
                raise _unsupported("the sandbox cannot run Docker Compose", self.environment_dir / name)
        if (self.environment_dir / ".dockerignore").exists():
            raise _unsupported("the sandbox does not read .dockerignore", self.environment_dir / ".dockerignore")
        path = self.environment_dir / "Dockerfile"
        if path.is_file():
            plan = dockerfile.read(path)
            if self._sandbox_is_single_user:
                image.check_single_user(plan, path)
        elif self._rootfs is None:
            wanted = self.task_env_config.docker_image
            raise _unsupported(
                f"the sandbox cannot run the image {wanted!r}" if wanted else "the task has no environment/Dockerfile",
                self.environment_dir,
                "Give the sandbox that root file system with `--ek rootfs=FOLDER`, or use `-e docker`.",
            )
        for mount in self._host_binds():
            if mount["type"] != "bind":
                raise _unsupported(f"the sandbox cannot mount a {mount['type']} at {mount['target']}", None)

    # Harbor's own checks of what an environment can do, with the sandbox's type of error.

    @override
    def _validate_extra_docker_compose_support(self) -> None:
        _typed(super()._validate_extra_docker_compose_support)

    @override
    def _validate_resource_mode_support(self) -> None:
        _typed(super()._validate_resource_mode_support)

    @override
    def _validate_gpu_support(self) -> None:
        _typed(super()._validate_gpu_support)

    @override
    def _validate_tpu_support(self) -> None:
        _typed(super()._validate_tpu_support)

    @override
    def _validate_windows_support(self) -> None:
        _typed(super()._validate_windows_support)

    @override
    def validate_network_policy_support(self, network_policy: Any = None) -> None:
        _typed(lambda: super(SandboxEnvironment, self).validate_network_policy_support(network_policy))

    # -- life -----------------------------------------------------------------------------

    @override
    async def start(self, force_build: bool) -> None:
        where = places(self._cache_dir)
        base = await asyncio.to_thread(self._base, where)
        root.check_no_overlap(base, where.cache)
        self._image = await image.ensure(self.environment_dir, base, where, self._setup, force=force_build)
        for note in (_PURPOSE, *self._notes()):
            # Every trial.log has them all; the console tells each once a process.
            self.logger.log(logging.DEBUG if note in _TOLD else logging.INFO, "sandbox: %s", note)
            _TOLD.add(note)
        name = re.sub(r"[^A-Za-z0-9._-]", "-", self.session_id)[:60]
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=where.trials))
        setup = self._setup(folder, self._image.overlays(folder))
        self._sandbox = await Sandbox.start(replace(setup, binds=self._binds()))
        await self.ensure_dirs(self._mount_targets(writable_only=True))
        if workdir := self.task_env_config.workdir:
            await self._sandbox.run(["mkdir", "-p", "--", workdir], env={"PATH": dockerfile.DEFAULT_PATH})
        await self._upload_environment_dir_after_start()

    def _notes(self) -> list[str]:
        notes = list(self._image.plan.notes) if self._image else []
        if wanted := self.task_env_config.docker_image:
            notes.append(f"the image {wanted} is ignored: the sandbox runs on its own base")
        return notes

    def _base(self, where: Places) -> root.Root:
        return root.given_root(self._rootfs, where.bases) if self._rootfs else root.host_root(where.bases)

    def _setup(self, folder: Path, overlays: tuple[Overlay, ...]) -> Setup:
        return Setup(str(folder), overlays, (), root.HOSTNAME, check.bubblewrap(), os.geteuid() != 0)

    def _host_binds(self) -> list[dict[str, Any]]:
        # Since 0.25 Harbor keeps apart what is only to be created and what is to be mounted.
        mounts: Any = getattr(self, "_host_mounts", self._mounts)
        return list(mounts)

    def _binds(self) -> tuple[Bind, ...]:
        binds = []
        trial = self.trial_paths.trial_dir.resolve()
        for mount in self._host_binds():
            source = Path(mount["source"]).expanduser().resolve()
            if source.is_relative_to(trial):
                source.mkdir(parents=True, exist_ok=True)
            if not source.exists():
                raise SandboxError("nothing there to mount", path=source)
            binds.append(Bind(str(source), mount["target"], bool(mount.get("read_only"))))
        return (*binds, *self._extra_binds)

    def add_readonly_mount(self, host_path: Path | str, container_path: str) -> None:
        """Show a host path inside, read-only, from the next command on.

        Processes left in the background by earlier commands end then.
        """
        source = Path(host_path).resolve()
        if not source.exists():
            raise SandboxError("nothing there to mount", path=source)
        self._extra_binds.append(Bind(str(source), container_path, read_only=True))
        self._binds_changed = True

    @override
    async def stop(self, delete: bool) -> None:
        if self._sandbox is not None:
            await self._sandbox.stop(remove=delete)
            self._sandbox = None

    # No process of the agent may live into verification. Harbor calls `prepare_logs_for_host`
    # when the agent's phase is over, also after a time-out, before anything is collected or
    # verified; where a job's own mounts keep it from doing so, the phase's end is seen below.

    @override
    async def prepare_logs_for_host(self) -> None:
        self._reset_due = True
        if self._sandbox is not None:
            await self._running()

    @override
    @contextlib.contextmanager
    def with_default_user(self, user: str | int | None) -> Generator[None]:
        with super().with_default_user(user):
            try:
                yield
            finally:
                self._phases_left += 1
                self._reset_due = (
                    self._phases_left > 1
                )  # the first is the set-up, which may leave helpers for the agent

    @override
    async def _apply_network_policy(self, network_policy: Any) -> None:
        # A command enters the network its moment's policy asks for; one left in the
        # background would keep a network that is over.
        if network_policy.network_mode != NetworkMode.PUBLIC and self._sandbox is not None:
            self._reset_due = True
            await self._running()

    # -- commands and files ---------------------------------------------------------------

    async def _running(self) -> Sandbox:
        if self._sandbox is None:
            raise SandboxError("the sandbox is not running")
        if self._binds_changed or self._reset_due:
            self._binds_changed = self._reset_due = False
            await self._sandbox.reset(self._binds())
        return self._sandbox

    @override
    async def exec(
        self,
        command: str,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_sec: int | None = None,
        user: str | int | None = None,
    ) -> ExecResult:
        sandbox = await self._running()
        assert self._image is not None
        plan = self._image.plan
        passed = environ.passed_on(self._pass_env, certificates=self._rootfs is None)
        resolved = self._resolve_user(user)
        who = str(resolved) if resolved is not None else plan.user
        if self._sandbox_is_single_user and who not in {"root", "0"}:
            raise SandboxUnsupportedError(
                f"cannot run as {who}: without root the sandbox has only one user",
                hint="Run Harbor as root for this task.",
            )
        emit = self._output_callback()

        async def on_output(part: bytes, stream: int) -> None:
            assert emit is not None
            await emit(part.decode(errors="replace"), "stdout" if stream == 1 else "stderr")

        result = await sandbox.run(
            ["bash", "-c", command],
            env={"PATH": dockerfile.DEFAULT_PATH, **passed, **plan.env, **(self._merge_env(env) or {})},
            cwd=cwd or self.task_env_config.workdir or plan.workdir,
            user=who,
            network=not self._network_disabled,
            timeout=timeout_sec,
            on_output=on_output if emit else None,
        )
        return ExecResult(
            stdout=result.stdout.decode(errors="replace"),
            stderr=result.stderr.decode(errors="replace"),
            return_code=result.code,
        )

    @override
    async def upload_file(self, source_path: Path | str, target_path: str) -> None:
        await transfer.upload_file(await self._running(), Path(source_path), str(target_path))

    @override
    async def upload_dir(self, source_dir: Path | str, target_dir: str) -> None:
        await transfer.upload_dir(await self._running(), Path(source_dir), str(target_dir))

    @override
    async def download_file(self, source_path: str, target_path: Path | str) -> None:
        await transfer.download_file(await self._running(), str(source_path), Path(target_path))

    @override
    async def download_dir(self, source_dir: str, target_dir: Path | str) -> None:
        await transfer.download_dir(await self._running(), str(source_dir), Path(target_dir), self.logger)

    @classmethod
    @override
    def preflight(cls, kwargs: dict[str, Any] | None = None) -> None:
        """Refuse, before any trial, a machine that lacks what the sandbox stands on."""
        try:
            check.bubblewrap()
            cls._check_options(kwargs or {})
        except AkmHarborError as error:
            raise SystemExit(f"akm-harbor: {error}") from None


def _unsupported(
    message: str, path: Path | None, hint: str = "Use `-e docker` for this task."
) -> SandboxUnsupportedError:
    return SandboxUnsupportedError(message, path=path, hint=hint)


def _typed(validate: Callable[[], None]) -> None:
    try:
        validate()
    except (RuntimeError, ValueError) as error:
        raise _unsupported(str(error), None) from error
