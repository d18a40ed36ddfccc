"""Images: what COPY and RUN make, what the cache keys on, who builds."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.sandbox.failures import DockerfileError, SandboxError

pytestmark = pytest.mark.sandbox
Started = Callable[..., Any]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="a second user needs root")


def layers(cache: Path) -> list[Path]:
    return sorted(path for path in cache.glob("user-*/images/*") if path.is_dir())


async def listing(env: Any, command: str) -> list[str]:
    result = await env.exec(command)
    assert result.return_code == 0, result
    return str(result.stdout).split()


COPIES = {
    "a.txt": "a",
    "b.txt": "b",
    ".hidden": "h",
    "dir/one": "1",
    "dir/sub/two": "2",
    "run.sh": "#!/bin/sh\n",
    "with space.txt": "s",
}


@pytest.mark.parametrize(
    ("copy", "made"),
    [
        ("COPY a.txt /x/y", "/x/y"),
        ("COPY a.txt /x/y/", "/x/y/a.txt"),
        ("COPY a.txt .", "/app/a.txt"),
        ("COPY a.txt sub/", "/app/sub/a.txt"),
        ("COPY a.txt /there", "/there/a.txt"),  # a folder that exists
        ("COPY a.txt ../up.txt", "/up.txt"),
        ("COPY *.txt /x/", "/x/a.txt /x/b.txt '/x/with space.txt'"),
        ("COPY dir /x", "/x/one /x/sub/two"),
        ("COPY dir/ /x/", "/x/one /x/sub/two"),
        ("COPY dir a.txt /x/", "/x/one /x/sub/two /x/a.txt"),
        ('COPY ["with space.txt", "/x y/"]', "'/x y/with space.txt'"),
        ("COPY . /all", "/all/a.txt /all/.hidden /all/dir/sub/two /all/Dockerfile"),
        ("COPY ./dir/../a.txt /x/", "/x/a.txt"),
        ("COPY /a.txt /x/", "/x/a.txt"),
    ],
)
def test_where_copy_puts_things(started: Started, copy: str, made: str) -> None:
    async def use(env: Any) -> None:
        result = await env.exec(f"ls -d {made}")
        assert result.return_code == 0, (
            result.stderr,
            (await env.exec("find / -xdev -newer /etc/hostname -type f")).stdout,
        )

    started(use, f"FROM x\nWORKDIR /app\nRUN mkdir /there\n{copy}\n", COPIES)


@needs_root
def test_copy_owner_and_mode(started: Started) -> None:
    async def use(env: Any) -> None:
        stats = await listing(env, "stat -c %u:%g:%a /owned /owned/one /plain/run.sh /mode/run.sh /numeric/a.txt")
        assert stats == ["1234:1234:755", "1234:1234:644", "0:0:644", "0:0:755", "5:6:644"]

    started(
        use,
        "FROM x\nRUN useradd -u 1234 -U agent\nCOPY --chown=agent dir /owned/\nCOPY run.sh /plain/\n"
        "COPY --chmod=755 run.sh /mode/\nCOPY --chown=5:6 a.txt /numeric/\n",
        COPIES,
    )


@pytest.mark.parametrize(
    ("files", "link", "copy", "said"),
    [
        ({}, None, "COPY ../secret /x", "leads out of the build context"),
        ({}, None, "COPY sub/../../secret /x", "leads out of the build context"),
        ({}, ("evil", "../secret"), "COPY evil /x", "leads out of the build context"),
        ({}, ("evil", "/etc"), "COPY evil/passwd /x", "leads out of the build context"),
        ({}, ("evil", "/etc"), "COPY e*/pass* /x", "leads out of the build context"),
        ({}, None, "COPY missing /x", "no such file"),
        ({}, None, "COPY *.none /x/", "no such file"),
        ({"a.1": "", "a.2": ""}, None, "COPY a.* /x", "must end with /"),
    ],
)
def test_copy_that_is_refused(  # noqa: PLR0917
    environment: Callable[..., Any],
    tmp_path: Path,
    files: dict[str, str],
    link: tuple[str, str] | None,
    copy: str,
    said: str,
) -> None:
    (tmp_path / "secret").write_text("host")
    env = environment(f"FROM x\nRUN true\n{copy}\n", files)
    if link:
        (env.environment_dir / link[0]).symlink_to(link[1])
    with pytest.raises(DockerfileError, match=said) as caught:
        asyncio.run(env.start(force_build=False))
    assert caught.value.line == 3


def test_a_link_inside_a_copied_folder_stays_a_link(started: Started, environment: Callable[..., Any]) -> None:
    env = environment("FROM x\nCOPY dir /x/\n", {"dir/a": "a"})
    (env.environment_dir / "dir" / "evil").symlink_to("/etc/shadow")

    async def main() -> None:
        try:
            await env.start(force_build=False)
            assert await listing(env, "readlink /x/evil") == ["/etc/shadow"]
        finally:
            await env.stop(delete=True)

    asyncio.run(main())


def test_a_failing_step_names_its_line_and_shows_its_output(environment: Callable[..., Any], cache: Path) -> None:
    env = environment("FROM x\nRUN true\nRUN echo so far && echo broken >&2 && false\n")
    with pytest.raises(SandboxError, match="line 3: the build step ended with exit code 1\nso far\nbroken"):
        asyncio.run(env.start(force_build=False))
    assert layers(cache) == []
    assert not any(cache.glob("user-*/trials/*"))


def test_a_layer_is_built_once_and_reused_until_what_it_is_made_of_changes(started: Started, cache: Path) -> None:
    async def use(env: Any) -> None:
        nonlocal seen
        seen = await listing(env, "cat /app/stamp /app/a.txt")
        await env.exec("echo changed > /app/a.txt; rm /app/stamp")

    seen: list[str] = []
    dockerfile = "FROM x\nWORKDIR /app\nRUN date +%N > stamp\nCOPY a.txt .\n"
    stamps = []
    for files in ({"a.txt": "one"}, {"a.txt": "one"}, {"a.txt": "two"}, {"a.txt": "one"}):
        started(use, dockerfile, files)
        assert seen[1] == files["a.txt"]
        stamps.append(seen[0])
    assert stamps[0] == stamps[1] == stamps[3] != stamps[2]
    assert len(layers(cache)) == 2
    started(use, dockerfile.replace("%N", "%N%N"), {"a.txt": "one"})
    assert len(layers(cache)) == 3


def test_many_at_once_build_once(environment: Callable[..., Any], cache: Path) -> None:
    async def one() -> str:
        env = environment("FROM x\nRUN sleep 0.3; date +%N > /stamp\n")
        try:
            await env.start(force_build=False)
            return str((await env.exec("cat /stamp")).stdout)
        finally:
            await env.stop(delete=True)

    async def main() -> list[str]:
        return await asyncio.gather(*(one() for _ in range(5)))

    assert len(set(asyncio.run(main()))) == 1
    assert len(layers(cache)) == 1


def test_a_forced_build_is_made_again_without_touching_the_other(environment: Callable[..., Any]) -> None:
    async def main() -> None:
        first, forced = environment("FROM x\nRUN date +%N > /stamp\n"), environment("FROM x\nRUN date +%N > /stamp\n")
        try:
            await first.start(force_build=False)
            before = await listing(first, "cat /stamp")
            await forced.start(force_build=True)
            assert await listing(forced, "cat /stamp") != before
            assert await listing(first, "cat /stamp") == before
        finally:
            await first.stop(delete=True)
            await forced.stop(delete=True)

    asyncio.run(main())


def test_a_layer_removes_and_replaces_what_the_base_has(started: Started) -> None:
    async def use(env: Any) -> None:
        assert await listing(env, "cat /etc/issue; ls /etc/profile.d; ls -d /usr/bin/env /usr/bin/tool") == [
            "mine",
            "/usr/bin/env",
            "/usr/bin/tool",
        ]
        assert (await env.exec("test -e /etc/hostname")).return_code == 1

    started(
        use,
        "FROM x\nRUN echo mine > /etc/issue && rm -rf /etc/profile.d && mkdir /etc/profile.d && rm /etc/hostname\n"
        + ("RUN echo > /usr/bin/tool\n" if os.geteuid() == 0 else "RUN mkdir -p /usr/bin; echo > /usr/bin/tool\n"),
    )


@needs_root
def test_on_a_given_root_file_system(started: Started, tmp_path: Path) -> None:
    """A busybox-like root: here the host's programs with a file system of its own around them."""
    rootfs = tmp_path / "rootfs"
    for name in ("etc", "tmp", "usr", "marker"):
        (rootfs / name).mkdir(parents=True)
    (rootfs / "etc" / "passwd").write_text("root:x:0:0::/root:/bin/sh\nother:x:7:7::/:/bin/sh\n")
    (rootfs / "etc" / "group").write_text("root:x:0:\nother:x:7:\n")
    programs = (
        "bash",
        "sh",
        "tar",
        "mkdir",
        "cat",
        "ls",
        "chmod",
        "rm",
        "id",
        "test",
        "find",
        "echo",
        "chown",
        "sleep",
        "gzip",
    )
    copy_programs(rootfs, programs)

    async def use(env: Any) -> None:
        assert await listing(env, "ls /; id -un other; cat /made") == [
            *("bin", "dev", "etc", "lib", "lib64", "logs", "made", "marker", "proc", "tmp", "usr"),
            *("other", "yes"),
        ]
        assert "sandbox" in await listing(env, "cat /etc/hosts")

    started(use, "FROM x\nRUN echo yes > /made\n", rootfs=rootfs)
    assert not (rootfs / "made").exists()
    with pytest.raises(SandboxError, match="not a root file system"):
        started(use, "FROM x\n", rootfs=tmp_path / "trial-0")


def copy_programs(rootfs: Path, names: tuple[str, ...]) -> None:
    """Copies programs of this machine with the libraries they need."""
    import re
    import shutil
    import subprocess

    (rootfs / "bin").mkdir()
    for name in names:
        program = shutil.which(name, path="/bin:/usr/bin")
        assert program is not None
        shutil.copy(program, rootfs / "bin" / name)
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
        for library in re.findall(r"(/\S+) \(0x", said):
            target = rootfs / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists():
                shutil.copy(library, target)
