"""From a declared study to a Harbor job file: the same for both arms but for what makes the arm."""

import difflib
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.agent.pins import load_pins
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.json_toml import parse_json
from akm_harbor.resources import data_root
from akm_harbor.study.declaration import DECLARATIONS, ENVIRONMENTS, ArmSpec, Study, load_studies

CORPUS = "akm-tasks"
SCRIPTED_URL = "http://127.0.0.1:18080"
"""Where a job file expects the scripted model; `ab run` puts the port it got."""

Job = dict[str, Any]


def job_of(study: Study, *, root: Path | None = None, jobs_dir: Path | None = None, name: str | None = None) -> Job:
    """The Harbor job of a study.

    Args:
        study: the study.
        root: folder that holds tasks/, written into the job as an absolute path; None writes paths
            relative to it, for the shipped files.
        jobs_dir: where the job's folder goes; default `jobs` in the working folder.
        name: the job's name; default the study's.

    Returns:
        What the job file holds, in the order of its keys.

    Raises:
        AkmHarborError: the study's dataset, or a task of it, is not in the corpus.
    """
    environment = study.environment
    kind = {"import_path": ENVIRONMENTS[environment]} if environment in ENVIRONMENTS else {"type": environment}
    return {
        "job_name": name or study.name,
        "jobs_dir": str(jobs_dir or "jobs"),
        "n_attempts": study.attempts,
        "n_concurrent_trials": study.concurrent,
        # A retry is another draw where the first came out badly: errors are counted, not drawn again.
        "retry": {"max_retries": 0},
        "environment": kind,
        "agents": [agent_of(study, arm) for arm in study.arms],
        "datasets": [dataset_of(study, root)],
    }


def agent_of(study: Study, arm: ArmSpec) -> Job:
    """One arm as an entry of `agents`."""
    kwargs: Job = {"arm": arm.name, "version": load_pins()["opencode"].version, **arm.kwargs}
    if study.bundle and arm.takes_bundle:
        kwargs["bundle"] = study.bundle
    config = _scripted_provider(study, arm) if study.policy else dict(study.opencode_config)
    if config:
        kwargs["opencode_config"] = config
    agent: Job = {"import_path": f"akm_harbor:{arm.agent}", "model_name": study.model}
    if study.policy:
        agent["skip_model_parsing"] = True  # no public provider: spares Harbor 0.25 and newer the search for one
    if study.agent_timeout_sec is not None:
        agent["override_timeout_sec"] = study.agent_timeout_sec
    if study.allowed_hosts:
        agent["extra_allowed_hosts"] = list(study.allowed_hosts)
    return agent | {"kwargs": kwargs}


def _scripted_provider(study: Study, arm: ArmSpec) -> Job:
    """Settings of opencode for the scripted model, which tells arms apart by their base URL."""
    provider, _, model = study.model.partition("/")
    price = study.price
    cost = {"input": price.input, "output": price.output, "cache_read": price.cache} if price else {}
    declared = {"limit": {"context": 100_000, "output": 8_000}} | ({"cost": cost} if cost else {})
    # No apiKey: Harbor 0.26 takes a literal one for the real key and blanks it out of every file of a trial.
    options = {"baseURL": f"{SCRIPTED_URL}/arm/{arm.name}/v1"}
    return {
        "provider": {provider: {"npm": "@ai-sdk/openai-compatible", "options": options, "models": {model: declared}}}
    }


# Datasets


def dataset_of(study: Study, root: Path | None) -> Job:
    """The study's entry of `datasets`.

    Corpus datasets are written as the tasks folder with the names of their tasks, because paths in
    a Harbor registry are taken from the working folder, wherever the registry lies.
    """
    if is_corpus(study):
        folder = str(root / "tasks") if root else "tasks"
        return {"path": folder, "task_names": corpus_tasks(study)}
    if "/" in study.dataset:
        folder = str(Path(study.dataset).expanduser().absolute())
        return {"path": folder} | ({"task_names": list(study.tasks)} if study.tasks else {})
    name, _, version = study.dataset.partition("@")
    if not version:
        raise UsageError(
            f"dataset {study.dataset!r} has no version", hint="Write NAME@VERSION: a study names what it ran."
        )
    entry: Job = {"name": name, "version": version}
    return entry | ({"task_names": list(study.tasks)} if study.tasks else {})


def is_corpus(study: Study) -> bool:
    """Whether the study's tasks lie in tasks/."""
    name = study.dataset.partition("@")[0]
    return name == CORPUS or name.startswith(f"{CORPUS}-")


def corpus_tasks(study: Study) -> list[str]:
    """Names of the corpus tasks a study runs, sorted.

    Raises:
        AkmHarborError: no such dataset or version in tasks/registry.json, or a name that fits no task.
    """
    entries = _registered(study)
    names = sorted({str(task["name"]) for entry in entries for task in entry["tasks"]})
    if not study.tasks:
        return names
    for wanted in study.tasks:
        if not any(fnmatch(name, wanted) for name in names):
            near = difflib.get_close_matches(wanted, names, n=1)
            hint = f"Did you mean {near[0]}?" if near else "`akm-harbor corpus register` releases new tasks."
            raise UsageError(f"{study.name}: no task of {study.dataset} is called {wanted!r}", hint=hint)
    return [name for name in names if any(fnmatch(name, wanted) for wanted in study.tasks)]


def count_tasks(study: Study) -> int | None:
    """How many tasks a study has; None where only Harbor's registry knows."""
    if is_corpus(study):
        return len(corpus_tasks(study))
    if "/" in study.dataset:
        folder = Path(study.dataset).expanduser()
        names = [path.name for path in folder.iterdir() if (path / "task.toml").is_file()] if folder.is_dir() else []
        return sum(1 for name in names if not study.tasks or any(fnmatch(name, wanted) for wanted in study.tasks))
    globs = any(set("*?[") & set(name) for name in study.tasks)
    return study.n_tasks if globs or not study.tasks else len(study.tasks)


def _registered(study: Study) -> list[Mapping[str, Any]]:
    """The registry's entries that a study's dataset means: one, or for `akm-tasks` the newest of each slice."""
    path = data_root() / "tasks" / "registry.json"
    try:
        registry: list[dict[str, Any]] = parse_json(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise AkmHarborError(f"cannot be read ({error})", path=path) from None
    name, _, version = study.dataset.partition("@")
    newest: dict[str, dict[str, Any]] = {}
    for entry in registry:
        fits = name in {CORPUS, entry["name"]} and version in {"", entry["version"]}
        if fits and _order(entry["version"]) >= _order(newest.get(entry["name"], {}).get("version", "")):
            newest[entry["name"]] = entry
    if not newest:
        known = ", ".join(f"{entry['name']}@{entry['version']}" for entry in registry)
        raise UsageError(f"{study.name}: no dataset {study.dataset!r}", path=path, hint=f"There is {known}.")
    return list(newest.values())


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split(".")) if version else ()


def dataset_label(study: Study) -> str:
    """The dataset with its version, for people."""
    if not is_corpus(study):
        return study.dataset
    return ", ".join(f"{entry['name']}@{entry['version']}" for entry in _registered(study))


# Files


def to_text(study: Study, job: Job) -> str:
    """The job file: what it is, how to run it, what is pinned; then the job."""
    pins = load_pins()
    parts = ", ".join(f"{spec.package} {spec.version}" for spec in pins.values())
    arms = [f"#   {arm.name}: {arm.about}" for arm in study.arms]
    lines = [
        f"# {study.about or study.name}",
        "#",
        f"# {dataset_label(study)}; {study.attempts} attempt{'s' * (study.attempts > 1)} by each arm:",
        *arms,
        f"# Toolchain (agents/pins.toml): {parts}",
        "#",
        f"# Made by `akm-harbor arms render` from {DECLARATIONS}; edit there. To run it:",
        *_how_to_run(study),
    ]
    return "\n".join(lines) + "\n" + yaml.safe_dump(job, sort_keys=False, allow_unicode=True, width=110)


def _how_to_run(study: Study) -> list[str]:
    lines = [
        f"#   akm-harbor ab run {study.name} --model {study.model}",
        "# or by hand, in the folder that holds tasks/:",
    ]
    if study.policy:
        policy, port = Path(study.policy).name, SCRIPTED_URL.rpartition(":")[2]
        lines.append(f"#   akm-harbor model serve arms/{policy} --port {port}     (in another terminal)")
    return [*lines, f"#   harbor run -c arms/{study.name}.yaml"]


def shipped_files(declarations: Path | None = None) -> dict[str, str]:
    """The shipped job files: name -> text."""
    studies = load_studies(declarations)
    return {f"{study.name}.yaml": to_text(study, job_of(study)) for study in studies.values()}


def differences(folder: Path, files: Mapping[str, str]) -> str:
    """A unified diff from the files in a folder to what they should be; empty when they agree."""
    found: list[str] = []
    for name, text in files.items():
        path = folder / name
        now = path.read_text("utf-8") if path.is_file() else ""
        found += difflib.unified_diff(
            now.splitlines(keepends=True),
            text.splitlines(keepends=True),
            f"{name} (on disk)",
            f"{name} (declared)",
            n=1,
        )
    return "".join(found)
