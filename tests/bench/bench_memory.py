"""Timing and memory of the memory study: conversion, later reads, BM25, and akm where one is named.

Run: python tests/bench/bench_memory.py [--large]. Each line is name, measured, target, ok.
AKM_HARBOR_LOCOMO names locomo10.json, AKM_HARBOR_AKM_SPEC an akm executable; without them their
lines are left out. `--large` adds the 2.75 GB file, which needs 4 GB of disk and some minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
MIB = 1 << 20

_MEASURE = """
import resource, sys, time
began = time.perf_counter()
{body}
seconds = time.perf_counter() - began
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(seconds, peak // (1024 if sys.platform != "darwin" else 1048576))
"""


def measured(body: str, setup: str = "", times: int = 3) -> tuple[float, int]:
    """(seconds, peak MiB) of some code in a process of its own: the quickest of some runs, the largest peak."""
    code = setup + _MEASURE.format(body=body)
    runs = []
    for _ in range(times):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
        seconds, peak = done.stdout.split()[-2:]
        runs.append((float(seconds), int(peak)))
    return min(seconds for seconds, _ in runs), max(peak for _, peak in runs)


def line(name: str, value: str, target: str, *, ok: bool) -> None:
    """Print one result."""
    print(f"{name:52} {value:>16} {target:>16} {'ok' if ok else 'MISSED'}")


def conversion(work: Path, name: str, *, questions: int, sessions: int, bare: bool) -> None:
    """Generate a LongMemEval-shaped file, convert it, read its questions alone."""
    sys.path.insert(0, str(ROOT))
    from tests.memory.shapes import longmemeval

    path = longmemeval(work / f"{name}.json", questions=questions, sessions=sessions, turns=11, chars=1020)
    size = path.stat().st_size / 1e6
    out = work / name
    setup = "from pathlib import Path\nfrom akm_harbor.memory.datasets.convert import convert\n"
    seconds, peak = measured(f"convert(Path({str(path)!r}), Path({str(out)!r}))", setup, 3 if bare else 1)
    line(f"convert {name} ({size:,.0f} MB): peak memory", f"{peak} MiB", "<= 600 MiB", ok=peak <= 600)
    if bare:
        loads, loads_peak = measured(f"json.loads(open({str(path)!r}, 'rb').read())", "import json\n")
        line(
            f"convert {name}: against json.loads ({loads:.1f} s, {loads_peak} MiB)",
            f"{seconds:.1f} s = {seconds / loads:.1f}x",
            "<= 8x",
            ok=seconds <= 8 * loads,
        )
    else:
        line(f"convert {name}: time", f"{seconds:.1f} s", "-", ok=True)
    setup = "from pathlib import Path\nfrom akm_harbor.memory.datasets.store import Store\n"
    seconds, _ = measured(f"Store(Path({str(out)!r})).questions()", setup)
    line(f"questions of {name} alone", f"{seconds:.2f} s", "<= 1 s", ok=seconds <= 1)
    seconds, _ = measured(f"next(Store(Path({str(out)!r})).read([{questions // 2}]))", setup)
    line(f"one history of {name}", f"{seconds:.2f} s", "-", ok=True)
    path.unlink()


def bm25(work: Path, locomo: str) -> None:
    """BM25 over all 1,986 questions, as a person would run it."""
    command = [sys.executable, "-c", "from akm_harbor.cli import main; main()", "memory", "probe", "locomo"]
    environment = {**os.environ, "AKM_HARBOR_CACHE": str(work / "cache")}
    arguments = ["--data", locomo, "-b", "bm25", "-g", "turn", "-o", str(work / "probe")]
    began = time.perf_counter()
    subprocess.run([*command, *arguments], check=True, capture_output=True, env=environment, cwd=ROOT)
    seconds = time.perf_counter() - began
    manifest = json.loads((work / "probe" / "manifest.json").read_text())
    assert manifest["statuses"] == {"ok": 1986}
    line("bm25 over LoCoMo's 1,986 questions, conversion included", f"{seconds:.1f} s", "<= 20 s", ok=seconds <= 20)


def akm(work: Path, executable: str) -> None:
    """500 documents into a real akm: one index run, its count asserted."""
    from akm_harbor.memory.backends.akm import Akm
    from akm_harbor.memory.documents import opaque_name
    from akm_harbor.memory.protocol import Document

    backend = Akm(Path(executable), work / "akm")
    documents = [
        Document(opaque_name("b", n), f"Note {n} about kite{n % 50} and the mill.", f"{n:04d}") for n in range(500)
    ]
    best = float("inf")
    for _ in range(3):
        backend.reset()
        began = time.perf_counter()
        assert backend.ingest(documents).docs == 500
        best = min(best, time.perf_counter() - began)
    line("akm: 500 documents, one index run, self-check", f"{best:.1f} s", "<= 5 s", ok=best <= 5)


def study(work: Path) -> None:
    """A study read by the double, in the real calling process: time a call, a resume, a verification."""
    from akm_harbor.memory.answer.result import read_study
    from akm_harbor.memory.answer.verification import verify
    from akm_harbor.memory.datasets.convert import convert
    from akm_harbor.memory.datasets.sources import find_source
    from akm_harbor.memory.datasets.store import Store
    from tests.memory.answer.model_double import Double
    from tests.memory.answer.support import declare, execute, script_for

    os.environ["DOUBLE_KEY"] = "none"
    source = find_source("demo-locomo").path
    assert source is not None
    store = Store(convert(source, work / "demo-locomo").path)
    with Double(script_for(store)) as double:
        gates = {"ceiling": 0.0, "retrieval": 0.0}
        path = declare(work, double.url, arms=["none", "full", "oracle", "bm25", "bow", "grep"], gates=gates)
        began = time.perf_counter()
        report, _ = execute(path, store, work / "study")
        seconds, calls = time.perf_counter() - began, sum(double.requests.values())
        line(f"study of {report.rows} rows, {calls} calls, litellm's start included", f"{seconds:.1f} s", "-", ok=True)
        began = time.perf_counter()
        execute(path, store, work / "study")
        resumed, paid = time.perf_counter() - began, sum(double.requests.values()) - calls
        line("the same again: calls made", f"{paid} in {resumed:.1f} s", "0", ok=paid == 0)
    began = time.perf_counter()
    found = verify(read_study(work / "study"))
    seconds = time.perf_counter() - began
    line("verify its rows, calls and table", f"{seconds:.1f} s", "<= 5 s", ok=not found and seconds <= 5)


def main() -> None:
    """Run every line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", action="store_true", help="also the 2.75 GB file")
    large = parser.parse_args().large
    sys.path.insert(0, str(ROOT))
    with tempfile.TemporaryDirectory(prefix="akm-harbor-bench-") as folder:
        work = Path(folder)
        conversion(work, "s-shaped", questions=500, sessions=48, bare=True)
        if large:
            conversion(work, "m-shaped", questions=500, sessions=476, bare=False)
        study(work)
        if os.environ.get("AKM_HARBOR_LOCOMO"):
            bm25(work, os.environ["AKM_HARBOR_LOCOMO"])
        if os.environ.get("AKM_HARBOR_AKM_SPEC"):
            akm(work, os.environ["AKM_HARBOR_AKM_SPEC"])


if __name__ == "__main__":
    main()
