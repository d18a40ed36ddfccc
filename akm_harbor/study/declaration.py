"""arms/studies.toml: which studies there are, on which tasks, by which arms, how often."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from akm_harbor.errors import UsageError
from akm_harbor.json_toml import parse_toml
from akm_harbor.resources import resource

DECLARATIONS = "studies.toml"
AGENTS = ("ControlOpenCode", "AkmOpenCode")
ENVIRONMENTS: Mapping[str, str] = {"sandbox": "akm_harbor:SandboxEnvironment"}
"""Environments of ours; any other name is Harbor's own, as for `harbor run -e`."""


@dataclass(frozen=True, slots=True)
class ArmSpec:
    """One arm: an agent and the kwargs that make it this arm."""

    name: str
    agent: str
    about: str = ""
    kwargs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def takes_bundle(self) -> bool:
        """Whether the arm is given a task's notes in any form, and leaves open which."""
        given = self.agent == "AkmOpenCode" or self.kwargs.get("context") == "bundle"
        return given and "bundle" not in self.kwargs


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars per million tokens.

    Attributes:
        input: prompt tokens that were not cached.
        cache: prompt tokens read from a cache.
        output: tokens the model wrote.
        source: where the numbers come from.
    """

    input: float
    cache: float
    output: float
    source: str

    def dollars(self, n_input: float, n_cache: float, n_output: float) -> float:
        """Price of a usage; `n_input` includes the cached tokens, as in Harbor's results."""
        uncached = max(n_input - n_cache, 0.0)
        return (uncached * self.input + n_cache * self.cache + n_output * self.output) / 1e6


@dataclass(frozen=True, slots=True)
class Judge:
    """A model that scores trials, priced with them; tokens are those of one call."""

    model: str
    calls_per_trial: float
    input_tokens: float
    output_tokens: float


@dataclass(frozen=True, slots=True)
class Study:
    """One study, complete.

    Attributes:
        dataset: `akm-tasks-SLICE[@VERSION]` or `akm-tasks` (with `tasks`) from the corpus, else
            `NAME@VERSION` from Harbor's registry, or a folder of tasks (with a slash).
        tasks: names or globs of tasks to take; all when empty.
        model: `provider/model`.
        arms: the arms; both, or all, run in one job, so that they interleave.
        baseline: the arm that the others are compared with.
        attempts: attempts of each task by each arm.
        bundle: the bundle of arms that get one, where tasks name none of their own.
        policy: a scripted model's policy, beside the declarations or shipped; then no real model is asked.
        price: overrides the price table.
        agent_timeout_sec: the agent's time limit on every arm; None leaves it to the task.
        n_tasks: how many tasks a registry's dataset has, for planning and pricing.
        allowed_hosts: hosts every arm may reach where a task restricts the network.
    """

    name: str
    about: str
    dataset: str
    model: str
    arms: tuple[ArmSpec, ...]
    baseline: str
    attempts: int
    concurrent: int
    environment: str
    tasks: tuple[str, ...] = ()
    bundle: str | None = None
    policy: str | None = None
    price: Price | None = None
    judge: Judge | None = None
    agent_timeout_sec: float | None = None
    allowed_hosts: tuple[str, ...] = ()
    n_tasks: int | None = None
    opencode_config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def treatments(self) -> tuple[str, ...]:
        """Names of the arms that are compared with the baseline."""
        return tuple(arm.name for arm in self.arms if arm.name != self.baseline)


_STUDY_KEYS = {
    "about", "dataset", "tasks", "model", "arms", "baseline", "attempts", "concurrent", "environment", "bundle",
    "policy", "price", "judge", "agent_timeout_sec", "allowed_hosts", "opencode_config", "n_tasks",
}  # fmt: skip
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "about": str, "dataset": str, "model": str, "baseline": str, "environment": str, "bundle": str, "policy": str,
    "tasks": list, "arms": list, "allowed_hosts": list, "price": dict, "judge": dict, "opencode_config": dict,
    "attempts": int, "concurrent": int, "n_tasks": int, "agent_timeout_sec": (int, float),
}  # fmt: skip


def declarations_file() -> Path:
    """The shipped declarations."""
    return resource("arms", DECLARATIONS)


def load_studies(path: Path | None = None) -> dict[str, Study]:
    """Read the declarations: study name -> study.

    Args:
        path: a declarations file; default the shipped one.

    Raises:
        UsageError: not readable, or something in it cannot be meant; the message names the entry.
    """
    path = path or declarations_file()
    try:
        table = parse_toml(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot be read as TOML: {error}", path=path) from None
    _known(path, "", table, {"defaults", "arms", "studies"})
    defaults = table.get("defaults", {})
    _known(path, "[defaults]", defaults, _STUDY_KEYS)
    for part in ("arms", "studies"):
        if not isinstance(table.get(part, {}), dict):
            raise UsageError(f"[{part}] must be a table", path=path)
    if not table.get("studies"):
        raise UsageError("declares no study", path=path, hint="Write [studies.NAME] tables, like arms/studies.toml.")
    arms = {name: _arm(path, name, entry) for name, entry in table.get("arms", {}).items()}
    for name, entry in table["studies"].items():
        _known(path, f"[studies.{name}]", entry, _STUDY_KEYS)
    return {name: _study(path, name, {**defaults, **entry}, arms) for name, entry in table["studies"].items()}


def find_study(name: str, path: Path | None = None) -> Study:
    """One study by its name.

    Raises:
        UsageError: there is none of that name; the near ones are named.
    """
    studies = load_studies(path)
    if name not in studies:
        near = get_close_matches(name, studies, n=3) or sorted(studies)
        raise UsageError(
            f"no study {name!r}",
            path=path or declarations_file(),
            hint=f"There is {', '.join(near)}. --declarations FILE reads studies of your own.",
        )
    return studies[name]


def changed(study: Study, *, model: str | None = None, attempts: int | None = None) -> Study:
    """The study with another model or number of attempts.

    Raises:
        UsageError: the model has no provider, or a scripted study is given a real model.
    """
    if model is not None and "/" not in model.strip("/"):
        raise UsageError(f"{model!r} has no provider", hint="Write provider/model, e.g. anthropic/claude-sonnet-4-5.")
    if model is not None and study.policy and model != study.model:
        raise UsageError(
            f"{study.name} is played by a scripted model, {study.model}, not by {model}",
            hint="Choose another study for a real model: akm-harbor arms list.",
        )
    return replace(study, model=model or study.model, attempts=attempts or study.attempts)


def _known(path: Path, where: str, entry: Any, known: set[str]) -> None:
    if not isinstance(entry, dict):
        raise UsageError(f"{where or 'the file'} must be a table", path=path)
    for key in entry:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            meant = f" Did you mean {near[0]!r}?" if near else f" There are {', '.join(sorted(known))}."
            raise UsageError(f"{where} has an unknown key {key!r}.{meant}".strip(), path=path)


def _arm(path: Path, name: str, entry: Any) -> ArmSpec:
    where = f"[arms.{name}]"
    _known(path, where, entry, {"agent", "about", "kwargs"})
    if entry.get("agent") not in AGENTS:
        raise UsageError(f"{where} agent must be one of {', '.join(AGENTS)}", path=path)
    if not isinstance(entry.get("kwargs", {}), dict) or "arm" in entry.get("kwargs", {}):
        raise UsageError(f"{where} kwargs must be a table without `arm`: the name is the label", path=path)
    return ArmSpec(name, entry["agent"], str(entry.get("about", "")), dict(entry.get("kwargs", {})))


def _study(path: Path, name: str, entry: dict[str, Any], arms: Mapping[str, ArmSpec]) -> Study:
    where = f"[studies.{name}]"
    _known(path, where, entry, _STUDY_KEYS)
    for key, value in entry.items():
        if not isinstance(value, _KINDS[key]) or isinstance(value, bool):
            raise UsageError(f"{where} {key} = {value!r} is of the wrong kind", path=path)
    for key in ("dataset", "model", "arms", "attempts", "concurrent", "environment"):
        if not entry.get(key):
            wrong = f"{key} = {entry[key]!r} cannot be meant" if key in entry else f"lacks {key}"
            raise UsageError(f"{where} {wrong}", path=path)
    for arm in entry["arms"]:
        if not isinstance(arm, str) or arm not in arms:
            near = get_close_matches(str(arm), arms, n=1)
            hint = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(arms)}."
            raise UsageError(f"{where} names an arm {arm!r} that is not declared", path=path, hint=hint)
    if len(set(entry["arms"])) != len(entry["arms"]) or len(entry["arms"]) < 2:
        raise UsageError(f"{where} needs at least two different arms", path=path)
    baseline = entry.get("baseline", entry["arms"][0])
    if baseline not in entry["arms"]:
        raise UsageError(f"{where} baseline {baseline!r} is none of its arms", path=path)
    chosen = tuple(arms[arm] for arm in entry["arms"])
    if "policy" in entry and (path.parent / entry["policy"]).is_file():
        entry["policy"] = str((path.parent / entry["policy"]).absolute())
    values = {key: entry[key] for key in ("about", "bundle", "policy", "agent_timeout_sec", "n_tasks") if key in entry}
    return Study(
        name=name,
        about=values.pop("about", ""),
        dataset=entry["dataset"],
        model=entry["model"],
        arms=chosen,
        baseline=baseline,
        attempts=entry["attempts"],
        concurrent=entry["concurrent"],
        environment=entry["environment"],
        tasks=tuple(map(str, entry.get("tasks", ()))),
        price=_price(path, where, entry["price"]) if "price" in entry else None,
        judge=_judge(path, where, entry["judge"]) if "judge" in entry else None,
        allowed_hosts=tuple(map(str, entry.get("allowed_hosts", ()))),
        opencode_config=entry.get("opencode_config", {}),
        **values,
    )


def _numbers(path: Path, where: str, entry: Mapping[str, Any], names: tuple[str, ...]) -> list[float]:
    for name in names:
        value = entry.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise UsageError(f"{where} needs {name}, a number that is not negative", path=path)
    return [float(entry[name]) for name in names]


def _price(path: Path, where: str, entry: Mapping[str, Any]) -> Price:
    _known(path, f"{where} price", entry, {"input", "cache", "output"})
    full = {"cache": entry.get("input"), **entry}
    given, cached, written = _numbers(path, f"{where} price", full, ("input", "cache", "output"))
    return Price(given, cached, written, source=path.name)


def _judge(path: Path, where: str, entry: Mapping[str, Any]) -> Judge:
    names = ("calls_per_trial", "input_tokens", "output_tokens")
    _known(path, f"{where} judge", entry, {"model", *names})
    if not isinstance(entry.get("model"), str):
        raise UsageError(f"{where} judge needs a model", path=path)
    calls, read, written = _numbers(path, f"{where} judge", entry, names)
    return Judge(entry["model"], calls, read, written)
