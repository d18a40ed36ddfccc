"""How fast the corpus runs: oracle and nop in the sandbox, and the linter."""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from akm_harbor.corpus import lint
from akm_harbor.resources import resource

BIN = Path(sys.executable).parent
ENV = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}


def line(name: str, measured: str, target: str, *, ok: bool) -> bool:
    """Print one figure."""
    print(f"{name}: {measured} (target {target}) {'ok' if ok else 'MISSED'}")
    return ok


def run(agent: str, folder: Path) -> tuple[float, list[float]]:
    """One `harbor run` of the whole corpus: seconds, and the rewards."""
    started = time.monotonic()
    command = [BIN / "harbor", "run", "-p", resource("tasks"), "-a", agent, "-e", "akm_harbor:SandboxEnvironment"]
    done = subprocess.run(
        [*command, "-n", "2", "-o", folder, "--job-name", agent, "-q"],
        env=ENV,
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - started
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    found = [json.loads(path.read_text()) for path in (folder / agent).glob("*/result.json")]
    return seconds, [((one["verifier_result"] or {}).get("rewards") or {}).get("reward", -1) for one in found]


def main() -> int:
    """Measure, print, and give the exit code."""
    total = len([path for path in resource("tasks").iterdir() if (path / "task.toml").is_file()])
    good = []
    with tempfile.TemporaryDirectory() as name:
        oracle_seconds, oracle = run("oracle", Path(name))
        nop_seconds, nop = run("nop", Path(name))
    good.append(line("oracle", f"{sum(r == 1 for r in oracle)} of {total} score 1", "all", ok=oracle == [1.0] * total))
    good.append(line("nop", f"{sum(r == 0 for r in nop)} of {total} score 0", "all", ok=nop == [0.0] * total))
    seconds = oracle_seconds + nop_seconds
    good.append(line("oracle and nop together", f"{seconds:.1f} s", "60 s", ok=seconds <= 60))

    started = time.monotonic()
    corpus, findings = lint.read_corpus(resource("tasks"))
    findings += lint.run_rules(corpus, lint.select({"static"}))
    good.append(line("static lint", f"{time.monotonic() - started:.1f} s", "5 s", ok=time.monotonic() - started <= 5))
    started = time.monotonic()
    findings += lint.run_rules(corpus, lint.select({"run"}))
    tried = sum(one.mutants for one in corpus.tried.values())
    seconds = time.monotonic() - started
    good.append(line("near misses", f"{tried} in {seconds:.0f} s", "300 or more", ok=tried >= 300))
    good.append(line("findings", str(len(findings)), "0", ok=not findings))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
