"""How fast and how safe is collecting: prints name, measured, target, ok.

Three parts: a tree of results (rows, time and memory, and time again when nothing changed), SIGKILL
at random moments, and large made-up trajectories against a single process's json.loads. Every time
is of the command line as a whole, taken in turns with what it is compared to; run it on a quiet machine.
"""

import argparse
import copy
import json
import os
import random
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from akm_harbor.tables import read_frame

CLI = [sys.executable, "-c", "from akm_harbor.cli import main; main()"]
TRIALS = 20_000
SETTLED = 0.2
"""Files need to be this old, seconds, before their stamps prove anything."""


def line(name: str, measured: str, target: str, *, ok: bool) -> bool:
    print(f"{name:<52} {measured:>22} {target:>14} {'ok' if ok else 'MISSED'}", flush=True)
    return ok


def collect(inputs: Path, dataset: Path, *more: str) -> tuple[float, float]:
    """Run the command line; wall seconds and peak resident MB of the largest process."""
    command = [*CLI, "collect", str(inputs), "-o", str(dataset), *more]
    measure = (
        "import resource, subprocess, sys, time; t = time.perf_counter();"
        "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL);"
        "print(time.perf_counter() - t, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
    )
    # As for a user, whose Python keeps what it has compiled, whatever is set here.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", measure, *command], check=True, capture_output=True, text=True, env=env
    )
    seconds, peak = done.stdout.split()
    return float(seconds), float(peak)


def loads(files: list[str]) -> float:
    """Wall seconds to read and json.loads every file, in one process."""
    began = time.perf_counter()
    for file in files:
        with open(file, "rb") as handle:  # noqa: PTH123  (the bare minimum is what is measured)
            json.loads(handle.read())
    return time.perf_counter() - began


def alternating(rounds: int, *measures: Callable[[], float]) -> list[list[float]]:
    """Take turns, so that a busy machine disturbs all of them alike."""
    taken: list[list[float]] = [[] for _ in measures]
    for _ in range(rounds):
        for times, measure in zip(taken, measures, strict=True):
            times.append(measure())
    return taken


def files_below(root: Path, name: str) -> list[str]:
    return [f"{folder}/{name}" for folder, _, names in os.walk(root) if name in names]


RESULT: dict[str, Any] = {
    "task_name": "org/task",
    "trial_uri": "file:///srv/jobs/x",
    "task_id": {"path": "tasks/task"},
    "source": "tasks",
    "task_checksum": "c" * 64,
    "config": {
        "task": {"path": "tasks/task", "source": "tasks"},
        "timeout_multiplier": 1.0,
        "agent": {"name": "opencode", "model_name": "p/m", "kwargs": {"version": "1", "options": {"a": [1] * 20}}},
        "environment": {"type": "docker", "kwargs": {}},
        "verifier": {},
        "artifacts": [],
    },
    "agent_info": {"name": "opencode", "version": "1", "model_info": {"name": "m", "provider": "p"}},
    "agent_result": {"n_input_tokens": 9, "n_cache_tokens": 0, "n_output_tokens": 9, "cost_usd": 0.1, "metadata": None},
    "verifier_result": {"rewards": {"reward": 1.0}},
    "exception_info": None,
    "started_at": "2026-01-01T00:00:00.000001Z",
    "finished_at": "2026-01-01T00:01:00.000001Z",
    **{
        phase: {"started_at": "2026-01-01T00:00:00.000001Z", "finished_at": "2026-01-01T00:00:09.000001Z"}
        for phase in ("environment_setup", "agent_setup", "agent_execution", "verifier")
    },
    "step_results": None,
}


def make_jobs(root: Path, trials: int, per_job: int = 400, reward: float = 1.0) -> None:
    """Made-up jobs whose results have the size and shape of real ones (3.5 KB in the median)."""
    rng = random.Random(1)
    for number in range(trials):
        job = root / f"job-{number // per_job:04d}"
        if number % per_job == 0:
            job.mkdir(parents=True)
            (job / "config.json").write_text(json.dumps({"job_name": job.name}))
        name = f"task-{number % 89}__{number:07d}"
        result = copy.deepcopy(RESULT)
        result |= {"id": f"{number:032x}", "trial_name": name}
        result["verifier_result"]["rewards"]["reward"] = reward
        if rng.random() < 0.15:
            text = "Traceback (most recent call last):\n" + '  File "x.py", line 1, in f\n    g()\n' * rng.randint(
                5, 60
            )
            result["exception_info"] = {
                "exception_type": "AgentTimeoutError",
                "exception_message": "Agent execution timed out after 900 seconds",
                "exception_traceback": text,
                "occurred_at": "2026-01-01T00:01:00Z",
            }
        (job / name).mkdir()
        (job / name / "result.json").write_text(json.dumps(result, indent=4))


def make_trajectories(root: Path, megabytes: int) -> None:
    """Trajectories of 57 KB to 5 MB, about 1 MB in the mean and 5 KB a step, indented as Harbor writes them."""
    rng = random.Random(2)
    words = ["def", "return", "self.value", "== None:", "\tif x > 1:", "INFO 2026-01-01", '"quoted"', "src/a.py"]
    text = "\n".join(" ".join(rng.choices(words, k=rng.randint(3, 12))) for _ in range(200_000))
    made = number = 0
    while made < megabytes * 1_000_000:
        job = root / f"job-{number // 400:04d}"
        path = job / f"task-{number % 89}__{number:07d}" / "agent"
        path.mkdir(parents=True)
        size = min(5_000_000, max(57_000, int(rng.lognormvariate(13.4, 0.8))))
        steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "Do it."}]
        left = size
        while left > 0:
            i = len(steps) + 1
            (length,) = rng.choices((300, 1_000, 3_000, 10_000, 30_000), (30, 30, 25, 12, 3))
            at = rng.randrange(len(text) - length)
            steps.append(
                {
                    "step_id": i,
                    "timestamp": "2026-01-01T00:00:00.000000+00:00",
                    "source": "agent",
                    "model_name": "p/m",
                    "message": text[at : at + 200],
                    "reasoning_content": text[at : at + 500],
                    "tool_calls": [
                        {
                            "tool_call_id": f"c{i}",
                            "function_name": "bash",
                            "arguments": {"command": text[at : at + 120]},
                        }
                    ],
                    "observation": {"results": [{"source_call_id": f"c{i}", "content": text[at : at + length]}]},
                    "metrics": {"prompt_tokens": i * 100, "completion_tokens": 50, "cached_tokens": 0, "cost_usd": 0.1},
                }
            )
            left -= int(length * 1.1) + 1500
        atif = {"schema_version": "ATIF-v1.7", "session_id": "s", "agent": {"name": "opencode"}, "steps": steps}
        made += (path / "trajectory.json").write_text(json.dumps(atif, indent=2))
        result = RESULT | {"id": f"{number:032x}", "trial_name": path.parent.name}
        (path.parent / "result.json").write_text(json.dumps(result))
        number += 1


def results_only(scratch: Path, given: Path | None) -> list[bool]:
    """The tree of submissions: rows, time, memory, and time when nothing changed."""
    corpus = given or scratch / "jobs"
    if given is None:
        make_jobs(corpus, TRIALS)
        time.sleep(SETTLED)
    files = files_below(corpus, "result.json")
    dataset = scratch / "dataset"
    peak = [0.0]

    def first() -> float:
        seconds, mb = collect(corpus, dataset, "--fresh")
        peak[0] = max(peak[0], mb)
        return seconds

    loads(files)
    first()
    bare, fresh = alternating(5, lambda: loads(files), first)
    again = [collect(corpus, dataset)[0] for _ in range(5)]
    rows = read_frame(dataset, "trials")
    wanted = sum(1 for file in files if b'"trial_name"' in Path(file).read_bytes())
    what = "made-up" if given is None else "real"
    ratio = statistics.median(f / b for f, b in zip(fresh, bare, strict=True))
    repeat = statistics.median(again) / statistics.median(fresh)
    return [
        line(f"collect, {what}: rows of {wanted} trials", f"{len(rows)}", f"{wanted}", ok=len(rows) == wanted),
        line(
            f"collect, {what}: x bare json.loads ({statistics.median(bare):.2f} s)",
            f"{statistics.median(fresh):.2f} s = {ratio:.2f} x",
            "<= 3 x",
            ok=ratio <= 3,
        ),
        line(f"collect, {what}: peak memory of a process", f"{peak[0]:.0f} MB", "<= 1000 MB", ok=peak[0] <= 1000),
        line(
            f"collect, {what}: again, nothing changed",
            f"{statistics.median(again):.2f} s = {repeat:.3f} x",
            "<= 0.15 x",
            ok=repeat <= 0.15,
        ),
    ]


def trajectories(scratch: Path, megabytes: int) -> list[bool]:
    """Large trajectories against a single process's json.loads."""
    root = scratch / "trajectories"
    make_trajectories(root, megabytes)
    os.sync()  # writing them back would go on while they are read
    time.sleep(SETTLED)
    files = files_below(root, "trajectory.json")
    size = sum(os.path.getsize(file) for file in files) / 1e9  # noqa: PTH202
    dataset = scratch / "calls"
    loads(files)
    bare, fresh = alternating(3, lambda: loads(files), lambda: collect(root, dataset, "--fresh")[0])
    ratio = statistics.median(f / b for f, b in zip(fresh, bare, strict=True))
    calls = len(read_frame(dataset, "tool_calls", ["index"]))
    return [
        line(
            f"trajectories, {size:.2f} GB, {calls} calls: x json.loads",
            f"{statistics.median(fresh):.1f} / {statistics.median(bare):.1f} s = {ratio:.2f} x",
            "<= 0.5 x",
            ok=ratio <= 0.5 and calls > 0,
        )
    ]


def kills(scratch: Path, rounds: int) -> list[bool]:
    """SIGKILL at random moments: the dataset is the old one or the new one, whole."""
    root, dataset, rng = scratch / "killed", scratch / "out" / "dataset", random.Random(3)
    make_jobs(root, 300, per_job=100, reward=0.0)
    command = [*CLI, "collect", str(root), "-o", str(dataset), "--workers", "2"]
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    whole = time.perf_counter() - began
    good = new = 0
    for number in range(1, rounds + 1):
        reward = number / 1000
        for file in files_below(root, "result.json"):
            result = json.loads(Path(file).read_bytes())
            result["verifier_result"]["rewards"]["reward"] = reward
            Path(file).write_text(json.dumps(result, indent=4))
        before = set(read_frame(dataset, "trials", ["reward"]).reward)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 1.2) * whole)
        process.send_signal(signal.SIGKILL)
        process.wait()
        after = read_frame(dataset, "trials", ["reward"]).reward
        good += len(after) == 300 and set(after) in (before, {reward})
        new += set(after) == {reward}
    shown = f"{good} whole, {new} of them new"
    return [line(f"SIGKILL at {rounds} random moments", shown, f"{rounds} whole", ok=good == rounds)]


def arguments() -> argparse.Namespace:
    """What the command line and the environment ask for."""
    env = os.environ.get
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "corpus",
        nargs="?",
        type=Path,
        default=env("AKM_HARBOR_TB_CORPUS"),
        help="a tree of real Harbor jobs (or AKM_HARBOR_TB_CORPUS); without one, jobs are made up",
    )
    parser.add_argument(
        "--mb",
        type=int,
        default=env("AKM_HARBOR_BENCH_MB", "8192"),
        help="megabytes of trajectories, 0 for none (or AKM_HARBOR_BENCH_MB; %(default)s)",
    )
    parser.add_argument(
        "--kills",
        type=int,
        default=env("AKM_HARBOR_BENCH_KILLS", "30"),
        help="how many kills, 0 for none (or AKM_HARBOR_BENCH_KILLS; %(default)s)",
    )
    given = parser.parse_args()
    if given.corpus is not None and not given.corpus.is_dir():
        parser.error(f"{given.corpus}: no such folder")
    return given


def main() -> int:
    """Run everything; the exit code says whether all targets were met."""
    given = arguments()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with tempfile.TemporaryDirectory(prefix="akm-harbor-bench-") as folder:
        scratch = Path(folder)
        fine = results_only(scratch, given.corpus)
        if given.kills:
            fine += kills(scratch, given.kills)
        if given.mb:
            fine += trajectories(scratch, given.mb)
    return 0 if all(fine) else 1


if __name__ == "__main__":
    sys.exit(main())
