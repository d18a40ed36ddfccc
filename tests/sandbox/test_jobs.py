"""Real Harbor jobs with the oracle in the sandbox, through the command line."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox.support import PASS, make_task, results

pytestmark = pytest.mark.sandbox

ONLY_LOOPBACK = "[ \"$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' ')\" = lo ]"


def test_tasks_of_many_kinds_reach_their_reward(
    tmp_path: Path, run_job: Callable[..., Any], nothing_left: Callable[[], list[str]]
) -> None:
    tasks = tmp_path / "tasks"
    make_task(
        tasks / "build",
        dockerfile=(
            "FROM debian:bookworm\n"
            'ENV GREETING="hello there"\nARG NAME=world\nWORKDIR /app\n'
            "RUN useradd -m agent && echo $GREETING $NAME > built.txt\n"
            "COPY --chown=agent data/ ./data/\nUSER agent\n"
        ),
        files={"data/a.txt": "a\n"},
        solve='[ "$(id -un)" = agent ] && cat /app/built.txt /app/data/a.txt > /tmp/out && touch /app/data/a.txt',
        test=(
            '[ "$(cat /tmp/out)" = "$(printf \'hello there world\\na\')" ]'
            ' && [ "$(stat -c %U /app/data/a.txt)" = agent ] && [ "$GREETING" = "hello there" ]'
            f" && {PASS} || echo 0 > /logs/verifier/reward.txt"
        ),
    )
    make_task(
        tasks / "offline",
        toml='[environment]\nnetwork_mode = "no-network"\n',
        solve=f"{ONLY_LOOPBACK} && touch /app/solved",
    )
    make_task(
        tasks / "offline-agent",
        toml='[environment]\nnetwork_mode = "public"\n[agent]\nnetwork_mode = "no-network"\n',
        solve=f"{ONLY_LOOPBACK} && touch /app/solved",
        test=f"! {ONLY_LOOPBACK} && [ -e /app/solved ] && {PASS} || echo 0 > /logs/verifier/reward.txt",
    )
    make_task(
        tasks / "users",
        dockerfile="FROM x\nRUN useradd -m one && useradd -m two\nWORKDIR /app\nRUN chmod 777 /app\n",
        toml='[agent]\nuser = "one"\n[verifier]\nuser = "two"\n',
        solve="id -un > /app/solver; echo $HOME >> /app/solver",
        test=(
            '[ "$(cat /app/solver)" = "$(printf \'one\\n/home/one\')" ] && [ "$(id -un)" = two ]'
            f" && {PASS} || echo 0 > /logs/verifier/reward.txt"
        ),
    )
    make_task(tasks / "resources", toml="[environment]\ncpus = 1\nmemory_mb = 512\nstorage_mb = 100\n")
    make_task(tasks / "workdir", toml='[environment]\nworkdir = "/elsewhere"\n', solve="pwd > /tmp/at", test=(
        f'[ "$(cat /tmp/at)" = /elsewhere ] && {PASS} || echo 0 > /logs/verifier/reward.txt'))  # fmt: skip
    expected = {task.name for task in tasks.iterdir()}
    if os.geteuid() != 0:  # then there is a single user, and these two are refused
        expected -= {"build", "users"}
        for name in ("build", "users"):
            shutil.rmtree(tasks / name)
    done, job = run_job(tasks)
    assert done.returncode == 0, done.stdout + done.stderr
    got = results(job)
    assert {name: result.reward for name, result in got.items()} == dict.fromkeys(expected, 1.0), [
        (result.exception, (result.folder / "trial.log").read_text()[-2000:]) for result in got.values()
    ]
    assert "for demos, tests and CI" in (got["offline"].folder / "trial.log").read_text()
    assert "FROM debian:bookworm is ignored" in (got["offline"].folder / "trial.log").read_text()
    assert nothing_left() == []


def test_no_process_of_a_timed_out_agent_lives_to_see_the_verifier(
    tmp_path: Path, run_job: Callable[..., Any], nothing_left: Callable[[], list[str]]
) -> None:
    """Whatever it does to get away: a child, a session of its own, a daemon, an ignored signal."""
    tasks = tmp_path / "tasks"
    make_task(
        tasks / "late",
        toml="[agent]\ntimeout_sec = 2\n",
        solve=(
            "touch /app/solved\n"
            "(sleep 4; touch /app/late-child) &\n"
            "setsid bash -c 'sleep 4; touch /app/late-session' &\n"
            "(setsid bash -c '(trap \"\" TERM HUP INT; sleep 4; touch /app/late-daemon) &' &)\n"
            "nohup bash -c 'while :; do sleep 0.1; date > /app/beat; done' >/dev/null 2>&1 &\n"
            "sleep 60"
        ),
        test=(
            "cp /app/beat /tmp/beat; sleep 4; ls /app\n"
            "cmp /app/beat /tmp/beat && ! ls /app/late* 2>/dev/null && [ -e /app/solved ]"
            f" && {PASS} || echo 0 > /logs/verifier/reward.txt"
        ),
    )
    done, job = run_job(tasks)
    assert done.returncode == 0, done.stdout + done.stderr
    late = results(job)["late"]
    assert late.reward == 1.0, (late.folder / "verifier" / "test-stdout.txt").read_text()
    assert late.exception in {"AgentTimeoutError", "SandboxTimeoutError"}
    assert nothing_left() == []


def test_what_an_agent_leaves_running_ends_with_its_phase(tmp_path: Path, run_job: Callable[..., Any]) -> None:
    tasks = tmp_path / "tasks"
    make_task(
        tasks / "daemon",
        solve="setsid bash -c 'while :; do date +%N > /app/beat; sleep 0.05; done' >/dev/null 2>&1 &\nsleep 0.3",
        test=(
            "cp /app/beat /tmp/beat; sleep 0.5; cmp /app/beat /tmp/beat"
            f" && {PASS} || echo 0 > /logs/verifier/reward.txt"
        ),
    )
    _, job = run_job(tasks)
    assert results(job)["daemon"].reward == 1.0


def test_a_task_with_steps(tmp_path: Path, run_job: Callable[..., Any]) -> None:
    task = make_task(tmp_path / "tasks" / "steps", toml='[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n')
    for name, solve, test in (
        ("one", "touch /app/one; (while :; do date +%N > /app/beat; sleep 0.05; done) & sleep 0.2",
         f"cp /app/beat /tmp/b; sleep 0.3; cmp /app/beat /tmp/b && [ -e /app/one ] && {PASS}"),
        ("two", "mv /app/one /app/two", f"[ -e /app/two ] && {PASS}"),
    ):  # fmt: skip
        for part, script, text in (("solution", "solve.sh", solve), ("tests", "test.sh", test)):
            (task / "steps" / name / part).mkdir(parents=True)
            (task / "steps" / name / part / script).write_text(f"#!/bin/bash\n{text}\n")
        (task / "steps" / name / "instruction.md").write_text("Do it.\n")
    done, job = run_job(tmp_path / "tasks")
    assert results(job)["steps"].reward == 1.0, done.stdout


@pytest.mark.parametrize(
    ("toml", "files", "dockerfile", "said"),
    [
        ('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["example.com"]\n', {}, "FROM x\n", "allowlist"),
        ("", {}, "FROM x\nADD a b\n", "line 2: ADD is not supported"),
    ],
)
def test_what_it_cannot_honour_is_refused_before_the_trial(  # noqa: PLR0917
    tmp_path: Path, run_job: Callable[..., Any], toml: str, files: dict[str, str], dockerfile: str, said: str
) -> None:
    make_task(tmp_path / "tasks" / "refused", toml=toml, files=files, dockerfile=dockerfile)
    done, job = run_job(tmp_path / "tasks")
    assert done.returncode != 0
    assert "SandboxUnsupportedError" in done.stdout + done.stderr or "DockerfileError" in done.stdout + done.stderr
    assert said in " ".join((done.stdout + done.stderr).split())
    assert results(job) == {}
