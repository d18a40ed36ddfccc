"""`akm-harbor model`: the scripted model server."""

from pathlib import Path
from typing import Annotated

import typer

from akm_harbor.cli.say import say

app = typer.Typer(help="A scripted, OpenAI-compatible model for demos, tests and CI.", no_args_is_help=True)

PolicyPath = Annotated[Path, typer.Argument(metavar="POLICY", help="The policy file (YAML), see docs/model.md.")]


@app.command()
def serve(
    policy: PolicyPath,
    host: Annotated[str, typer.Option(help="Address to listen on; a container needs one it can reach.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 picks a free one.")] = 18080,
    log: Annotated[Path | None, typer.Option(help="Append one JSON line per request to this file.")] = None,
) -> None:
    """Serve a policy until interrupted.

    Example: `akm-harbor model serve arms/demo-policy.yaml --port 18080 --log requests.jsonl`
    """
    import signal
    import threading

    from akm_harbor.sandbox.model import ScriptedModel

    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with ScriptedModel(policy, host=host, port=port, log=log) as model:
        rules, faults = len(model.policy.rules), len(model.policy.faults)
        say(f"{policy}: {len(model.policy.tasks)} tasks, {rules} rules, {faults} faults")
        say(f"serving {model.base_url()}, per arm {model.base_url(arm='<arm>')}; Ctrl-C ends it")
        stop.wait()


@app.command()
def check(policy: PolicyPath) -> None:
    """Check a policy file; what is wrong is named with line and key.

    Example: `akm-harbor model check arms/demo-policy.yaml`
    """
    from akm_harbor.sandbox.model import load_policy

    loaded = load_policy(policy)
    say(f"{policy}: ok, {len(loaded.tasks)} tasks, {len(loaded.rules)} rules, {len(loaded.faults)} faults")
