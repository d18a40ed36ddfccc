"""A task on disk: its task.toml, its texts, the files it starts with."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_toml


@dataclass(frozen=True, slots=True)
class CorpusTask:
    """One folder of the corpus.

    Attributes:
        path: the folder.
        config: task.toml as it stands.
    """

    path: Path
    config: Mapping[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        """The folder's name, `<domain>--<name>`."""
        return self.path.name

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The `[metadata]` table."""
        value = self.config.get("metadata", {})
        return value if isinstance(value, dict) else {}

    def text(self, key: str) -> str:
        """A metadata string, "" when absent or of another type."""
        value = self.metadata.get(key, "")
        return value if isinstance(value, str) else ""

    def texts(self, key: str) -> list[str]:
        """A metadata list of strings, empty when absent."""
        value = self.metadata.get(key, [])
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    @property
    def gold_ref(self) -> str:
        """Concept id of the asset that answers the task, "" if none does."""
        return self.text("gold_ref")

    @property
    def abstention(self) -> bool:
        """Whether nothing in the bundle helps."""
        return self.metadata.get("abstention") is True

    @property
    def workflows(self) -> list[str]:
        """Names of the workflows the verifier scores."""
        return self.texts("workflows")

    @property
    def workspace(self) -> Path:
        """What the container starts with in its working folder."""
        return self.path / "environment" / "workspace"

    @property
    def instruction(self) -> str:
        """The prompt, "" when the file is missing."""
        file = self.path / "instruction.md"
        return file.read_text(encoding="utf-8", errors="replace") if file.is_file() else ""

    def workspace_files(self) -> Iterator[Path]:
        """The regular files the container starts with."""
        if self.workspace.is_dir():
            yield from sorted(p for p in self.workspace.rglob("*") if p.is_file() and not p.is_symlink())


def read_task(path: Path) -> CorpusTask:
    """Read one task folder.

    Raises:
        AkmHarborError: it has no task.toml, or one that is not TOML.
    """
    file = path / "task.toml"
    try:
        config = parse_toml(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise AkmHarborError(f"cannot be read: {error.strerror}", path=file) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise AkmHarborError(f"not valid TOML: {error}", path=file) from None
    return CorpusTask(path, config)


def task_folders(root: Path) -> list[Path]:
    """The folders that mean to be tasks: one level deep, not hidden, not private.

    A folder that is itself a task stands for itself.

    Raises:
        AkmHarborError: there is no such folder, or nothing in it.
    """
    if (root / "task.toml").is_file():
        return [root]
    if not root.is_dir():
        raise AkmHarborError("no such folder", path=root, hint="Name a folder of tasks, e.g. tasks/.")
    folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith((".", "_")))
    if not folders:
        raise AkmHarborError(
            "no task folder in it", path=root, hint="A task's folder holds task.toml, instruction.md and tests/."
        )
    return folders
