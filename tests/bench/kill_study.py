"""Kill a study at random moments, go on with it, and compare its table with an undisturbed run's.

`python tests/bench/kill_study.py --kills 20`: by hand, it takes about as long as so many demo studies.
A third of the kills hits both processes, a third `ab run` alone, a third Harbor alone.
"""

import argparse
import os
import random
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from akm_harbor.agent.toolchain import find
from akm_harbor.tables import read_table

COLUMNS = (
    "arm", "task_name", "status", "reward", "n_tool_calls", "n_input_tokens", "n_cache_tokens", "n_output_tokens",
    "cost_usd", "exception_type", "treatment_delivered",
)  # fmt: skip
STARTING_SECONDS = 10.0
MODES = ("both", "ab run", "harbor")


def table(folder: Path) -> tuple[Counter[str], int]:
    """The trials that count, as a multiset of rows; and how many superseded ones are recorded beside them."""
    rows = read_table(folder / "dataset", "trials", list(COLUMNS)).to_pylist()
    counting = [row for row in rows if row["status"] != "superseded"]
    return Counter(str(tuple(row[name] for name in COLUMNS)) for row in counting), len(rows) - len(counting)


def span(folder: Path) -> float:
    """Seconds from the first trial's start to the last one's end."""
    rows = read_table(folder / "dataset", "trials", ["started_at", "finished_at"]).to_pylist()
    return (max(row["finished_at"] for row in rows) - min(row["started_at"] for row in rows)).total_seconds()


def command(folder: Path, study: list[str]) -> list[str]:
    """The study's command line."""
    return [sys.executable, "-c", "from akm_harbor.cli import main; main()", "ab", "run", *study, "-o", str(folder)]


def run(folder: Path, study: list[str], environment: dict[str, str]) -> float:
    """Run it to its end; seconds."""
    started = time.monotonic()
    with (folder.parent / f"{folder.name}.out").open("ab") as out:
        done = subprocess.run(command(folder, study), env=environment, stdout=out, stderr=out, check=False)
    if done.returncode not in {0, 3, 4}:
        raise SystemExit(f"{folder}: exit code {done.returncode}, see {folder}.out")
    return time.monotonic() - started


def kill(folder: Path, study: list[str], environment: dict[str, str], after: float, mode: str) -> bool:
    """Start it and kill it; False if it was done before."""
    with (folder.parent / f"{folder.name}.out").open("ab") as out:
        process = subprocess.Popen(
            command(folder, study), env=environment, stdout=out, stderr=out, start_new_session=True
        )
        try:
            process.wait(after)
        except subprocess.TimeoutExpired:
            pass
        else:
            return False
        harbor = children(process.pid)  # in a process group of its own
        for pid in {"both": [process.pid, *harbor], "ab run": [process.pid], "harbor": harbor}[mode]:
            os.kill(pid, signal.SIGKILL)
        process.wait()
    return True


def children(pid: int) -> list[int]:
    """Direct children of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == pid:
                found.append(int(entry.name))
    return found


def left(cache: Path, folder: Path) -> list[str]:
    """Mounts, processes and sandbox folders that a study left on this machine."""
    marks = (str(cache), str(folder))
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if any(m in line for m in marks)]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                text += (entry / "mountinfo").read_text(errors="replace")
            except OSError:
                continue
            if any(mark in text for mark in marks):
                found.append(f"process {entry.name}: {text[:200]}")
    return found + [str(path) for path in cache.glob("sandbox/*/trials/*")]


def main() -> int:
    """Print one line a kill, and the count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--per-run", type=int, default=1, help="kills of one run before it may end")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=1, help="number of the first run's folder")
    parser.add_argument("--study", type=shlex.split, default=["demo"], help="study and options of `ab run`")
    parser.add_argument("--work", type=Path)
    arguments = parser.parse_args()
    work = arguments.work or Path(tempfile.mkdtemp(prefix="kill-study-"))
    work.mkdir(parents=True, exist_ok=True)
    cache = work / "cache"
    toolchain = find(None)
    environment = {**os.environ, "AKM_HARBOR_CACHE": str(cache), "AKM_HARBOR_TOOLCHAIN": str(toolchain.tree)}
    run(work / "undisturbed", arguments.study, environment)  # a complete one is not run again
    wanted, _ = table(work / "undisturbed")
    seconds = span(work / "undisturbed") + STARTING_SECONDS
    print(f"undisturbed: {sum(wanted.values())} trials in {seconds:.0f} s", flush=True)
    rng = random.Random(arguments.seed)
    equal = clean = kills = runs = 0
    number = arguments.first
    while kills < arguments.kills:
        runs += 1
        folder = work / f"run-{number:02}"
        number += 1
        told = []
        for _ in range(min(arguments.per_run, arguments.kills - kills)):
            after, mode = rng.uniform(1.0, 0.9 * seconds / arguments.per_run), rng.choice(MODES)
            if kill(folder, arguments.study, environment, after, mode):
                kills += 1
                told.append(f"{mode} at {after:.1f} s")
        run(folder, arguments.study, environment)
        found, superseded = table(folder)
        remains = left(cache, folder)
        equal += found == wanted
        clean += not remains
        verdict = "equal" if found == wanted else f"DIFFERS: {found - wanted} instead of {wanted - found}"
        what = f"{verdict}, {superseded} superseded; left: {remains or 'nothing'}"
        print(f"{folder.name}: killed {', '.join(told)}; {what}", flush=True)
    print(f"{kills} kills, {equal} of {runs} tables equal, {clean} of {runs} left nothing")
    return 0 if equal == clean == runs else 1


if __name__ == "__main__":
    raise SystemExit(main())
