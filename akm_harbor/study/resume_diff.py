"""Name what differs between a job as it was planned and as Harbor would plan it now."""

from collections.abc import Iterator, Mapping
from typing import Any

from akm_harbor.trials.values import as_dict, as_list, as_text

_SHOWN = 8
_PLACES = ("trial_name", "job_id", "trials_dir")
_UNORDERED = frozenset({"exclude_exceptions", "include_exceptions"})


def lock_differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Which task changed and which key differs between two lock.json.

    Args:
        old: the job's own.
        new: what Harbor would write today.
    """
    then, now = _tasks(old), _tasks(new)
    lines = [
        f"task {name} changed since the job began (its content digest was {_short(then[name])}, is {_short(now[name])})"
        for name in sorted(then.keys() & now.keys())
        if then[name] != now[name]
    ]
    lines += [f"task {name} was part of the job and no longer is" for name in sorted(then.keys() - now.keys())]
    lines += [f"task {name} is new: it was no part of the job" for name in sorted(now.keys() - then.keys())]
    rest = ("schema_version", "n_concurrent_trials", "retry")
    lines += key_differences({k: old.get(k) for k in rest}, {k: new.get(k) for k in rest})
    seen = dict.fromkeys(lines)
    for key, trial in _trials(old).items():
        other = _trials(new).get(key)
        if other is not None:
            seen |= dict.fromkeys(key_differences(_settings(trial), _settings(other)))
    return _cut(list(seen))


def config_differences(old: list[dict[str, Any]], new: list[dict[str, Any]]) -> list[str]:
    """Which keys of existing trials' config.json differ from the nearest planned one.

    Args:
        old: configs of trials that are there.
        new: configs of the trials that Harbor would plan.
    """
    seen: dict[str, None] = {}
    plans = [{k: v for k, v in config.items() if k not in _PLACES} for config in new]
    for config in old:
        mine = {k: v for k, v in config.items() if k not in _PLACES}
        if mine in plans:
            continue
        nearest = min(
            (key_differences(mine, plan) for plan in plans), key=len, default=["no trial is planned any more"]
        )
        seen |= dict.fromkeys(nearest)
    return _cut(list(seen))


def key_differences(old: Any, new: Any) -> list[str]:
    """One line a key whose value differs."""
    then, now = dict(_flat(old, "")), dict(_flat(new, ""))
    return [
        f"{key} was {_said(then, key)}, is {_said(now, key)}"
        for key in sorted(then.keys() | now.keys())
        if then.get(key) != now.get(key)
    ]


def _said(values: Mapping[str, Any], key: str) -> str:
    if values.get(key) is None:
        return "not set"
    text = repr(values[key])
    return text if len(text) <= 60 else f"{text[:57]}…"


def _flat(value: Any, where: str) -> Iterator[tuple[str, Any]]:
    name = where.rpartition(".")[2]
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _flat(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list) and name not in _UNORDERED:
        for number, item in enumerate(value):
            yield from _flat(item, f"{where}[{number}]")
    elif isinstance(value, list):
        for item in value:
            yield f"{where}: {item}", True
    elif value is not None:
        yield where, value


def _tasks(lock: Mapping[str, Any]) -> dict[str, str]:
    tasks = [as_dict(as_dict(trial).get("task")) for trial in as_list(lock.get("trials"))]
    return {as_text(t.get("path")) or str(t.get("name")): str(t.get("digest")) for t in tasks}


def _trials(lock: Mapping[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    found = {}
    for trial in map(as_dict, as_list(lock.get("trials"))):
        task, agent = as_dict(trial.get("task")), as_dict(trial.get("agent"))
        who = f"{agent.get('import_path') or agent.get('name')} {agent.get('model_name')}"
        arm = as_dict(agent.get("kwargs")).get("arm")
        found[as_text(task.get("path")) or str(task.get("name")), who, str(arm)] = trial
    return found


def _settings(trial: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in trial.items() if key != "task"}


def _short(digest: str) -> str:
    return digest.removeprefix("sha256:")[:12]


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _SHOWN else [*lines[:_SHOWN], f"and {len(lines) - _SHOWN} more differences"]
