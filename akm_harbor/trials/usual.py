"""The usual result.json, decoded straight into what the tables need.

Nearly every trial's result has exactly the types Harbor documents. Decoding those into typed
structures skips tracebacks and rollouts and checks the types on the way, which is several
times as fast as picking through dictionaries. Whatever is unusual is left to `result.py`,
which reads anything; for a usual result both give the same row.
"""

from typing import Annotated, Literal

import msgspec

from akm_harbor.tables.redact import MARGIN
from akm_harbor.trials.causes import cause_of
from akm_harbor.trials.result import (
    ENVIRONMENTS,
    MESSAGE_CHARS,
    Row,
    kwargs_json,
    rewards_json,
    seconds_between,
    task_path,
)
from akm_harbor.trials.values import as_float, as_text, micros


class _Timing(msgspec.Struct, gc=False):
    started_at: str | None = None
    finished_at: str | None = None


class _ModelInfo(msgspec.Struct, gc=False):
    name: str
    provider: str | None = None


class _AgentInfo(msgspec.Struct, gc=False):
    name: str
    version: str
    model_info: _ModelInfo | None = None


type _Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | None


class _AgentResult(msgspec.Struct, gc=False):
    n_input_tokens: _Count = None
    n_cache_tokens: _Count = None
    n_output_tokens: _Count = None
    cost_usd: float | None = None
    rollout_details: list[msgspec.Raw] | None = None


class _VerifierResult(msgspec.Struct, gc=False):
    rewards: dict[str, int | float] | None = None


class _Exception(msgspec.Struct, gc=False):
    exception_type: str
    exception_message: str


class _Agent(msgspec.Struct, gc=False):
    name: str | None = None
    import_path: str | None = None
    model_name: str | None = None
    kwargs: msgspec.Raw = msgspec.Raw()
    # Of an override, only that there is none: one that is set is unusual.
    override_timeout_sec: None = None
    override_setup_timeout_sec: None = None
    max_timeout_sec: None = None


class _Environment(msgspec.Struct, gc=False):
    type: str | None = None
    import_path: str | None = None
    override_cpus: None = None
    override_memory_mb: None = None
    override_storage_mb: None = None
    override_gpus: None = None
    override_tpu: None = None
    override_build_timeout_sec: None = None
    cpu_enforcement_policy: Literal["auto"] | None = None
    memory_enforcement_policy: Literal["auto"] | None = None


class _Verifier(msgspec.Struct, gc=False):
    override_timeout_sec: None = None
    max_timeout_sec: None = None


class _Config(msgspec.Struct, gc=False):
    agent: _Agent
    environment: _Environment
    verifier: _Verifier
    install_only: bool = False
    timeout_multiplier: int | float | None = None
    agent_timeout_multiplier: None = None
    verifier_timeout_multiplier: None = None
    agent_setup_timeout_multiplier: None = None
    environment_build_timeout_multiplier: None = None
    job_id: str | None = None
    source_trial: None = None


class _Result(msgspec.Struct, gc=False):
    id: str
    task_name: str
    trial_name: str
    trial_uri: str
    task_id: dict[str, str | None]
    task_checksum: str
    config: _Config
    agent_info: _AgentInfo
    started_at: str
    finished_at: str
    source: str | None = None
    agent_result: _AgentResult | None = None
    verifier_result: _VerifierResult | None = None
    exception_info: _Exception | None = None
    environment_setup: _Timing | None = None
    agent_setup: _Timing | None = None
    agent_execution: _Timing | None = None
    verifier: _Timing | None = None
    step_results: None = None


_decode = msgspec.json.Decoder(_Result).decode
_NO_USAGE = _AgentResult()
_BRACE = ord("{")


def usual_row(data: bytes, reward_key: str) -> Row | None:
    """The row of a usual result, with its private columns; None when anything is unusual.

    Its `_naive` names a time that is worth `note_naive`.
    """
    try:
        result = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    row = _columns(result)
    return row if row is not None and _outcome(row, result, reward_key) and _setup(row, result.config) else None


def _columns(r: _Result) -> Row | None:
    started, naive = micros(r.started_at)
    finished, naive_too = micros(r.finished_at)
    info, usage = r.agent_info, r.agent_result or _NO_USAGE
    if started is None or finished is None:
        return None
    if not (r.id and r.trial_name and r.task_name and info.name):
        return None
    model = info.model_info
    known = usage.n_input_tokens is not None or usage.n_output_tokens is not None
    return {
        "trial_id": r.id,
        "trial_name": r.trial_name,
        "task_name": r.task_name,
        "task_checksum": r.task_checksum or None,
        "task_path": task_path(r.task_id),
        "source": r.source or None,
        "agent_name": info.name,
        "agent_version": info.version or None,
        "model_name": None
        if model is None
        else (f"{model.provider}/{model.name}" if model.provider and "/" not in model.name else model.name or None),
        "started_at": started,
        "finished_at": finished,
        "environment_seconds": _took(r.environment_setup),
        "setup_seconds": _took(r.agent_setup),
        "agent_seconds": _took(r.agent_execution),
        "verifier_seconds": _took(r.verifier),
        "n_input_tokens": usage.n_input_tokens,
        "n_cache_tokens": usage.n_cache_tokens,
        "n_output_tokens": usage.n_output_tokens,
        "cost_usd": as_float(usage.cost_usd),
        "token_source": "harbor" if known else None,
        "schema_ok": True,
        "_naive": "started_at" if naive else "finished_at" if naive_too else None,
    }


def _took(span: _Timing | None) -> float | None:
    return None if span is None else seconds_between(span.started_at, span.finished_at)


def _outcome(row: Row, r: _Result, reward_key: str) -> bool:
    """Rewards and exception; False when they are unusual."""
    for name in ("agent_seconds", "verifier_seconds"):
        if row[name] is not None and row[name] < 0:
            return False
    rewards = r.verifier_result.rewards if r.verifier_result is not None else None
    if rewards is not None:
        if reward_key not in rewards:
            return False
        row["rewards_json"] = rewards_json(rewards)
        row["reward_key"] = reward_key
        row["reward"] = as_float(rewards[reward_key])
        if row["reward"] is None:
            return False
    if r.exception_info is not None:
        kind, message = r.exception_info.exception_type[:200], r.exception_info.exception_message
        row["exception_type"] = kind or "unknown"
        row["exception_message"] = message[: MESSAGE_CHARS + MARGIN]
        row["exception_cause"] = cause_of(row["exception_type"], message)
    return True


def _setup(row: Row, c: _Config) -> bool:
    """What the config decides; False when it is unusual."""
    agent, environment = c.agent, c.environment
    row["timeout_multiplier"] = 1.0 if c.timeout_multiplier is None else float(c.timeout_multiplier)
    row["environment"] = environment.import_path or environment.type or "docker"
    kwargs = bytes(agent.kwargs)
    if (kwargs and kwargs[0] != _BRACE) or (environment.type is not None and environment.type not in ENVIRONMENTS):
        return False
    row["_arm"] = None
    if kwargs and kwargs != b"{}":
        try:
            row["agent_kwargs_json"] = kwargs_json(kwargs)
            if b'"arm"' in kwargs:
                row["_arm"] = as_text(msgspec.json.decode(kwargs).get("arm"), 200)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False  # skipping them, the decoder looked at less: a number like 1e400, bytes that are no UTF-8
    if agent.model_name:
        row["model_name"] = agent.model_name
    row["_agent_multiplier"] = row["timeout_multiplier"]
    row["_agent_ceiling"] = None
    row["job_id"] = c.job_id or None
    row["_install_only"] = c.install_only
    row["_import_path"] = agent.import_path
    return True
