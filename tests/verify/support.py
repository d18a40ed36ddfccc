"""Small ATIF trajectories, made by hand, and the helper as tasks have it."""

import json
from pathlib import Path
from typing import Any

from akm_harbor.corpus.sync import helper_text


def step(number: int, *calls: tuple[str, dict[str, Any]] | tuple[str, dict[str, Any], str | None]) -> dict[str, Any]:
    """One agent step; a call is (tool, arguments) or (tool, arguments, result or None)."""
    made, results = [], []
    for place, call in enumerate(calls):
        call_id = f"call_{number}_{place}"
        made.append({"tool_call_id": call_id, "function_name": call[0], "arguments": call[1]})
        result = call[2] if len(call) > 2 else "(no output)"
        if result is not None:
            results.append({"source_call_id": call_id, "content": result})
    return {
        "step_id": number,
        "source": "agent",
        "message": "",
        "tool_calls": made,
        "observation": {"results": results},
    }


def trajectory(*steps: dict[str, Any]) -> dict[str, Any]:
    """A whole trajectory, the user's instruction first."""
    everything = [{"step_id": 1, "source": "user", "message": "do it"}, *steps]
    return {
        "schema_version": "ATIF-v1.7",
        "session_id": "ses",
        "agent": {"name": "opencode", "version": "1", "model_name": "x/y"},
        "steps": everything,
        "final_metrics": {"total_steps": len(everything)},
    }


def lay(folder: Path, document: Any, *, akm_expected: bool | None = True) -> Path:
    """An agent log folder with a trajectory and a capture.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "trajectory.json").write_text(document if isinstance(document, str) else json.dumps(document))
    if akm_expected is not None:
        (folder / "akm").mkdir(exist_ok=True)
        (folder / "akm" / "capture.json").write_text(json.dumps({"akm_expected": akm_expected}))
    return folder


def write_helper(folder: Path) -> Path:
    """The generated single file, in a folder of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "akm_verify.py"
    path.write_text(helper_text())
    return path
