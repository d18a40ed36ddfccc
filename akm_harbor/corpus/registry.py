"""tasks/registry.json for `harbor run -d NAME --registry-path ...`, and the lock that freezes it.

Harbor reads the registry; `registry.lock.json` beside it holds each released version's digest and
those of its tasks, as Harbor writes them into a trial's lock.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from akm_harbor.corpus.task import CorpusTask
from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.json_toml import parse_json

REGISTRY = "registry.json"
LOCK = "registry.lock.json"
DATASETS: Mapping[str, str] = {
    "train": "The tasks to develop on: look at them, tune on them.",
    "eval": "The tasks to confirm on, rarely: other instances of the same families.",
    "local": "Well-known tools with a house rule that differs from the public default.",
}


def dataset_name(slice_name: str) -> str:
    """The dataset of a slice."""
    return f"akm-tasks-{slice_name}"


def version_digest(tasks: Mapping[str, str]) -> str:
    """One digest over a version's task digests."""
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(tasks.items()))
    return f"sha256:{hashlib.sha256(lines.encode()).hexdigest()}"


def _read(path: Path, empty: Any) -> Any:
    if not path.is_file():
        return empty
    try:
        return parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise AkmHarborError(
            f"not valid JSON: {error}", path=path, hint="`akm-harbor corpus register` writes it anew."
        ) from None


def _still_holds(entry: Mapping[str, Any], new: str, lock: Mapping[str, Any], digests: Mapping[str, str]) -> bool:
    """Whether an older version of a dataset is still what lies on disk, so that it can still be run."""
    frozen = lock.get(f"{entry['name']}@{entry['version']}", {}).get("tasks", {})
    return entry["version"] != new and all(digests.get(name) == digest for name, digest in frozen.items())


def register(root: Path, tasks: Sequence[CorpusTask], version: str) -> list[str]:
    """Release the tasks as a version of each slice's dataset.

    An older version whose tasks have changed cannot be run from this folder any more: it leaves the
    registry, and its digests stay in the lock.

    Args:
        root: the folder of tasks.
        tasks: all tasks; each goes to the dataset of its slice.
        version: e.g. "1.0".

    Returns:
        One line a dataset: what was released.

    Raises:
        AkmHarborError: that version is released already with other content.
        UsageError: it is no version.
    """
    from akm_harbor.corpus.harbor_contract import content_digest

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", version):
        raise UsageError(f"{version!r} is no version", hint='Write it like "1.0".')
    registry: list[dict[str, Any]] = _read(root / REGISTRY, [])
    lock: dict[str, Any] = _read(root / LOCK, {})
    lines: list[str] = []
    for slice_name, description in DATASETS.items():
        members = [task for task in tasks if task.text("slice") == slice_name]
        if not members:
            continue
        key = f"{dataset_name(slice_name)}@{version}"
        digests = {task.name: content_digest(task.path) for task in members}
        digest = version_digest(digests)
        if key in lock and lock[key]["digest"] != digest:
            raise AkmHarborError(
                f"{key} is released with other content", path=root / LOCK, hint="Choose a new version."
            )
        lock[key] = {"digest": digest, "tasks": dict(sorted(digests.items()))}
        entry = {
            "name": dataset_name(slice_name), "version": version, "description": description,
            "tasks": [{"name": task.name, "path": f"{root.name}/{task.name}"} for task in members],
            "metrics": [{"type": "mean", "kwargs": {}}],
        }  # fmt: skip
        kept = [one for one in registry if one["name"] != entry["name"] or _still_holds(one, version, lock, digests)]
        registry = [*kept, entry]
        lines.append(f"{key}: {len(members)} tasks, {digest}")
    (root / REGISTRY).write_text(json.dumps(registry, indent=1) + "\n", encoding="utf-8")
    (root / LOCK).write_text(json.dumps(lock, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return lines


def registry_complaints(root: Path, tasks: Sequence[CorpusTask]) -> list[str]:
    """Where the tasks on disk differ from the newest released versions, empty if nowhere."""
    from akm_harbor.corpus.harbor_contract import content_digest

    registry: list[dict[str, Any]] = _read(root / REGISTRY, [])
    lock: dict[str, Any] = _read(root / LOCK, {})
    on_disk = {task.name: task for task in tasks}
    lines: list[str] = []
    released: set[str] = set()
    for entry in registry:
        key = f"{entry['name']}@{entry['version']}"
        frozen = lock.get(key)
        if frozen is None:
            lines.append(f"{key} has no digest in {LOCK}")
            continue
        names = {task["name"] for task in entry["tasks"]}
        released |= names
        if names != frozen["tasks"].keys() or version_digest(frozen["tasks"]) != frozen["digest"]:
            lines.append(f"{key}: its list of tasks is not the released one")
        for name, digest in frozen["tasks"].items():
            if name not in on_disk:
                lines.append(f"{key}: {name} is gone")
            elif content_digest(on_disk[name].path) != digest:
                lines.append(f"{key}: {name} has changed since its release")
    lines += [f"{name} is in no dataset" for name in sorted(on_disk.keys() - released)]
    return lines
