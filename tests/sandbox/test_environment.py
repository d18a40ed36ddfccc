"""The environment itself: what commands see, what goes in and out, how it ends."""

import asyncio
import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from akm_harbor.errors import UsageError
from akm_harbor.sandbox.failures import SandboxError, SandboxTimeoutError, SandboxUnsupportedError

pytestmark = pytest.mark.sandbox
Started = Callable[..., Any]


async def sh(sandbox: Any, command: str, **kwargs: Any) -> str:
    result = await sandbox.exec(command, **kwargs)
    assert result.return_code == 0, (command, result)
    return str(result.stdout).strip()


def test_a_command_gets_its_folder_user_and_variables(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "do-not-show")
    monkeypatch.setenv("SHOW_ME", "shown")

    async def use(env: Any) -> None:
        assert await sh(env, "pwd") == "/app"
        assert await sh(env, "pwd", cwd="/tmp") == "/tmp"
        assert await sh(env, "echo $A $B $C", env={"B": "exec"}) == "image exec task"
        assert await sh(env, "echo $SHOW_ME") == "shown"
        seen = await sh(env, "env; tr '\\0' '\\n' < /proc/1/environ; cat /proc/*/environ | tr '\\0' '\\n'")
        assert "do-not-show" not in seen
        assert {line.split("=")[0] for line in seen.splitlines()} <= {
            *("A", "B", "C", "HOME", "LANG", "LC_ALL", "TZ", "OLDPWD", "PATH", "PWD", "SHLVL", "SHOW_ME", "_"),
            *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
            *("GIT_SSL_CAINFO", "PIP_CERT"),
        }
        result = await env.exec("echo out; echo err >&2; exit 3")
        assert (result.stdout, result.stderr, result.return_code) == ("out\n", "err\n", 3)
        assert (await env.exec("kill -9 $$")).return_code == 137
        assert (await env.exec("true", cwd="/not/there")).return_code == 126

    started(use, "FROM x\nENV A=image B=image\nWORKDIR /app\n", config={"env": {"C": "task"}}, pass_env="SHOW_ME,OTHER")


@pytest.mark.skipif(os.geteuid() != 0, reason="user switching needs root")
def test_users(started: Started) -> None:
    async def use(env: Any) -> None:
        assert await sh(env, "id -u; id -g; id -G; echo $HOME", user="agent") == "1234\n1234\n1234 2345\n/home/agent"
        assert await sh(env, "id -u; id -g", user=1234) == "1234\n1234"
        assert await sh(env, "id -u; id -g; echo $HOME", user="4321") == "4321\n0\n/"
        assert await sh(env, "id -g", user="agent:more") == "2345"
        assert await sh(env, "id -un") == "agent"  # the image's USER
        with env.with_default_user("root"):
            assert await sh(env, "id -un") == "root"
        failed = await env.exec("true", user="nobody-of-that-name")
        assert failed.return_code == 126
        assert "no user 'nobody-of-that-name'" in failed.stderr
        # The kernel's side of being root in a sandbox: no power beyond a container's.
        assert (await env.exec("mount -t tmpfs none /mnt", user="root")).return_code != 0
        assert (await env.exec("mknod /tmp/disk b 254 0", user="root")).return_code != 0
        for path in ("/proc/sys/vm/drop_caches", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
            assert (await env.exec(f"test -w {path}", user="root")).return_code != 0
        assert (await env.exec("head -c1 /proc/kcore | grep -q .", user="root")).return_code != 0

    started(
        use,
        "FROM x\nRUN groupadd -g 2345 more && useradd -m -u 1234 -U agent && usermod -aG more agent\nUSER agent\n",
    )


def test_the_hosts_homes_and_other_folders_are_not_there(started: Started, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")

    async def use(env: Any) -> None:
        home = Path.home()
        assert await sh(env, f"ls -A {home} 2>/dev/null | grep -v '^\\.\\(bashrc\\|profile\\)$' | wc -l") == "0"
        assert (await env.exec(f"ls {tmp_path}")).return_code != 0
        assert await sh(env, "ls -A /tmp /run/lock /mnt /media /srv /home") == (
            "/home:\n\n/media:\n\n/mnt:\n\n/run/lock:\n\n/srv:\n\n/tmp:"
        )
        top = set((await sh(env, "ls -A /")).split())
        assert top <= {
            *("app", "bin", "dev", "etc", "home", "lib", "lib32", "lib64", "libx32", "logs", "media", "mnt", "nix"),
            *("opt", "proc", "root", "run", "sbin", "srv", "sys", "tmp", "usr", "var"),
        }
        assert "$" not in await sh(env, "cut -d: -f2 /etc/shadow")
        assert await sh(env, "find /etc -xdev ! -perm -o+r ! -type l ! -name '*shadow'") == ""
        assert await sh(env, "echo 127.0.1.1 sandbox; cat /etc/hostname") == "127.0.1.1 sandbox\nsandbox"
        await sh(
            env,
            "echo changed > /usr/bin/akm-sandbox-test; rm -f /usr/bin/env; echo x >> /etc/hosts; ls /usr/bin | wc -l",
        )

    before = Path("/etc/hosts").read_text()
    started(use)
    assert not Path("/usr/bin/akm-sandbox-test").exists()
    assert Path("/usr/bin/env").exists()
    assert Path("/etc/hosts").read_text() == before


def test_network_by_policy(started: Started) -> None:
    from harbor.models.task.config import NetworkMode, NetworkPolicy

    interfaces = "tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ' | sort | tr '\\n' ' '"
    offline = NetworkPolicy(network_mode=NetworkMode.NO_NETWORK)

    async def use(env: Any) -> None:
        host = await sh(env, interfaces)
        assert len(host.split()) > 1
        await sh(env, "while :; do date +%N > /app/beat; sleep 0.02; done >/dev/null 2>&1 &")
        await env.set_network_policy(offline)
        assert await sh(env, interfaces) == "lo"
        last = await sh(env, "cat /app/beat")
        assert await sh(env, "sleep 0.2; cat /app/beat") == last, "what was started with network must not go on"
        # loopback works, and lasts from one command to the next
        serve = "import http.server as h; h.HTTPServer(('127.0.0.1', 8), h.SimpleHTTPRequestHandler).serve_forever()"
        await sh(env, f'setsid python3 -c "{serve}" >/dev/null 2>&1 &')
        fetch = "import urllib.request as u; print(u.urlopen('http://127.0.0.1:8').status)"
        assert (
            await sh(env, f'for i in 1 2 3 4 5 6 7 8 9; do python3 -c "{fetch}" 2>/dev/null && break; sleep 0.3; done')
            == "200"
        )
        await env.set_network_policy(NetworkPolicy())
        assert await sh(env, interfaces) == host

    started(use)


def test_files_in_and_out(started: Started, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "sub" / "empty").mkdir(parents=True)
    (tree / "a.txt").write_text("a")
    (tree / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (tree / "run.sh").chmod(0o755)
    (tree / "link").symlink_to("a.txt")
    (tree / "sub" / "ünïcode").write_bytes(b"\xff\x00" * 100_000)

    async def use(env: Any) -> None:
        await env.upload_dir(tree, "/deep/er/tree")
        assert await sh(env, "/deep/er/tree/run.sh; cat /deep/er/tree/link; stat -c %U /deep/er/tree/a.txt") == (
            "ran\naroot"
        )
        await env.upload_file(tree / "a.txt", "/deep/er/renamed.txt")
        assert await sh(env, "cat /deep/er/renamed.txt") == "a"
        await env.download_dir("/deep/er/tree", tmp_path / "back")
        assert (tmp_path / "back" / "sub" / "ünïcode").read_bytes() == b"\xff\x00" * 100_000
        assert (tmp_path / "back" / "sub" / "empty").is_dir()
        assert (tmp_path / "back" / "link").readlink() == Path("a.txt")
        await env.download_file("/deep/er/renamed.txt", tmp_path / "one" / "two.txt")
        assert (tmp_path / "one" / "two.txt").read_text() == "a"
        for missing in (env.download_file("/none", tmp_path / "x"), env.download_dir("/none", tmp_path / "y")):
            with pytest.raises(SandboxError, match="cannot download /none"):
                await missing
        with pytest.raises(SandboxError, match="no such"):
            await env.upload_file(tmp_path / "none", "/x")

    started(use)


def test_links_that_an_agent_left_lead_nowhere(started: Started, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("host")

    async def use(env: Any) -> None:
        await sh(
            env,
            f"mkdir -p /out/d && ln -s {victim} /out/link && ln -s / /out/d/root"
            " && mkfifo /out/pipe && echo ok > /out/ok",
        )
        with pytest.raises(SandboxError):
            await env.download_file("/out/link", tmp_path / "leak")  # the sandbox has no such path
        assert not (tmp_path / "leak").exists()
        await env.download_dir("/out", tmp_path / "out")
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["d", "ok"]
        await sh(env, f"ln -sfn {victim.parent} /uploads")
        with pytest.raises(SandboxError):
            await env.upload_file(tmp_path / "out" / "ok", "/uploads/victim")
        (tmp_path / "target").symlink_to(victim)
        await env.download_file("/out/ok", tmp_path / "target")

    started(use)
    assert victim.read_text() == "host"


def test_a_command_that_takes_too_long_is_dead_when_its_error_comes(started: Started) -> None:
    async def use(env: Any) -> None:
        before = time.monotonic()
        with pytest.raises(SandboxTimeoutError, match="timed out after 1 seconds") as caught:
            await env.exec("(trap '' TERM; sleep 1.5; touch /app/late) & sleep 60", timeout_sec=1)
        assert isinstance(caught.value, RuntimeError)
        assert time.monotonic() - before < 2
        await asyncio.sleep(1.2)
        assert await sh(env, "ls /app") == ""

    started(use)


def test_a_cancelled_command_is_dead_and_others_live_on(started: Started) -> None:
    async def use(env: Any) -> None:
        other = asyncio.create_task(env.exec("sleep 1; echo done"))
        task = asyncio.create_task(env.exec("echo started > /app/started; sleep 0.8; touch /app/late"))
        while (await env.exec("test -e /app/started")).return_code:
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await other).stdout == "done\n"
        assert await sh(env, "ls /app") == "started"

    started(use)


def test_cancelled_at_any_moment(started: Started) -> None:
    async def use(env: Any) -> None:
        for step in range(15):
            task = asyncio.create_task(env.exec("sleep 5; touch /app/late"))
            await asyncio.sleep(step / 1000)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert await sh(env, "ps -eo args | grep -c '[s]leep 5' || true") == "0"

    started(use)


def test_a_background_process_lives_until_the_phase_ends(started: Started) -> None:
    async def use(env: Any) -> None:
        before = time.monotonic()
        await sh(env, "while :; do date +%N > /app/beat; sleep 0.02; done & echo started")
        assert time.monotonic() - before < 2, "a command must not wait for what it left in the background"
        first = await sh(env, "sleep 0.2; cat /app/beat")
        assert await sh(env, "sleep 0.2; cat /app/beat") != first
        await env.prepare_logs_for_host()
        last = await sh(env, "cat /app/beat")
        assert await sh(env, "sleep 0.2; cat /app/beat") == last

    started(use)


def test_a_phase_ends_without_harbors_call_too(started: Started) -> None:
    """Mounts of a job's own over /logs/agent keep Harbor from telling when the agent is over."""

    async def use(env: Any) -> None:
        with env.with_default_user(None):  # set-up: it may start helpers for the agent
            await sh(env, "while :; do date +%N > /app/helper; sleep 0.02; done >/dev/null 2>&1 &")
        with contextlib.suppress(TimeoutError), env.with_default_user(None):
            first = await sh(env, "sleep 0.2; cat /app/helper")
            assert await sh(env, "sleep 0.2; cat /app/helper") != first
            await sh(env, "while :; do date +%N > /app/agent; sleep 0.02; done >/dev/null 2>&1 & sleep 0.1")
            raise TimeoutError
        last = await sh(env, "cat /app/helper /app/agent")
        assert await sh(env, "sleep 0.2; cat /app/helper /app/agent") == last

    started(use)


def test_a_background_process_may_go_on_writing_to_the_output(started: Started) -> None:
    async def use(env: Any) -> None:
        result = await env.exec("(while :; do echo noise || exit; date +%N > /app/beat; sleep 0.02; done) & sleep 0.1")
        assert result.stdout.startswith("noise\n")
        first = await sh(env, "sleep 0.5; cat /app/beat")
        assert await sh(env, "sleep 0.2; cat /app/beat") != first

    started(use)


def test_a_sandbox_whose_processes_were_all_killed_goes_on(started: Started) -> None:
    async def use(env: Any) -> None:
        for step in range(6):
            await env.exec("touch /app/kept; kill -9 -1")
            await asyncio.sleep(step / 100)
            result = await env.exec("ls /app")
            if result.return_code == 137:  # the signals were still on their way when it came
                result = await env.exec("ls /app")
            assert (result.return_code, result.stdout) == (0, "kept\n"), result

    started(use)


def test_processes_that_start_each_other_again_end(started: Started) -> None:
    """Killed one by one they would go on for ever."""

    async def use(env: Any) -> None:
        script = (
            "import os, time\nfor _ in range(400):\n    if os.fork(): time.sleep(0.05); os._exit(0)\n    os.setsid()"
        )
        await env.exec(f"for i in 1 2 3 4 5; do setsid python3 -c {shlex.quote(script)} & done")
        while int(await sh(env, "ls -d /proc/[0-9]* | wc -l")) <= 8:
            await asyncio.sleep(0.02)
        await env.prepare_logs_for_host()
        assert int(await sh(env, "ls -d /proc/[0-9]* | wc -l")) < 8

    started(use)


def test_a_read_only_mount_can_be_added_while_it_runs(started: Started, tmp_path: Path) -> None:
    (tmp_path / "tools" / "bin").mkdir(parents=True)
    (tmp_path / "tools" / "bin" / "hi").write_text("#!/bin/sh\necho hi\n")
    (tmp_path / "tools" / "bin" / "hi").chmod(0o755)

    async def use(env: Any) -> None:
        await sh(env, "touch /app/before")
        env.add_readonly_mount(tmp_path / "tools", "/opt/akm-harbor/toolchain")
        assert await sh(env, "/opt/akm-harbor/toolchain/bin/hi; ls /app") == "hi\nbefore"
        assert (await env.exec("touch /opt/akm-harbor/toolchain/x")).return_code != 0
        env.add_readonly_mount(tmp_path / "tools" / "bin" / "hi", "/usr/local/bin/hi")
        assert await sh(env, "hi") == "hi"
        with pytest.raises(SandboxError, match="nothing there to mount"):
            env.add_readonly_mount(tmp_path / "none", "/x")

    started(use)


def test_a_hostile_mount_point_does_not_reach_the_host(started: Started, tmp_path: Path) -> None:
    async def use(env: Any) -> None:
        await sh(env, f"mkdir -p /trap && ln -s {tmp_path} /trap/link")
        env.add_readonly_mount("/usr", "/trap/link/made")
        await env.exec("true")

    with contextlib.suppress(SandboxError):  # refusing is fine too
        started(use)
    assert not (tmp_path / "made").exists()


def test_output_is_streamed_when_asked(started: Started) -> None:
    async def use(env: Any) -> None:
        seen: list[tuple[float, str, str]] = []
        start = time.monotonic()

        async def note(text: str, stream: str) -> None:
            seen.append((time.monotonic() - start, text, stream))

        with env.scoped_output_callback(note):
            await env.exec("echo one; sleep 0.5; echo two >&2")
        assert [(text, stream) for _, text, stream in seen] == [("one\n", "stdout"), ("two\n", "stderr")]
        assert seen[1][0] - seen[0][0] > 0.3

    started(use)


def test_much_output_and_many_commands_at_once(started: Started) -> None:
    async def use(env: Any) -> None:
        big, *small = await asyncio.gather(
            env.exec("head -c 20000000 /dev/zero | tr '\\0' x"), *(env.exec(f"echo {n}") for n in range(40))
        )
        assert len(big.stdout) == 20_000_000
        assert [result.stdout for result in small] == [f"{n}\n" for n in range(40)]
        long = "x" * 100_000
        assert await sh(env, f"printf %s {long} | wc -c") == "100000"

    started(use)


def test_logs_are_mounted_and_open_to_every_user(started: Started) -> None:
    async def use(env: Any) -> None:
        user = {"user": "12345"} if os.geteuid() == 0 else {}
        for folder in ("agent", "verifier", "artifacts"):
            await sh(env, f"echo x > /logs/{folder}/x", **user)
        assert (env.trial_paths.agent_dir / "x").read_text() == "x\n"
        assert (env.trial_paths.verifier_dir / "x").read_text() == "x\n"

    started(use)


@pytest.mark.parametrize(
    ("config", "kwargs", "files", "said"),
    [
        ({"gpus": 1}, {}, {}, "GPU"),
        ({"os": "windows"}, {}, {}, "(?i)windows"),
        ({"tpu": {"type": "v5e", "topology": "2x2"}}, {}, {}, "TPU"),
        ({"cpus": 1}, {"cpu_enforcement_policy": "limit"}, {}, "CPU resource limits"),
        ({}, {"mounts": [{"type": "volume", "source": "v", "target": "/v"}]}, {}, "volume"),
        ({}, {}, {"compose.yaml": ""}, "Docker Compose"),
        ({}, {}, {".dockerignore": "x"}, ".dockerignore"),
    ],
)
def test_refused_when_made(
    environment: Callable[..., Any], config: dict[str, Any], kwargs: dict[str, Any], files: dict[str, str], said: str
) -> None:
    with pytest.raises(SandboxUnsupportedError, match=said):
        environment(config=config, files=files, **kwargs)


def test_an_image_needs_a_dockerfile_or_a_rootfs(environment: Callable[..., Any], tmp_path: Path) -> None:
    with pytest.raises(SandboxUnsupportedError, match="image 'debian:12'"):
        environment(None, config={"docker_image": "debian:12"})
    with pytest.raises(SandboxUnsupportedError, match="no environment/Dockerfile"):
        environment(None)
    assert environment(None, config={"docker_image": "debian:12"}, rootfs=tmp_path)._notes() == [
        "the image debian:12 is ignored: the sandbox runs on its own base"
    ]


def test_allowlist_and_options(environment: Callable[..., Any]) -> None:
    from harbor.models.task.config import NetworkMode, NetworkPolicy

    with pytest.raises(SandboxUnsupportedError, match="allowlist"):
        environment(network_policy=NetworkPolicy(network_mode=NetworkMode.ALLOWLIST, allowed_hosts=["example.com"]))
    with pytest.raises(UsageError, match="unknown option of the sandbox: rootfz"):
        environment(rootfz="/x")


def test_its_folder_is_gone_after_stop_and_stays_when_asked(environment: Callable[..., Any], cache: Path) -> None:
    async def main() -> None:
        for delete in (True, False):
            env = environment()
            await env.start(force_build=False)
            await env.exec("echo x > /app/x")
            assert len(list(cache.glob("user-*/trials/*"))) == 1
            await env.stop(delete=delete)
            assert len(list(cache.glob("user-*/trials/*"))) == (not delete)
            with pytest.raises(SandboxError, match="not running"):
                await env.exec("true")

    asyncio.run(main())
    assert next(cache.glob("user-*/trials/*/upper/root/app/x")).read_text() == "x\n"


def test_on_another_system_it_can_be_imported_and_says_no_when_used() -> None:
    code = """
import os, sys
import harbor.environments.base, harbor.models.task.config, harbor.models.trial.paths
sys.platform = "darwin"
sys.modules["fcntl"] = None
for name in ("setns", "unshare", "pidfd_open", "geteuid", "CLONE_NEWNS", "CLONE_NEWNET"):
    delattr(os, name)
from akm_harbor import SandboxEnvironment
from akm_harbor.sandbox.failures import SandboxUnavailableError
try:
    SandboxEnvironment()
except SandboxUnavailableError as error:
    print(error)
SandboxEnvironment.preflight()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "the sandbox runs on Linux only" in done.stdout, done.stderr
    assert done.returncode == 1
    assert done.stderr.startswith("akm-harbor: the sandbox runs on Linux only"), done.stderr
