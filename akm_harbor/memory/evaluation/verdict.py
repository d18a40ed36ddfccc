"""The machine-readable verdict of a memory result."""

from typing import Any

import akm_harbor
from akm_harbor.memory.evaluation.analysis import MemoryResult, PanelResult

VERSION = 1


def verdict(result: MemoryResult) -> dict[str, Any]:
    """What verdict.json holds; its form changes only with `version`."""
    return {
        "version": VERSION,
        "kind": "memory-evaluation",
        "package": akm_harbor.__version__,
        "level": result.options.level,
        "comparable": len(result.panels) == 1,
        "panels": [_panel(panel) for panel in result.panels],
        "not_comparable": [
            {"panels": [refusal.first, refusal.second], "reasons": refusal.reasons} for refusal in result.refusals
        ],
        "retrieval": result.curves,
        "coverage": [
            {"scenario": c.scenario.name, "replicates": c.replicates, "covered": c.covered, "hard": hard}
            for group, hard in ((result.coverage, False), (result.hard, True))
            for c in group
        ],
    }


def _panel(panel: PanelResult) -> dict[str, Any]:
    return {
        "panel": panel.panel.number,
        "studies": panel.panel.studies,
        "protocol": panel.panel.protocol,
        "run_ids": [manifest.get("run_id") for manifest in panel.panel.manifests],
        "baseline": panel.baseline,
        "floor": panel.floor,
        "ceiling": panel.ceiling,
        "audited_ceiling": None if panel.audit is None else panel.audit.ceiling,
        "above_audited_ceiling": [] if panel.audit is None else panel.audit.above,
        "incomplete": panel.incomplete,
        "scores": panel.scores,
        "differences": panel.differences,
        "variance": panel.variance,
        "judge_probe": panel.judge_probe,
    }
