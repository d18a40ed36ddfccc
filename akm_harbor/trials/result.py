"""One trial's result.json to columns of the trials table: a pure function."""

import json
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from akm_harbor.tables.redact import MARGIN
from akm_harbor.trials.causes import cause_of
from akm_harbor.trials.files import TrialFiles
from akm_harbor.trials.values import as_dict, as_float, as_int, as_list, as_text, micros, to_json

MESSAGE_CHARS = 2000

type Row = dict[str, Any]


ENVIRONMENTS = frozenset(
    {
        *(
            "docker",
            "sbx",
            "podman",
            "daytona",
            "e2b",
            "modal",
            "runloop",
            "langsmith",
            "ec2",
            "gke",
            "ack",
            "openshift",
        ),
        *(
            "novita",
            "apple-container",
            "singularity",
            "islo",
            "tensorlake",
            "cwsandbox",
            "wandb",
            "use-computer",
            "kernel",
        ),
        *("cua-cloud", "blaxel", "opensandbox", "beam", "skypilot", "hf-sandbox", "hyperbrowser", "vercel", "runta"),
        *("prime", "kata", "mosaic", "smol", "sail", "snowflake", "boxd", "superserve", "aca-sandbox"),
    }
)
"""Environment types of Harbor 0.22 to 0.26; Harbor cannot read back a result that names another one."""


class _Documented(msgspec.Struct):
    """What Harbor documents; a field of another type makes `schema_ok` false, nothing more."""

    id: str
    task_name: str
    trial_name: str
    trial_uri: str
    task_id: dict[str, Any]
    task_checksum: str
    config: dict[str, Any]
    agent_info: dict[str, Any]
    source: str | None = None
    agent_result: dict[str, Any] | None = None
    verifier_result: dict[str, Any] | None = None
    exception_info: dict[str, Any] | None = None
    started_at: str | None = None
    finished_at: str | None = None
    environment_setup: dict[str, Any] | None = None
    agent_setup: dict[str, Any] | None = None
    agent_execution: dict[str, Any] | None = None
    verifier: dict[str, Any] | None = None
    step_results: list[Any] | None = None


_MULTIPLIERS = (
    "agent_timeout_multiplier",
    "verifier_timeout_multiplier",
    "agent_setup_timeout_multiplier",
    "environment_build_timeout_multiplier",
)
_AGENT_TIMEOUTS = ("override_timeout_sec", "override_setup_timeout_sec", "max_timeout_sec")
_VERIFIER_TIMEOUTS = ("override_timeout_sec", "max_timeout_sec")
_OVERRIDES = (
    "override_cpus",
    "override_memory_mb",
    "override_storage_mb",
    "override_gpus",
    "override_tpu",
    "override_build_timeout_sec",
)
_POLICIES = ("cpu_enforcement_policy", "memory_enforcement_policy")


def result_row(result: dict[str, Any], reward_key: str, files: TrialFiles) -> Row:
    """The columns that result.json alone decides.

    Args:
        result: the parsed file.
        reward_key: which key of the rewards is the primary one.
        files: takes the problems and notes.
    """
    steps = [as_dict(step) for step in as_list(result.get("step_results"))]
    info = as_dict(result.get("agent_info"))
    row: Row = {
        "trial_id": as_text(result.get("id")),
        "trial_name": as_text(result.get("trial_name")),
        "task_name": as_text(result.get("task_name")),
        "task_checksum": as_text(result.get("task_checksum")),
        "task_path": task_path(as_dict(result.get("task_id"))),
        "source": as_text(result.get("source")),
        "agent_name": as_text(info.get("name")),
        "agent_version": as_text(info.get("version")),
        "model_name": _model(as_dict(info.get("model_info"))),
    }
    _times(row, result, steps, files)
    _rewards(row, result, reward_key, files)
    _exception(row, result, steps)
    _usage(row, result, steps)
    row["schema_ok"] = _schema_ok(result)
    return row


def task_path(task_id: dict[str, Any]) -> str | None:
    """A task's place as configured: a path, `url#path@commit`, or `org/name@ref`."""
    path = as_text(task_id.get("path"))
    url = as_text(task_id.get("git_url"))
    if url:
        commit = as_text(task_id.get("git_commit_id"))
        return f"{url}#{path or ''}" + (f"@{commit}" if commit else "")
    if path:
        return path
    name = as_text(task_id.get("name"))
    if not name:
        return None
    org, ref = as_text(task_id.get("org")), as_text(task_id.get("ref"))
    return (f"{org}/" if org else "") + name + (f"@{ref}" if ref else "")


def _model(info: dict[str, Any]) -> str | None:
    """provider/name; newer Harbor keeps the prefix inside the name, older ones split it."""
    name, provider = as_text(info.get("name")), as_text(info.get("provider"))
    if name and provider and "/" not in name:
        return f"{provider}/{name}"
    return name


def _seconds(value: Any) -> float | None:
    span = as_dict(value)
    return seconds_between(span.get("started_at"), span.get("finished_at"))


def seconds_between(start: Any, end: Any) -> float | None:
    """Seconds between two ISO 8601 times; None unless both are times of one kind."""
    try:
        return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    except (TypeError, ValueError):
        return None


def _summed(values: list[float | None]) -> float | None:
    """The sum, where every part that there is can be known."""
    known = [v for v in values if v is not None]
    return sum(known) if known and len(known) == len(values) else None


def _times(row: Row, result: dict[str, Any], steps: list[dict[str, Any]], files: TrialFiles) -> None:
    for name in ("started_at", "finished_at"):
        value = result.get(name)
        row[name], naive = micros(value)
        if naive:
            note_naive(files, name)
        elif row[name] is None and value is not None:
            files.problem("result.json", "bad-timestamp", f"{name} is {str(value)[:60]!r}", "left null")
    row["environment_seconds"] = _seconds(result.get("environment_setup"))
    row["setup_seconds"] = _seconds(result.get("agent_setup"))
    for column, key in (("agent_seconds", "agent_execution"), ("verifier_seconds", "verifier")):
        row[column] = _seconds(result.get(key))
        if row[column] is None and steps:
            row[column] = _summed([_seconds(step[key]) for step in steps if step.get(key) is not None])
        if row[column] is not None and row[column] < 0:
            files.problem("result.json", "negative-duration", f"{key} ends before it starts", "left null")
            row[column] = None


def note_naive(files: TrialFiles, name: str) -> None:
    """Note that a time had no offset."""
    files.note("naive-timestamp", f"{name} has no offset; read as UTC")


def _rewards(row: Row, result: dict[str, Any], reward_key: str, files: TrialFiles) -> None:
    rewards = as_dict(result.get("verifier_result")).get("rewards")
    if rewards is None:
        return
    row["rewards_json"] = rewards_json(rewards)
    if not isinstance(rewards, dict):
        files.problem("result.json", "bad-reward", f"rewards is a {type(rewards).__name__}, not an object", "no reward")
        return
    row["reward_key"] = reward_key
    if reward_key not in rewards:
        if rewards:
            keys = ", ".join(sorted(map(str, rewards))[:10])
            detail = f"no key {reward_key!r} among: {keys}; name the primary one with --reward-key"
            files.problem("result.json", "no-primary-reward", detail, "reward left null")
        return
    value = rewards[reward_key]
    row["reward"] = as_float(value)
    if row["reward"] is None:
        files.problem(
            "result.json", "bad-reward", f"{reward_key} is {str(value)[:60]!r}, not a finite number", "no reward"
        )


def rewards_json(rewards: Any) -> str:
    """All rewards as strict JSON."""
    if isinstance(rewards, dict) and len(rewards) < 50 and all(map(_plain, rewards.values())):
        return msgspec.json.encode(rewards).decode()
    return to_json(_finite(rewards))


def _plain(value: Any) -> bool:
    return type(value) in (int, float) and -1e15 < value < 1e15


def _finite(value: Any) -> Any:
    """NaN and infinities as text, so that the column holds strict JSON."""
    if isinstance(value, float) and as_float(value) is None:
        return str(value)
    if isinstance(value, dict):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_finite(v) for v in value]
    return value


def _exception(row: Row, result: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    """The trial's exception, else the one of the deciding step.

    Harbor stops at the first step that fails without a verdict; a step that failed but was
    graded lets the next one run. So the deciding one is the first without a reward, else the last.
    """
    info = as_dict(result.get("exception_info"))
    if not info:
        failed = [step for step in steps if as_dict(step.get("exception_info"))]
        ungraded = [s for s in failed if not as_dict(as_dict(s.get("verifier_result")).get("rewards"))]
        if failed:
            info = as_dict((ungraded or failed[-1:])[0].get("exception_info"))
    if not info:
        return
    message = info.get("exception_message")
    row["exception_type"] = as_text(info.get("exception_type"), 200) or "unknown"
    if isinstance(message, str):
        row["exception_message"] = message[: MESSAGE_CHARS + MARGIN]
    row["exception_cause"] = cause_of(row["exception_type"], message if isinstance(message, str) else None)


def _usage(row: Row, result: dict[str, Any], steps: list[dict[str, Any]]) -> None:
    whole = as_dict(result.get("agent_result"))
    parts = [whole] if whole or not steps else [as_dict(s["agent_result"]) for s in steps if s.get("agent_result")]
    for column in ("n_input_tokens", "n_cache_tokens", "n_output_tokens"):
        if len(parts) == 1:
            row[column] = as_int(parts[0].get(column))
        else:
            total = _summed([None if (n := as_int(p.get(column))) is None else float(n) for p in parts])
            row[column] = as_int(None if total is None else total // 1)
    row["cost_usd"] = _summed([as_float(part.get("cost_usd")) for part in parts])
    if row["n_input_tokens"] is not None or row["n_output_tokens"] is not None:
        row["token_source"] = "harbor"  # noqa: S105  (tokens of text)


def _schema_ok(result: dict[str, Any]) -> bool:
    try:
        msgspec.convert(result, _Documented)
    except msgspec.ValidationError:
        return False
    environment = as_dict(result["config"].get("environment")).get("type")
    rollouts = as_dict(result.get("agent_result")).get("rollout_details")
    known = environment is None or (isinstance(environment, str) and environment in ENVIRONMENTS)
    if not known or not isinstance(rollouts, list | None):
        return False
    rewards = as_dict(result.get("verifier_result")).get("rewards")
    if rewards is None:
        return True
    return isinstance(rewards, dict) and all(as_float(v) is not None for v in rewards.values())


def _given(where: dict[str, Any], names: tuple[str, ...], prefix: str) -> dict[str, Any]:
    """Those of the named settings that are not left at their default."""
    return {prefix + name: where[name] for name in names if where.get(name) is not None}


@lru_cache(maxsize=4096)
def kwargs_json(encoded: bytes) -> str:
    """All trials of an arm have the same kwargs: redact them once."""
    return to_json(msgspec.json.decode(encoded))


def timeout_in_force(limits: Row, base: float) -> float | None:
    """An agent time limit after the job's ceiling and multiplier, seconds."""
    multiplier, ceiling = limits.get("agent_multiplier"), limits.get("agent_ceiling")
    if multiplier is None:
        return None
    return float(multiplier) * (base if ceiling is None else min(base, float(ceiling)))


def config_row(config: dict[str, Any]) -> Row:
    """The columns that a trial's config decides (config.json, or result.json's copy)."""
    agent = as_dict(config.get("agent"))
    environment = as_dict(config.get("environment"))
    verifier = as_dict(config.get("verifier"))
    kwargs = as_dict(agent.get("kwargs"))
    multiplier = as_float(config.get("timeout_multiplier"))
    own = as_float(config.get("agent_timeout_multiplier"))
    override = as_float(agent.get("override_timeout_sec"))
    row: Row = {
        "timeout_multiplier": 1.0 if multiplier is None and config else multiplier,
        "environment": as_text(environment.get("import_path")) or as_text(environment.get("type")),
    }
    if config and row["environment"] is None:
        row["environment"] = "docker"  # Harbor's default, which config.json leaves out
    if kwargs:
        try:
            row["agent_kwargs_json"] = kwargs_json(msgspec.json.encode(kwargs))
        except (msgspec.MsgspecError, OverflowError, RecursionError):
            row["agent_kwargs_json"] = to_json(kwargs)
    if agent.get("model_name"):
        row["model_name"] = as_text(agent["model_name"])
    row["_arm"] = as_text(kwargs.get("arm"), 200)
    row["job_id"] = as_text(config.get("job_id"), 100)
    row["_import_path"] = as_text(agent.get("import_path"))
    row["_install_only"] = config.get("install_only") is True
    row["_agent_multiplier"] = own if own is not None else row["timeout_multiplier"]
    row["_agent_ceiling"] = as_float(agent.get("max_timeout_sec"))
    if override is not None:
        limits = {"agent_multiplier": row["_agent_multiplier"], "agent_ceiling": row["_agent_ceiling"]}
        row["agent_timeout_seconds"] = timeout_in_force(limits, override)
    timeouts = {
        **_given(config, _MULTIPLIERS, ""),
        **_given(agent, _AGENT_TIMEOUTS, "agent."),
        **_given(verifier, _VERIFIER_TIMEOUTS, "verifier."),
    }
    resources = _given(environment, _OVERRIDES, "")
    for name in _POLICIES:
        if environment.get(name) not in (None, "auto"):
            resources[name] = environment[name]
    if timeouts:
        row["timeouts_json"] = json.dumps(dict(sorted(timeouts.items())), default=str)[:2000]
    if resources:
        row["resources_json"] = json.dumps(dict(sorted(resources.items())), default=str)[:2000]
    return row
