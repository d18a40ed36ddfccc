"""Build what a Dockerfile says once, keep the layer by content, reuse it in later trials."""

import asyncio
import contextlib
import hashlib
import json
import os
import re
import tarfile
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path

from akm_harbor.sandbox import cleanup, dockerfile, transfer
from akm_harbor.sandbox.dockerfile import Copy, Plan, Run, Workdir
from akm_harbor.sandbox.failures import DockerfileError, SandboxError
from akm_harbor.sandbox.places import Places
from akm_harbor.sandbox.process import Sandbox
from akm_harbor.sandbox.protocol import Overlay, Setup
from akm_harbor.sandbox.root import Root
from akm_harbor.sandbox.supervisor import processes, trees

_ENV = {"PATH": dockerfile.DEFAULT_PATH}
_MAGIC = re.compile(r"[*?\[]")
_LOG_TAIL = 20
_LOCK_POLL = 0.05
# A forced build is made once by each Harbor process, beside the layer that others may stand on.
_FORCED = f"-forced-{os.getpid()}-{time.time_ns():x}"

SetupMaker = Callable[[Path, tuple[Overlay, ...]], Setup]


@dataclass(frozen=True, slots=True)
class Image:
    """A base with the layer of a Dockerfile on top; `layer` is None when nothing was built."""

    root: Root
    plan: Plan
    layer: Path | None

    def overlays(self, folder: Path) -> tuple[Overlay, ...]:
        """The overlay mounts of a sandbox whose writable layers lie in `folder`."""
        return tuple(
            Overlay(
                target=part.target,
                lower=(
                    *([str(self.layer / part.name)] if self.layer and (self.layer / part.name).is_dir() else []),
                    *part.lower,
                ),
                upper=str(folder / "upper" / part.name),
                work=str(folder / "work" / part.name),
            )
            for part in self.root.parts
        )


async def ensure(
    context: Path,
    root: Root,
    where: Places,
    setup: SetupMaker,
    *,
    force: bool = False,
) -> Image:
    """The image of the Dockerfile in `context`, built unless its layer is there already.

    Safe to call from several tasks and processes at once: one builds, the others wait.

    Args:
        context: folder with the Dockerfile and the files it copies.
        root: base to build on.
        where: where layers are kept.
        setup: makes the sandbox to build in, from its folder and overlays.
        force: build again even if the layer is there.

    Raises:
        DockerfileError: the Dockerfile asks for what cannot be done.
        SandboxError: a step failed.
    """
    path = context / "Dockerfile"
    plan = dockerfile.read(path) if path.is_file() else Plan()
    if not plan.steps:
        return Image(root, plan, None)
    copies = {step.line: _sources(step, context, path) for step in plan.steps if isinstance(step, Copy)}
    key = await asyncio.to_thread(_key, plan, root, copies)
    layer = where.images / (key + _FORCED if force else key)
    if not layer.is_dir():
        async with _locked(cleanup.build_lock(where, key)):
            if not layer.is_dir():
                await _build(Image(root, plan, None), layer, key, path=path, copies=copies, setup=setup)
    return Image(root, plan, layer)


def check_single_user(plan: Plan, path: Path) -> None:
    """Refuse a Dockerfile that needs a second user, for a sandbox without root.

    Raises:
        DockerfileError: it has a USER or a --chown that is not root.
    """
    wanted = [
        (step.line, step.user if isinstance(step, Run) else step.chown)
        for step in plan.steps
        if isinstance(step, Run | Copy)
    ]
    for line, who in [*wanted, (plan.user_line, plan.user)]:
        if who is not None and who.partition(":")[0] not in {"root", "0"}:
            raise DockerfileError(
                f"user {who!r}: without root the sandbox has only one user",
                path=path,
                line=line,
                hint="Run Harbor as root for this task, or use `-e docker`.",
            )


async def _build(
    base: Image, layer: Path, key: str, *, path: Path, copies: dict[int, list[Path]], setup: SetupMaker
) -> None:
    folder = Path(tempfile.mkdtemp(prefix=f"{key}{cleanup.BUILDING}", dir=layer.parent))
    sandbox = await Sandbox.start(replace(setup(folder, base.overlays(folder)), durable=True))
    try:
        for step in base.plan.steps:
            match step:
                case Workdir():
                    await _checked(sandbox, step.line, path, ["mkdir", "-p", "--", step.path])
                case Run():
                    await _run(sandbox, step, path)
                case Copy():
                    await _copy(sandbox, step, path, copies[step.line])
        await sandbox.reset()
    except BaseException:
        await asyncio.shield(sandbox.stop(remove=True))
        raise
    await asyncio.shield(sandbox.stop(remove=False))
    (folder / "upper" / "image.json").write_text(json.dumps({"base": base.root.identity, "dockerfile": str(path)}))
    (folder / "upper").rename(layer)
    await asyncio.to_thread(trees.remove, str(folder))


async def _checked(sandbox: Sandbox, line: int, path: Path, argv: list[str]) -> None:
    result = await sandbox.run(argv, env=_ENV)
    if result.code != 0:
        raise _failed(path, line, result.code, result.stdout + result.stderr)


async def _run(sandbox: Sandbox, step: Run, path: Path) -> None:
    result = await sandbox.run(step.argv, env=step.env, cwd=step.cwd, user=step.user)
    if result.code != 0:
        raise _failed(path, step.line, result.code, result.stdout + result.stderr)


async def _copy(sandbox: Sandbox, step: Copy, path: Path, sources: list[Path]) -> None:
    uid, gid = await _owner(sandbox, step, path)
    exists = (await sandbox.run(["test", "-d", step.target], env=_ENV)).code == 0
    into = step.into_folder or exists or len(sources) > 1 or sources[0].is_dir()
    folder = step.target if into else os.path.dirname(step.target)  # noqa: PTH120 - a sandbox path

    def own(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid, member.gid, member.uname, member.gname = uid, gid, "", ""
        if step.chmod is not None and not member.issym():
            member.mode = step.chmod
        return member

    def write(archive: tarfile.TarFile) -> None:
        for source in sources:
            if source.is_dir():
                for entry in sorted(source.iterdir()):
                    archive.add(entry, arcname=entry.name, filter=own)
            else:
                name = source.name if into else os.path.basename(step.target)  # noqa: PTH119 - a sandbox path
                archive.add(source, arcname=name, filter=own)

    await transfer.unpack_inside(sandbox, folder, write, keep_owner=True)
    if into and not exists and step.chown is not None:
        await _checked(sandbox, step.line, path, ["chown", f"{uid}:{gid}", "--", step.target])


async def _owner(sandbox: Sandbox, step: Copy, path: Path) -> tuple[int, int]:
    if step.chown is None:
        return 0, 0
    texts = [
        (await sandbox.run(["cat", f"/etc/{name}"], env=_ENV)).stdout.decode(errors="replace")
        for name in ("passwd", "group")
    ]
    user, colon, group = step.chown.partition(":")
    try:
        account = processes.find_account(user if not colon or not group else f"{user}:{group}", *texts)
    except LookupError as error:
        raise DockerfileError(f"--chown={step.chown}: {error}", path=path, line=step.line) from error
    return account.uid, account.gid


def _sources(step: Copy, context: Path, path: Path) -> list[Path]:
    """The files and folders a COPY means; never one outside the context."""
    top = context.resolve()
    found: list[Path] = []
    for pattern in step.sources:
        relative = pattern.lstrip("/")
        matches = sorted(top.glob(relative)) if _MAGIC.search(relative) else [relative]
        resolved = [(top / match).resolve() for match in matches]
        if any(not entry.is_relative_to(top) for entry in resolved):
            raise DockerfileError(f"COPY {pattern} leads out of the build context", path=path, line=step.line)
        there = [entry for entry in resolved if entry.exists()]
        if not there:
            raise DockerfileError(f"COPY {pattern}: no such file in the build context", path=path, line=step.line)
        found += there
    if len(found) > 1 and not step.into_folder:
        raise DockerfileError("with several sources the destination of COPY must end with /", path=path, line=step.line)
    return found


def _key(plan: Plan, root: Root, copies: dict[int, list[Path]]) -> str:
    digest = hashlib.sha256(f"{root.identity}\n{plan.steps!r}\n".encode())
    for sources in copies.values():
        for source in sources:
            for file in [source, *sorted(source.rglob("*"))] if source.is_dir() else [source]:
                details = file.lstat()
                digest.update(f"{file.relative_to(source)} {details.st_mode}\n".encode("utf-8", "surrogateescape"))
                if file.is_symlink():
                    digest.update(os.readlink(file).encode("utf-8", "surrogateescape"))  # noqa: PTH115
                elif file.is_file():
                    with file.open("rb") as content:
                        digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:32]


@contextlib.asynccontextmanager
async def _locked(path: Path) -> AsyncIterator[None]:
    import fcntl

    with path.open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_POLL)
        yield


def _failed(path: Path, line: int, code: int, output: bytes) -> SandboxError:
    tail = "\n".join(output.decode(errors="replace").splitlines()[-_LOG_TAIL:])
    return SandboxError(f"line {line}: the build step ended with exit code {code}\n{tail}", path=path)
