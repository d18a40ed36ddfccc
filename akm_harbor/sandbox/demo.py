"""The demo's trials: real opencode under real Harbor in the sandbox, played by the scripted model.

What becomes of them (dataset, report) is the command's business, see `cli/demo.py`.
"""

import asyncio
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.errors import AkmHarborError
from akm_harbor.resources import data_root, resource
from akm_harbor.sandbox.check import findings
from akm_harbor.sandbox.harbor import run_harbor
from akm_harbor.sandbox.model import ScriptedModel
from akm_harbor.sandbox.places import places

CONTROL, ORACLE, AKM = "control", "oracle-context", "akm"
_MODEL_URL = "http://127.0.0.1:18080"
"""Where arms/demo.yaml expects the scripted model; replaced by the port in use."""

_CATALOGUE = "/opt/akm-harbor-demo/models.json"
_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class DemoJob:
    """One finished job of the demo.

    Attributes:
        folder: the Harbor job directory.
        arms: labels of the arms that ran.
        planned: how many trials it was to have.
        log: what Harbor printed.
        requests: one JSON line per request to the model.
    """

    folder: Path
    arms: tuple[str, ...]
    planned: int
    log: Path
    requests: Path


def why_not() -> str | None:
    """Why trials cannot run on this machine; None if they can. Starts a real sandbox to know."""
    try:
        missing = [finding for finding in asyncio.run(findings(places())) if not finding.ok]
    except AkmHarborError as error:
        return error.message
    return "; ".join(f"{finding.name}: {finding.detail}" for finding in missing) or None


def job_config(
    out: Path, model_url: str, *, name: str, with_akm: bool, attempts: int, parallel: int | None = None
) -> dict[str, Any]:
    """arms/demo.yaml for this run: absolute paths, the model's real port, and the akm arm if there is one.

    Args:
        out: the demo's folder; the job goes to `out/jobs`.
        model_url: scheme, host and port of the scripted model.
        name: the job's name.
        with_akm: add the akm arm.
        attempts: attempts of each task by each arm.
        parallel: trials at once; default one more than there are processors.
    """
    text = resource("arms", "demo.yaml").read_text("utf-8").replace(_MODEL_URL, model_url)
    config: dict[str, Any] = yaml.safe_load(text)
    if with_akm:
        akm = json.loads(json.dumps(config["agents"][0]).replace(f"/arm/{CONTROL}/", f"/arm/{AKM}/"))
        akm["import_path"] = "akm_harbor:AkmOpenCode"
        akm["kwargs"]["arm"] = AKM
        config["agents"].append(akm)
    config |= {
        "job_name": name,
        "jobs_dir": str(out / "jobs"),
        "n_attempts": attempts,
        "n_concurrent_trials": parallel or (os.cpu_count() or 1) + 1,
    }
    spare_catalogue(config, out)
    for dataset in config["datasets"]:
        dataset["path"] = str(data_root() / dataset["path"])
    return config


def spare_catalogue(config: dict[str, Any], folder: Path) -> None:
    """Give every arm of a scripted job an empty catalogue of models, kept in `folder`.

    The scripted model is declared in full, so opencode need not read its catalogue of every
    known model: that is a quarter of what one short run costs.
    """
    catalogue = folder / "no-models.json"
    catalogue.write_text("{}\n", "utf-8")
    mount = {"type": "bind", "source": str(catalogue), "target": _CATALOGUE, "read_only": True}
    config["environment"]["mounts"] = [mount]
    for agent in config["agents"]:
        agent["env"] = {"OPENCODE_MODELS_PATH": _CATALOGUE}


def run_demo(
    out: Path,
    *,
    with_akm: bool,
    attempts: int,
    progress: Callable[[int, int], None] = lambda _done, _planned: None,
) -> DemoJob:
    """Run the demo's job with the scripted model in this process.

    Args:
        out: an existing folder.
        with_akm: add the akm arm (the toolchain must hold akm).
        attempts: attempts of each task by each arm.
        progress: called with trials done and planned.

    Raises:
        AkmHarborError: Harbor failed; the message has its last words.
    """
    out = out.resolve()
    name = time.strftime("demo-%Y%m%d-%H%M%S")
    folder = out / "jobs" / name
    log, requests, job_file = out / f"{name}.log", out / f"{name}.requests.jsonl", out / f"{name}.yaml"
    with ScriptedModel(resource("arms", "demo-policy.yaml"), log=requests) as model:
        url = f"http://127.0.0.1:{model.port}"
        config = job_config(out, url, name=name, with_akm=with_akm, attempts=attempts)
        job_file.write_text(yaml.safe_dump(config, sort_keys=False), "utf-8")
        n_tasks = sum(len(dataset["task_names"]) for dataset in config["datasets"])
        planned = attempts * len(config["agents"]) * n_tasks
        log.unlink(missing_ok=True)
        run_harbor(["run", "-c", str(job_file)], log, tick=lambda: progress(_finished(folder), planned))
    arms = tuple(agent["kwargs"]["arm"] for agent in config["agents"])
    return DemoJob(folder, arms, planned, log, requests)


def _finished(folder: Path) -> int:
    return sum(1 for _ in folder.glob("*/result.json"))
