"""The clauses of the contract about one job: what Harbor writes, where, and when."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from akm_harbor.study.harbor_contract.lab import METADATA, SECRET, ContractError, Lab, one, trials_of


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that we rely on.

    Attributes:
        name: short and stable.
        behaviour: what Harbor does, one sentence.
        relied_on_by: our modules that are wrong as soon as it does not.
        look: raises when it does not.
    """

    name: str
    behaviour: str
    relied_on_by: tuple[str, ...]
    look: Callable[[Lab], None]


def expect(seen: Any, wanted: Any, what: str) -> None:
    """Compare what was seen with what we rely on.

    Raises:
        ContractError: they differ.
    """
    if seen != wanted:
        raise ContractError(f"{what}: {seen!r} instead of {wanted!r}")


def need(*, holds: bool, otherwise: str) -> None:
    """Refuse what does not hold.

    Raises:
        ContractError: it does not.
    """
    if not holds:
        raise ContractError(otherwise)


def _keys(path: Path, wanted: set[str]) -> dict[str, Any]:
    need(holds=path.is_file(), otherwise=f"no {path.parent.name}/{path.name}")
    value: dict[str, Any] = json.loads(path.read_text("utf-8"))
    missing = sorted(wanted - set(value))
    need(holds=not missing, otherwise=f"{path.name} of {path.parent.name} lacks {', '.join(missing)}")
    return value


def _layout(lab: Lab) -> None:
    job = lab.main
    _keys(job / "config.json", {"agents", "datasets", "retry"})
    result = _keys(job / "result.json", {"id", "n_total_trials", "stats", "finished_at"})
    lock = _keys(job / "lock.json", {"harbor", "trials"})
    expect(lock["harbor"]["version"], lab.version, "lock.json harbor.version")
    expect(result["stats"]["n_retries"], 1, "result.json stats.n_retries after one retry")
    expect(len(lock["trials"]), result["n_total_trials"], "trials in lock.json")
    need(holds=(job / "job.log").is_file(), otherwise="no job.log")
    trial = one(job, "write")
    need(
        holds=re.fullmatch(r"write__[A-Za-z0-9]{7}", trial.folder.name) is not None,
        otherwise=f"a trial directory is named {trial.folder.name}",
    )
    for name in ("trial.log", "config.json", "lock.json", "verifier/test-stdout.txt", "agent/trajectory.json"):
        need(holds=(trial.folder / name).is_file(), otherwise=f"no {name} in a trial directory")
    need(holds=(one(job, "raise").folder / "exception.txt").is_file(), otherwise="no exception.txt after an exception")


def _result(lab: Lab) -> None:
    wanted = {"id", "task_name", "trial_name", "task_id", "config", "agent_info", "agent_result", "verifier_result"}
    phases = ("environment_setup", "agent_setup", "agent_execution", "verifier")
    trial = one(lab.main, "write")
    result = _keys(trial.folder / "result.json", wanted | {"exception_info", "started_at", "finished_at", *phases})
    expect(result["trial_name"], trial.folder.name, "trial_name")
    expect(result["agent_info"]["name"], "akm-contract", "agent_info.name, from the agent's name()")
    expect(result["config"]["agent"]["model_name"], "provider-nobody-knows/model", "config.agent.model_name")
    expect(trial.arm, "main", "config.agent.kwargs.arm")
    tokens = (result["agent_result"]["n_input_tokens"], result["agent_result"]["n_output_tokens"])
    expect(tokens, (11, 7), "tokens that the agent reported")
    times = [result[phase][edge] for phase in phases for edge in ("started_at", "finished_at")]
    need(holds=all(a <= b for a, b in pairwise(times)), otherwise=f"phases out of order: {times}")
    need(holds=times[0].endswith("Z"), otherwise=f"a phase's time is not UTC with a Z: {times[0]}")


def _digest(lab: Lab) -> None:
    folder = lab.tasks / "write"
    code = (
        "import sys; from pathlib import Path; from akm_harbor.corpus.harbor_contract import content_digest; "
        "print(content_digest(Path(sys.argv[1])))"
    )
    ran = lab.run_python(code, str(folder))
    ours = ran.output.strip().splitlines()[-1] if ran.output.strip() else ""
    lock = json.loads((one(lab.main, "write").folder / "lock.json").read_text("utf-8"))
    expect(lock["task"]["digest"], ours, "task.digest in a trial's lock.json, against our own digest of the task")


def _metadata(lab: Lab) -> None:
    for path in _texts(lab.main):
        need(
            holds=METADATA not in path.read_text("utf-8", errors="replace"),
            otherwise=f"{path.relative_to(lab.main)} now holds the task's [metadata]",
        )


def _texts(job: Path) -> list[Path]:
    return sorted(path for path in job.rglob("*") if path.is_file() and not path.is_symlink())


def _scan(lab: Lab) -> None:
    ran = {trial.task for trial in trials_of(lab.main)}
    need(holds="inner" not in ran and "nested" not in ran, otherwise="a task two levels down was run")
    need(holds="broken" not in ran, otherwise="a task with a broken task.toml was run")
    wanted = {path.name for path in lab.tasks.iterdir()} - {"nested", "broken"}
    expect(ran, wanted, "tasks run from a folder")


def _trajectory(lab: Lab) -> None:
    trial = one(lab.main, "trajectory")
    expect(trial.reward, 1, "reward of a test that reads the trajectory the agent wrote after its run")


def _logs(lab: Lab) -> None:
    trial = one(lab.main, "logs")
    for name, text in (
        ("agent/from-agent.txt", "from-agent"),
        ("verifier/extra.txt", "from-verifier"),
        ("artifacts/logs/artifacts/kept.txt", "kept"),
    ):
        path = trial.folder / name
        need(holds=path.is_file() or _elsewhere(path), otherwise=f"what was written to /logs is not at {name}")
        if path.is_file():
            expect(path.read_text("utf-8").strip(), text, name)


def _elsewhere(path: Path) -> bool:
    """Artifacts have lain directly in artifacts/ too; nothing of ours depends on which."""
    return "artifacts" in path.parts and (path.parents[2] / path.name).is_file()


def _hidden(lab: Lab) -> None:
    trial = one(lab.main, "peek")
    expect(trial.reward, 1, "reward of a test that finds /tests/test.sh")
    seen = (trial.folder / "agent" / "peek.txt").read_text("utf-8")
    need(
        holds="test.sh" not in seen and "solve.sh" not in seen,
        otherwise=f"the agent could see {', '.join(seen.split())}",
    )


def _rewards(lab: Lab) -> None:
    both = one(lab.main, "both-files").result["verifier_result"]["rewards"]
    expect(both, {"reward": 0.25, "style": 0.5}, "rewards from reward.json beside a reward.txt")
    trial = one(lab.main, "exit-code")
    expect((trial.reward, trial.exception), (1, None), "reward and exception of a test that exits with 3")
    for task, error in (
        ("no-reward", "RewardFileNotFoundError"),
        ("empty-reward", "RewardFileEmptyError"),
        ("bad-json", "VerifierOutputParseError"),
    ):
        trial = one(lab.main, task)
        expect((trial.reward, trial.exception), (None, error), f"reward and exception of the task {task}")


def _errors(lab: Lab) -> None:
    raised = one(lab.main, "raise")
    expect(
        (raised.reward, raised.exception), (None, "RuntimeError"), "an agent whose set-up raised: reward and exception"
    )
    slow = one(lab.main, "sleep")
    expect(
        (slow.reward, slow.exception),
        (1, "AgentTimeoutError"),
        "an agent that timed out, tests pass: reward and exception",
    )


def _secrets(lab: Lab) -> None:
    told = one(lab.main, "tell").folder / "agent" / "told.txt"
    need(holds=told.is_file(), otherwise="a variable from the agent's `env` did not reach its command")
    expect(told.read_text("utf-8").strip(), "[REDACTED]", "a secret that the agent printed into its logs")
    holding = [str(p.relative_to(lab.main)) for p in _texts(lab.main) if SECRET.encode() in p.read_bytes()]
    expect(holding, [], "files that hold a secret from the agent's `env`")


def _retries(lab: Lab) -> None:
    trial = one(lab.main, "flaky")
    expect((trial.reward, trial.exception), (1, None), "the retried trial: reward and exception")
    told = [event for event in lab.events if event.get("trial_name") == trial.folder.name]
    expect([event["exception"] for event in told], ["RetryError", None], "attempts a plugin was told of")
    expect(told[-1]["trial_id"], trial.result["id"], "id of the last attempt")
    need(holds=told[0]["trial_id"] != told[1]["trial_id"], otherwise="two attempts share one id")


def _plugin(lab: Lab) -> None:
    events = lab.events
    need(holds=bool(events), otherwise="the plugin was told nothing")
    expect((events[0]["event"], events[-1]["event"]), ("start", "end"), "first and last event of a plugin")
    ended = [event for event in events if event["event"] == "ended"]
    expect(len(ended), len(trials_of(lab.main)) + 1, "ended attempts told of, one of them retried")
    need(
        holds=all(event["on_disk"] for event in ended), otherwise="a trial's end was told before its result was written"
    )
    trial = next(event for event in ended if event["trial_name"].startswith("write__"))
    need(holds=bool(trial["digest"]) and trial["arm"] == "main", otherwise=f"an event lacks its digest or arm: {trial}")


def _order(lab: Lab) -> None:
    trials = sorted(trials_of(lab.small), key=lambda trial: str(trial.result.get("started_at")))
    expect([trial.arm for trial in trials], ["a", "b"] * 4, "arms in the order of start")


CLAUSES = (
    Clause(
        "layout",
        "a job is a folder of config, lock, result and log, with one folder a trial, named TASK__XXXXXXX",
        ("trials.discover", "trials.job", "trials.trial"),
        _layout,
    ),
    Clause(
        "result",
        "a trial's result.json holds identity, config with the agent's kwargs, tokens, and four phases in UTC",
        ("trials.result", "trials.usual", "ab.comparability"),
        _result,
    ),
    Clause(
        "task digest",
        "a trial's lock.json holds the content digest that our corpus computes",
        ("corpus.harbor_contract", "trials.tasks", "trials.job"),
        _digest,
    ),
    Clause(
        "no metadata",
        "nothing of a task's [metadata] reaches a job's folder",
        ("trials.tasks",),
        _metadata,
    ),
    Clause(
        "one-level scan",
        "a folder of tasks is scanned one level deep, and a broken task is left out without a word",
        ("corpus.lint", "study.render"),
        _scan,
    ),
    Clause(
        "trajectory before verifier",
        "what the agent writes on the host after its run lies in /logs/agent when the tests run",
        ("verify", "agent.arms", "corpus.rig"),
        _trajectory,
    ),
    Clause(
        "log mounting",
        "/logs/agent, /logs/verifier and /logs/artifacts of the container end up in the trial's folder",
        ("agent.capture", "sandbox.environment", "trials.evidence"),
        _logs,
    ),
    Clause(
        "hidden tests",
        "tests and solution come into the container only after the agent is done",
        ("corpus.rules_run", "agent.arms"),
        _hidden,
    ),
    Clause(
        "reward parsing",
        "reward.json comes before reward.txt, the exit code does not count, and no valid file is no reward",
        ("trials.result", "trials.causes", "verify"),
        _rewards,
    ),
    Clause(
        "error to reward",
        "an exception in the agent's set-up means no reward; a time-out is verified and keeps both",
        ("agent.arms", "trials.result", "ab.policies"),
        _errors,
    ),
    Clause(
        "secrets scrubbing",
        "values of the agent's sensitive variables are replaced by [REDACTED] everywhere below the job",
        ("trials.values", "agent.scrub"),
        _secrets,
    ),
    Clause(
        "retries",
        "a retried attempt's folder is deleted, its successor has its name and another id",
        ("ab.plugin", "trials.attempt_rows"),
        _retries,
    ),
    Clause(
        "plugin",
        "a job plugin is told of the start, of every attempt that ended (its result written), and of the end",
        ("ab.plugin",),
        _plugin,
    ),
    Clause(
        "order",
        "trials start in the order attempt, task, arm: arms take turns",
        ("study.render", "ab.comparability"),
        _order,
    ),
)
