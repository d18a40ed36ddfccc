"""Real jobs of real arms: Harbor's command line, the sandbox, the scripted model, broken toolchains."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from akm_harbor.agent.toolchain import INFO, Toolchain, content_digest
from akm_harbor.sandbox.model.policy import Call, Cut, Delivered, Fault, Policy, Rule, Turn
from akm_harbor.sandbox.model.server import ScriptedModel

HARBOR = Path(sys.executable).parent / "harbor"
PORT, PLAIN = "zorbl--port", "plain--hello"


def bash(command: str, *, say: str = "", cut: dict[str, Cut] | None = None) -> Turn:
    """One bash call by the model."""
    return Turn(say=say, cut=cut or {}, call=Call(tool="bash", args={"command": command, "description": "do it"}))


def policy(*rules: Rule, faults: Sequence[Fault] = ()) -> Policy:
    """Who was given the port writes it, who can look it up does, the rest guess; anybody can say hello."""
    number = Cut(source="text", pattern=r"[Tt]he zorbl port is (\d+)")
    ref = Cut(source="tool_result", tool="akm_curate", pattern=r'"ref":\s*"([^"]*port)"')
    standard = [
        Rule(
            name="knows",
            task="port",
            delivered=Delivered(text="zorbl port is"),
            turns=[bash("echo {{port}} > port.txt", cut={"port": number}), Turn(say="Done.")],
        ),
        Rule(
            name="looks-up",
            task="port",
            delivered=Delivered(tools=["akm_curate", "akm_show"]),
            turns=[
                Turn(say="Let me look.", call=Call(tool="akm_curate", args={"query": "zorbl port"})),
                Turn(cut={"ref": ref}, call=Call(tool="akm_show", args={"ref": "{{ref}}"})),
            ],
        ),
        Rule(name="guesses", task="port", turns=[bash("echo 80 > port.txt"), Turn(say="A guess.")]),
        Rule(name="greets", task="hello", turns=[bash("echo hello > hello.txt"), Turn(say="Done.")]),
    ]
    tasks = {"port": r"zorbl port", "hello": r"Write hello"}
    return Policy(version=1, tasks=tasks, rules=[*rules, *standard], faults=list(faults))


def write_task(
    folder: Path, name: str, instruction: str, check: str, *, timeout: float = 300.0, image: str = ""
) -> None:
    """One Harbor task that needs nothing but a shell."""
    task = folder / name
    for part in ("environment", "tests"):
        (task / part).mkdir(parents=True)
    (task / "task.toml").write_text(
        f'schema_version = "1.4"\n[task]\nname = "test/{name}"\n'
        '[metadata]\ndomain = "zorbl"\nfamily = "zorbl/port"\nbundle = "zorbl"\ngold_ref = "knowledge/port"\n'
        f"[agent]\ntimeout_sec = {timeout}\n"
    )
    (task / "instruction.md").write_text(f"{instruction}\n")
    (task / "environment" / "Dockerfile").write_text(f"FROM {image or 'debian:bookworm-slim'}\nWORKDIR /app\n")
    (task / "tests" / "test.sh").write_text(
        "#!/bin/bash\nbefore=$(cat /app/ticks 2>/dev/null | wc -l); sleep 0.6\n"
        'after=$(cat /app/ticks 2>/dev/null | wc -l); echo "ticks $before $after"\n'
        f"if {check}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
    )


def zorbl_tasks(folder: Path, *, timeout: float = 300.0, image: str = "") -> Path:
    """Two tasks: one whose answer is in its bundle and nowhere else, one that needs no notes."""
    tasks = folder / "tasks"
    write_task(
        tasks,
        PORT,
        "Write the zorbl port into the file port.txt.",
        '[ "$(cat /app/port.txt)" = 4117 ]',
        timeout=timeout,
        image=image,
    )
    write_task(
        tasks,
        PLAIN,
        "Write hello into the file hello.txt.",
        '[ "$(cat /app/hello.txt)" = hello ]',
        timeout=timeout,
        image=image,
    )
    notes = folder / "agents" / "bundles" / "zorbl" / "knowledge"
    notes.mkdir(parents=True)
    (notes / "port.md").write_text(
        "---\ndescription: on which port zorbl listens\ntags: [zorbl, port]\n---\n# Port\n\nThe zorbl port is 4117.\n"
    )
    (notes / "colour.md").write_text(
        "---\ndescription: the colour of zorbl\ntags: [zorbl]\n---\n# Colour\n\nzorbl is teal.\n"
    )
    return tasks


def agent(kind: str, arm: str, model: ScriptedModel, **kwargs: Any) -> dict[str, Any]:
    """One entry of a job's `agents`; `kind` is a public class name."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": model.base_url(arm), "apiKey": "none"},
        "models": {"demo": {"limit": {"context": 100_000, "output": 8_000}, "cost": {"input": 1.0, "output": 4.0}}},
    }
    config = {"provider": {"scripted": provider}, **kwargs.pop("opencode_config", {})}
    return {
        "import_path": f"akm_harbor:{kind}",
        "model_name": "scripted/demo",
        "kwargs": {"arm": arm, "opencode_config": config, **kwargs},
    }


def run_job(
    folder: Path,
    name: str,
    agents: Sequence[dict[str, Any]],
    tasks: Sequence[str] = (PORT,),
    *,
    tasks_dir: Path,
    harbor: Path = HARBOR,
    **settings: Any,
) -> Path:
    """Run a job in the sandbox through Harbor's own command line; its directory."""
    job = {
        "job_name": name,
        "jobs_dir": str(folder / "jobs"),
        "n_attempts": 1,
        "n_concurrent_trials": 1,
        "quiet": True,
        "environment": {"import_path": "akm_harbor:SandboxEnvironment"},
        "agents": list(agents),
        "datasets": [{"path": str(tasks_dir), "task_names": list(tasks)}],
        **settings,
    }
    config = folder / f"{name}.yaml"
    config.write_text(yaml.safe_dump(job), "utf-8")
    env = {**os.environ, "HARBOR_TELEMETRY": "0", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run([harbor, "run", "-c", config], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return folder / "jobs" / name


def trials(job: Path) -> dict[tuple[str, str], SimpleNamespace]:
    """What each (arm, task) of a job left: result, reward, exception, capture and probe lines."""
    found = {}
    for path in sorted(job.glob("*/result.json")):
        result = json.loads(path.read_text("utf-8"))
        evidence = path.parent / "agent" / "akm"
        probe = evidence / "probe.jsonl"
        lines = probe.read_text("utf-8").splitlines() if probe.is_file() else []
        found[result["config"]["agent"]["kwargs"]["arm"], path.parent.name.rpartition("__")[0]] = SimpleNamespace(
            folder=path.parent,
            result=result,
            reward=((result["verifier_result"] or {}).get("rewards") or {}).get("reward"),
            exception=(result["exception_info"] or {}).get("exception_type"),
            capture=json.loads((evidence / "capture.json").read_text("utf-8")),
            probe=[json.loads(line) for line in lines],
        )
    return found


def broken_toolchain(whole: Toolchain, target: Path, damage: Callable[[Path], None]) -> Path:
    """A copy of a built toolchain with something wrong inside, honestly described by its own digest."""
    shutil.copytree(whole.tree, target, symlinks=True, copy_function=os.link)
    damage(target)
    path = target / INFO
    info = json.loads(path.read_text("utf-8"))
    info["digest"] = content_digest(target, info)
    path.unlink()  # a hard link to the whole one's
    path.write_text(json.dumps(info), "utf-8")
    return target


def without_plugin(tree: Path) -> None:
    """The plugin's package is not there."""
    shutil.rmtree(tree / "plugin" / "node_modules" / "akm-opencode")


def without_akm_cli(tree: Path) -> None:
    """The plugin is there, the akm-cli it imports is not."""
    shutil.rmtree(tree / "plugin" / "node_modules" / "akm-cli")


def akm_exits_1(tree: Path) -> None:
    """The akm command is there and fails."""
    path = tree / "bin" / "akm"
    path.unlink()
    path.write_text("#!/bin/sh\necho 'akm: broken' >&2\nexit 1\n", "utf-8")
    path.chmod(0o755)


def fake_toolchain(tree: Path, parts: Sequence[str] = ("opencode", "bun", "akm", "plugin")) -> Path:
    """A folder that describes itself as a toolchain, without any binary, for what never runs one."""
    tree.mkdir(parents=True)
    versions = {"opencode": "1.18.33", "bun": "1.4.5", "akm": "0.9.0", "plugin": "0.9.1"}
    info: dict[str, Any] = {
        "format": 1,
        "platform": "linux-x64",
        "parts": {part: {"version": versions[part]} for part in parts},
    }
    info["digest"] = content_digest(tree, info)
    (tree / INFO).write_text(json.dumps(info), "utf-8")
    return tree
