"""`harbor run -e akm_harbor:SandboxEnvironment`: Harbor trials without Docker.

For demos, tests and CI. A live model belongs in Docker or a cloud environment: see
docs/sandbox.md for what the sandbox keeps apart and what it does not.
"""

import asyncio
import inspect
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, override

from harbor.environments.base import BaseEnvironment, ExecResult
from harbor.environments.capabilities import EnvironmentCapabilities, EnvironmentResourceCapabilities

from akm_harbor.errors import UsageError
from akm_harbor.sandbox import dockerfile, image, root, transfer
from akm_harbor.sandbox.failures import SandboxError, SandboxUnavailableError, SandboxUnsupportedError
from akm_harbor.sandbox.places import Places, places
from akm_harbor.sandbox.process import Sandbox
from akm_harbor.sandbox.protocol import Bind, Overlay, Setup

# What of the host's environment variables a command in the sandbox sees.
PASSED_VARIABLES = ("LANG", "LC_ALL", "TZ", "TERM")
_COMPOSE_FILES = ("docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml")


class SandboxEnvironment(BaseEnvironment):  # type: ignore[misc]
    """A Harbor environment over bubblewrap and overlayfs, on the host's own system.

    Args:
        rootfs: a folder with a root file system to run on, instead of the host's system.
        cache_dir: where layers are kept (default: the user's cache, or `$AKM_HARBOR_CACHE`).
        pass_env: names of variables of the host to pass on, besides `PASSED_VARIABLES`.
    """

    _own_options: ClassVar[tuple[str, ...]] = ("rootfs", "cache_dir", "pass_env")

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
        if "auto_mounting" in inspect.signature(BaseEnvironment.__init__).parameters:
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
        unknown = sorted(set(kwargs) - known - set(cls._own_options))
        if unknown:
            raise UsageError(
                f"unknown option of the sandbox: {', '.join(unknown)}",
                hint=f"It takes: {', '.join(cls._own_options)}.",
            )

    @override
    def _validate_definition(self) -> None:
        for name in _COMPOSE_FILES:
            if (self.environment_dir / name).exists():
                raise SandboxUnsupportedError(
                    "the sandbox cannot run Docker Compose", path=self.environment_dir / name, hint="Use `-e docker`."
                )
        if (path := self.environment_dir / "Dockerfile").is_file():
            dockerfile.read(path)

    # -- life -----------------------------------------------------------------------------

    @override
    async def start(self, force_build: bool) -> None:
        where = places(self._cache_dir)
        base = await asyncio.to_thread(self._base, where)
        self._image = await image.ensure(
            self.environment_dir,
            base,
            where,
            lambda folder, overlays: self._setup(folder, overlays, ()),
            force=force_build,
        )
        name = re.sub(r"[^A-Za-z0-9._-]", "-", self.session_id)[:60]
        folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=where.trials))
        self._sandbox = await Sandbox.start(self._setup(folder, self._image.overlays(folder), self._binds()))
        folders = [*self._mount_targets(writable_only=True)]
        await self.ensure_dirs(folders)
        if workdir := self.task_env_config.workdir:
            await self.ensure_dirs([workdir], chmod=False)

    def _base(self, where: Places) -> root.Root:
        return root.given_root(self._rootfs, where.bases) if self._rootfs else root.host_root(where.bases)

    def _setup(self, folder: Path, overlays: tuple[Overlay, ...], binds: tuple[Bind, ...]) -> Setup:
        bwrap = shutil.which("bwrap")
        if bwrap is None:
            raise SandboxUnavailableError("bubblewrap (bwrap) is not installed", hint="apt-get install bubblewrap")
        return Setup(str(folder), overlays, binds, "sandbox", bwrap, os.geteuid() != 0)

    def _binds(self) -> tuple[Bind, ...]:
        binds = []
        for mount in getattr(self, "_host_mounts", self._mounts):
            source = Path(mount["source"]).expanduser().resolve()
            if source.is_relative_to(self.trial_paths.trial_dir.resolve()):
                source.mkdir(parents=True, exist_ok=True)
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

    @override
    async def prepare_logs_for_host(self) -> None:
        # Harbor calls this when the agent's phase is over, also after a time-out, before
        # anything is collected or verified: what the agent left running ends here.
        if self._sandbox is not None:
            await self._sandbox.reset()

    @override
    async def _apply_network_policy(self, network_policy: Any) -> None:
        """Nothing to do: every command enters the network its moment's policy asks for."""

    # -- commands and files ---------------------------------------------------------------

    async def _running(self) -> Sandbox:
        if self._sandbox is None:
            raise SandboxError("the sandbox is not running")
        if self._binds_changed:
            self._binds_changed = False
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
        passed = {name: os.environ[name] for name in (*PASSED_VARIABLES, *self._pass_env) if name in os.environ}
        chosen = self._resolve_user(user)
        emit = self._output_callback()

        async def on_output(part: bytes, stream: int) -> None:
            assert emit is not None
            await emit(part.decode(errors="replace"), "stdout" if stream == 1 else "stderr")

        result = await sandbox.run(
            ["bash", "-c", command],
            env={"PATH": dockerfile.DEFAULT_PATH, **passed, **plan.env, **(self._merge_env(env) or {})},
            cwd=cwd or self.task_env_config.workdir or plan.workdir,
            user=str(chosen) if chosen is not None else plan.user,
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
        if sys.platform != "linux":
            raise SystemExit("akm-harbor: the sandbox runs on Linux only; use `-e docker`")
        cls._check_options(kwargs or {})
