"""A legacy akm-bench task: `task.yaml` beside `verify.sh` or `tests/`, and a layered workspace."""

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from akm_harbor.errors import AkmHarborError

_REQUIRED = {"id": str, "title": str, "domain": str, "difficulty": str, "stash": str, "verifier": str, "budget": dict}
_DIFFICULTIES = ("easy", "medium", "hard")
_SIZE_LIMIT = 5_000_000
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*")
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class LegacyTask:
    """One legacy task that is fit to be converted.

    Attributes:
        path: its folder.
        data: its task.yaml.
        name: the new folder's name, `<domain>--<name>`.
    """

    path: Path
    data: Mapping[str, Any]
    name: str

    @property
    def verifier(self) -> str:
        """`script` or `pytest`."""
        return str(self.data["verifier"])

    @property
    def slice(self) -> str:
        """`train` or `eval`; when absent, by the first byte of the id's SHA-1, as the legacy code did."""
        given = self.data.get("slice")
        if given in ("train", "eval"):
            return str(given)
        return "eval" if hashlib.sha1(self.data["id"].encode()).digest()[0] % 2 else "train"  # noqa: S324

    def text(self, key: str) -> str:
        """An optional string of task.yaml, "" when absent or of another type."""
        value = self.data.get(key)
        return value if isinstance(value, str) else ""


def task_files(root: Path) -> Iterator[Path]:
    """Every task.yaml below a folder; a folder that has one is not searched any deeper."""
    if (root / "task.yaml").is_file():
        yield root / "task.yaml"
        return
    for folder in sorted(p for p in root.iterdir() if p.is_dir() and not p.is_symlink()):
        yield from task_files(folder)


def check_tree(folder: Path) -> None:
    """Refuse links that leave a folder and files that are too large to ship.

    Raises:
        AkmHarborError: the first such file.
    """
    home = folder.resolve()
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() and not path.resolve().is_relative_to(home):
            raise AkmHarborError("a link that leaves the task", path=path)
        if path.is_file() and path.stat().st_size > _SIZE_LIMIT:
            size = path.stat().st_size
            raise AkmHarborError(f"{size:,} bytes; more than {_SIZE_LIMIT:,} are not taken into a task", path=path)


def _load(file: Path) -> dict[str, Any]:
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise AkmHarborError(f"not valid YAML: {' '.join(str(error).split())[:200]}", path=file) from None
    except (OSError, UnicodeDecodeError) as error:
        raise AkmHarborError(f"cannot be read: {error}", path=file) from None
    if not isinstance(data, dict):
        raise AkmHarborError("not a mapping", path=file)
    return data


def read_legacy_task(file: Path, stashes: Path) -> LegacyTask:
    """Read and check one task.yaml.

    Args:
        file: the task.yaml.
        stashes: the folder of stashes.

    Raises:
        AkmHarborError: what keeps it from being converted.
    """
    data = _load(file)
    for key, kind in _REQUIRED.items():
        if not isinstance(data.get(key), kind) or not data[key]:
            raise AkmHarborError(f"`{key}` is missing or not a {kind.__name__}", path=file)
    if not _ID.fullmatch(data["id"]) or ".." in data["id"]:
        raise AkmHarborError(f"`id` {data['id']!r} is not of the form domain/name", path=file)
    if not _PLAIN_NAME.fullmatch(data["stash"]):
        raise AkmHarborError(f"`stash` {data['stash']!r} leaves the folder of stashes", path=file)
    if not (stashes / data["stash"]).is_dir():
        raise AkmHarborError(f"there is no stash {data['stash']!r}", path=file)
    if data["difficulty"] not in _DIFFICULTIES:
        raise AkmHarborError(f"`difficulty` {data['difficulty']!r} is not one of {', '.join(_DIFFICULTIES)}", path=file)
    folder = file.parent
    if data["verifier"] == "regex":
        raise AkmHarborError("a regex verifier reads what the agent printed, which no Harbor verifier sees", path=file)
    wanted = {"script": folder / "verify.sh", "pytest": folder / "tests"}.get(data["verifier"])
    if wanted is None:
        raise AkmHarborError(f"unknown verifier {data['verifier']!r}", path=file)
    if not wanted.exists():
        raise AkmHarborError(f"the {data['verifier']} verifier's {wanted.name} is missing", path=file)
    check_tree(folder)
    domain, name = (part.strip("_").lower().replace("_", "-").replace(".", "-") for part in data["id"].split("/"))
    return LegacyTask(folder, data, f"{'reference' if domain == 'example' else domain}--{name}")


def workspace_layers(task: LegacyTask, corpus: Path) -> list[Path]:
    """The workspaces laid one over the other: base, domain, task."""
    base = corpus / "base"
    domain = str(task.data["id"]).split("/", maxsplit=1)[0]
    layers = [base / "workspace", base / "domains" / domain / "workspace", task.path / "workspace"]
    return [layer for layer in layers if layer.is_dir()]
