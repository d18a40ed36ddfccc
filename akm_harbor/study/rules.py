"""The rules for a job file, one function each: what makes arms comparable, and what Harbor would not tell."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.study.yaml_lines import KeyPath

TREATMENT_KWARGS = frozenset(
    {"arm", "context", "bundle", "title", "inject", "tools", "write_gate", "index", "selfcheck"}
)
"""Kwargs that make an arm what it is; everything else must be the same on all of them."""

_PLACEHOLDER = re.compile(
    r"<[A-Z][A-Z0-9_ /-]*>|\{\{.*?\}\}|\b(?:TODO|TBD|FIXME|CHANGE[_-]?ME|REPLACE[_-]?ME|PLACEHOLDER|YOUR[_-][A-Z_-]+)\b"
    r"|^(?:PROVIDER|P)/(?:MODEL|M)$|^\.\.\.$|^xxx+$"
)
_SENSITIVE = re.compile(r"KEY|SECRET|TOKEN|PASSWORD|CREDENTIAL|AUTH", re.IGNORECASE)
_REFERENCE = re.compile(r"^\$\{\w+(?::-.*)?\}$")
_EXACT = re.compile(r"^\d+\.\d+\.\d+(?:[-+][0-9A-Za-z.-]+)?$")
_OURS = ("akm_harbor:", "akm_harbor.")

type Job = Mapping[str, Any]
type Agents = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Mistake:
    """One mistake, where it stands, and what to write instead."""

    path: KeyPath
    message: str
    hint: str = ""


def _leaves(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, (*path, str(key)))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _leaves(inner, (*path, number))
    else:
        yield path, value


def placeholders(data: Job) -> Iterator[Mistake]:
    """Text that somebody was to replace."""
    for path, value in _leaves(data):
        if isinstance(value, str) and _PLACEHOLDER.search(value):
            yield Mistake(path, f"{value!r} is a placeholder", "Write the real value.")


# Paths


def paths(data: Job, root: Path | None) -> Iterator[Mistake]:
    """Paths that mean another place in another working folder, and paths with nothing there."""
    for path, value in _paths_of(data):
        text = str(value)
        if not Path(text).expanduser().is_absolute() and not text.startswith("~"):
            if root is None:
                yield Mistake(
                    path,
                    f"{text!r} is taken from the folder Harbor happens to be started in, also when it resumes",
                    "Write an absolute path, or say where it will be run from: --root FOLDER.",
                )
                continue
            place = root / text
        else:
            place = Path(text).expanduser()
        if path[-1] != "jobs_dir" and not place.exists():
            yield Mistake(path, f"nothing is at {place}")


def _paths_of(data: Job) -> Iterator[tuple[KeyPath, Any]]:
    yield ("jobs_dir",), data.get("jobs_dir", "jobs")
    for group, keys in (("datasets", ("path", "registry_path")), ("tasks", ("path",))):
        for number, entry in enumerate(_dicts(data.get(group))):
            if group == "tasks" and entry.get("git_url"):
                continue
            yield from (((group, number, key), entry[key]) for key in keys if entry.get(key) and not entry.get("repo"))
    for number, extra in enumerate(data.get("extra_instruction_paths") or []):
        yield ("extra_instruction_paths", number), extra
    environment = data.get("environment")
    if isinstance(environment, dict):
        for number, mount in enumerate(_dicts(environment.get("mounts"))):
            if mount.get("type") == "bind" and mount.get("source"):
                yield ("environment", "mounts", number, "source"), mount["source"]
        for number, extra in enumerate(environment.get("extra_docker_compose") or []):
            yield ("environment", "extra_docker_compose", number), extra
    for number, agent in enumerate(_dicts(data.get("agents"))):
        kwargs = agent.get("kwargs")
        for key in ("toolchain", "bundles_dir", "prompt_template_path"):
            if isinstance(kwargs, dict) and kwargs.get(key):
                yield ("agents", number, "kwargs", key), kwargs[key]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


# Arms


def label(agent: Mapping[str, Any]) -> str:
    """The arm's label, as the agent itself would say it."""
    kwargs = agent.get("kwargs")
    given = kwargs.get("arm") if isinstance(kwargs, dict) else None
    if given:
        return str(given)
    return "akm" if str(agent.get("import_path", "")).endswith("AkmOpenCode") else "control"


def arms(agents: Agents) -> Iterator[Mistake]:
    """Two arms or more in one job, each with a label and a set of kwargs of its own."""
    if len(agents) < 2:
        message = "one arm is no comparison" if agents else "no arms"
        yield Mistake(("agents",), message, "Put all arms into one job: then they interleave, task by task.")
    labels: dict[str, int] = {}
    contents: dict[str, int] = {}
    for number, agent in enumerate(agents):
        name = label(agent)
        at: KeyPath = ("agents", number, "kwargs", "arm")
        if name in labels:
            yield Mistake(at, f"arm {name!r} is agents[{labels[name]}] already", "Give each arm its own `arm:` label.")
        labels.setdefault(name, number)
        content = json.dumps(_without_label(agent, name), sort_keys=True, default=str)
        if content in contents:
            other = contents[content]
            yield Mistake(
                ("agents", number), f"is the same as agents[{other}] but for its label: two samples of one arm"
            )
        contents.setdefault(content, number)


def _without_label(agent: Mapping[str, Any], name: str) -> Any:
    """The entry with its label, and its label in a base URL, taken out."""
    kwargs = agent.get("kwargs")
    plain = {**agent, "kwargs": {k: v for k, v in kwargs.items() if k != "arm"} if isinstance(kwargs, dict) else kwargs}
    return json.loads(json.dumps(plain, default=str).replace(f"/arm/{name}/", "/arm/*/"))


def equal_but_for_the_treatment(agents: Agents) -> Iterator[Mistake]:
    """The same model, opencode config, timeouts, hosts, variables … on every arm."""
    if len(agents) < 2:
        return
    first = _without_label(agents[0], label(agents[0]))
    for number, agent in enumerate(agents[1:], 1):
        mine = _without_label(agent, label(agent))
        for key in sorted({*first, *mine} - {"import_path", "name", "kwargs"}):
            if first.get(key) != mine.get(key):
                yield from _differences(("agents", number, key), first.get(key), mine.get(key))
        kwargs = [side.get("kwargs") if isinstance(side.get("kwargs"), dict) else {} for side in (first, mine)]
        for key in sorted({*kwargs[0], *kwargs[1]} - TREATMENT_KWARGS):
            if kwargs[0].get(key) != kwargs[1].get(key):
                yield from _differences(("agents", number, "kwargs", key), kwargs[0].get(key), kwargs[1].get(key))


def _differences(path: KeyPath, one: Any, other: Any) -> Iterator[Mistake]:
    """The innermost keys that differ, so that the line is the right one."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            if one.get(key) != other.get(key):
                yield from _differences((*path, str(key)), one.get(key), other.get(key))
    else:
        yield _unequal(path, one, other)


def _unequal(path: KeyPath, one: Any, other: Any) -> Mistake:
    shown = [json.dumps(value, default=str)[:60] if value is not None else "not set" for value in (one, other)]
    return Mistake(
        path,
        f"differs between the arms: {shown[0]} in agents[0], {shown[1]} here",
        "Arms may differ in the agent and its treatment kwargs only.",
    )


def models(agents: Agents) -> Iterator[Mistake]:
    """Every arm names its model, with the provider."""
    for number, agent in enumerate(agents):
        model = agent.get("model_name")
        if not model:
            yield Mistake(("agents", number, "model_name"), "no model", "Write model_name: PROVIDER/NAME.")
        elif isinstance(model, str) and "/" not in model.strip("/"):
            yield Mistake(("agents", number, "model_name"), f"{model!r} has no provider", "Write provider/model.")


def kwargs(agents: Agents) -> Iterator[Mistake]:
    """Our agents' kwargs, by their own declaration; of other agents nothing is known."""
    for number, agent in enumerate(agents):
        at: KeyPath = ("agents", number)
        where = agent.get("import_path")
        if where is None:
            yield Mistake(at, "is not one of this package's agents, so nothing shows whether the treatment arrived",
                          "Use import_path: akm_harbor:ControlOpenCode or akm_harbor:AkmOpenCode.")  # fmt: skip
            continue
        given = agent.get("kwargs") or {}
        if str(where).startswith(_OURS) and isinstance(given, dict):
            yield from _own_kwargs(at, str(where), given)
        version = given.get("version") if isinstance(given, dict) else None
        if version is not None and not _EXACT.match(str(version)):
            yield Mistake((*at, "kwargs", "version"), f"{version!r} is no exact version", "Write e.g. 1.18.33.")


def _own_kwargs(at: KeyPath, where: str, given: Mapping[str, Any]) -> Iterator[Mistake]:
    import akm_harbor
    from akm_harbor.agent import arms as agents
    from akm_harbor.agent.compat import framework_names
    from akm_harbor.agent.config import check_job_config

    name = where.rpartition(":")[2]
    cls = getattr(agents, name, None)
    if cls is None or name not in akm_harbor.__all__:
        near = get_close_matches(name, ("ControlOpenCode", "AkmOpenCode"), n=1)
        yield Mistake(
            (*at, "import_path"), f"there is no {where}", f"Did you mean akm_harbor:{near[0]}?" if near else ""
        )
        return
    from pydantic import ValidationError

    known = {
        key: value
        for key, value in given.items()
        if key not in framework_names(cls) - set(cls.options_model.model_fields)
    }
    try:
        options = cls.options_model.model_validate(known)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False, include_context=False):
            key = str(problem["loc"][0]) if problem["loc"] else ""
            near = get_close_matches(key, cls.options_model.model_fields, n=1)
            hint = f"Did you mean `{near[0]}`?" if near else f"docs/agents.md lists the kwargs of {name}."
            unknown = problem["type"] == "extra_forbidden"
            message = f"{name} has no kwarg {key!r}" if unknown else str(problem["msg"])
            yield Mistake((*at, "kwargs", *map(str, problem["loc"])), message, hint if unknown else "")
        return
    try:
        check_job_config(options.opencode_config or {}, title=options.title, treatment=cls.TREATMENT)
    except AkmHarborError as error:
        yield Mistake((*at, "kwargs", "opencode_config"), error.message, error.hint or "")


def literal_keys(agents: Agents) -> Iterator[Mistake]:
    """An API key written out in opencode's settings, even one that means nothing."""
    for number, agent in enumerate(agents):
        given = agent.get("kwargs")
        config = given.get("opencode_config") if isinstance(given, dict) else None
        for path, value in _leaves(config, ("agents", number, "kwargs", "opencode_config")):
            if path[-1] == "apiKey" and isinstance(value, str) and not value.startswith(("{env:", "{file:")):
                yield Mistake(
                    path,
                    f"{value!r}: Harbor 0.26 takes it for the real key and blanks the word out of every file of a "
                    "trial, its config among them, so that the job cannot be resumed",
                    "Write {env:NAME}, or leave apiKey out where the server wants none.",
                )


def environments(agents: Agents) -> Iterator[Mistake]:
    """Variables that would leak, or whose value Harbor would blank out of every result."""
    for number, agent in enumerate(agents):
        given = agent.get("env")
        for key, value in given.items() if isinstance(given, dict) else ():
            text = str(value)
            if not _SENSITIVE.search(str(key)) or _REFERENCE.match(text):
                continue
            if len(text) < 8:
                message = f"Harbor blanks {text!r} out of every file of a trial because of the variable's name"
                hint = "Rename the variable, or use a kwarg."
            else:
                message, hint = "looks like a secret written out", f"Write ${{{key}}} and set it in the environment."
            yield Mistake(("agents", number, "env", str(key)), message, hint)


# The job


def job(data: Job) -> Iterator[Mistake]:
    """Settings of the job that change what is measured."""
    retry = data.get("retry")
    retries = retry.get("max_retries", 0) if isinstance(retry, dict) else 0
    if isinstance(retries, int) and retries > 0:
        yield Mistake(
            ("retry", "max_retries"),
            f"{retries} retries would draw again where a trial came out badly, and leave no trace",
            "Write 0; the report counts errors under every policy.",
        )
    attempts = data.get("n_attempts", 1)
    if isinstance(attempts, int) and attempts < 1:
        yield Mistake(("n_attempts",), f"{attempts} attempts measure nothing", "Write 1 or more.")
    if data.get("install_only"):
        yield Mistake(("install_only",), "nothing would be measured", "Leave it out.")
    verifier = data.get("verifier")
    if isinstance(verifier, dict) and verifier.get("disable"):
        yield Mistake(("verifier", "disable"), "without a verifier there are no rewards", "Leave it out.")
    if not data.get("datasets") and not data.get("tasks"):
        yield Mistake((), "no tasks: neither datasets nor tasks", "Name a dataset.")
    for number, entry in enumerate(_dicts(data.get("datasets"))):
        if entry.get("name") and not (entry.get("version") or entry.get("ref")):
            yield Mistake(
                ("datasets", number, "name"), "no version: its tasks may change between runs", "Write version:."
            )


def tasks(data: Job, root: Path | None) -> Iterator[Mistake]:
    """Task names that select nothing in a local dataset."""
    for number, entry in enumerate(_dicts(data.get("datasets"))):
        folder = entry.get("path")
        if not isinstance(folder, str) or not isinstance(entry.get("task_names"), list):
            continue
        place = (root or Path()) / Path(folder).expanduser()
        if not place.is_dir():
            continue
        there = sorted(path.name for path in place.iterdir() if (path / "task.toml").is_file())
        for position, wanted in enumerate(entry["task_names"]):
            if not any(fnmatch(name, str(wanted)) for name in there):
                near = get_close_matches(str(wanted), there, n=1)
                at = ("datasets", number, "task_names", position)
                yield Mistake(at, f"no task {wanted!r} in {place}", f"Did you mean {near[0]}?" if near else "")
