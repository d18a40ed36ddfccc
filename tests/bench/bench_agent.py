"""How long the agents' set-up takes a trial with a built toolchain. Target: 2 s.

    python tests/bench/bench_agent.py

Measured on real trials in the sandbox, as Harbor's own `agent_setup` phase. The
control arm always; the treatment arm where the toolchain in use holds akm.
"""

import json
import statistics
import sys
import tempfile
from datetime import datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from akm_harbor.agent.toolchain import Toolchain, find
from akm_harbor.sandbox.model.server import ScriptedModel
from tests.agent.support import PLAIN, PORT, agent, policy, run_job, zorbl_tasks

TARGET = 2.0
ATTEMPTS = 3


def setup_seconds(job: Path) -> dict[str, list[float]]:
    """Seconds of set-up by arm, from Harbor's results; the job's first trial warms the disk and is left out."""
    found: dict[str, list[tuple[str, float]]] = {}
    for path in job.glob("*/result.json"):
        result = json.loads(path.read_text("utf-8"))
        phase = result["agent_setup"]
        start, end = (datetime.fromisoformat(phase[name]) for name in ("started_at", "finished_at"))
        arm = result["config"]["agent"]["kwargs"]["arm"]
        found.setdefault(arm, []).append((phase["started_at"], (end - start).total_seconds()))
    return {arm: [seconds for _, seconds in sorted(runs)][1:] for arm, runs in found.items()}


def measure(toolchain: Toolchain) -> dict[str, list[float]]:
    """Run the trials; seconds of set-up by arm."""
    with tempfile.TemporaryDirectory() as name, ScriptedModel(policy()) as model:
        folder, tree = Path(name), str(toolchain.tree)
        arms = [agent("ControlOpenCode", "control", model, toolchain=tree)]
        if not toolchain.control_only:
            arms.append(agent("AkmOpenCode", "akm", model, toolchain=tree))
        tasks = zorbl_tasks(folder)
        return setup_seconds(run_job(folder, "bench", arms, [PORT, PLAIN], tasks_dir=tasks, n_attempts=ATTEMPTS))


def main() -> None:
    """Print one line per figure: name, measured, target, ok."""
    for arm, seconds in sorted(measure(find(None)).items()):
        median = statistics.median(seconds)
        print(
            f"agent set-up, {arm} arm (median of {len(seconds)}): "
            f"{median:.2f} s, target <= {TARGET:.1f} s, {'ok' if median <= TARGET else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
