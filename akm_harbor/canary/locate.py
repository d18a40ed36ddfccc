"""Find a store's files, and give each store a label."""

from dataclasses import dataclass
from pathlib import Path

from akm_harbor.errors import AkmHarborError

_WHERE = "akm keeps them in $AKM_DATA_DIR, else ~/.local/share/akm."


@dataclass(frozen=True, slots=True)
class StoreFiles:
    """What lies in one akm data directory.

    Attributes:
        label: how tables and pages call the store.
        folder: the directory.
        index: `index.db`, if there.
        state: `state.db`, if there.
        backups: `state.db.pre-*.bak`, left by migrations that drop tables, oldest name first.
    """

    label: str
    folder: Path
    index: Path | None
    state: Path | None
    backups: tuple[Path, ...]

    @property
    def history(self) -> Path:
        """Where our own snapshots go: beside the store, so that not one file in it changes."""
        return self.folder.with_name(f"{self.folder.name}.canary")


def locate(path: Path) -> StoreFiles:
    """Find the store behind a directory, an `index.db`, a `state.db` or one of its backups.

    Raises:
        AkmHarborError: no such place, or nothing of akm's in it.
    """
    if not path.exists():
        raise AkmHarborError("no such file or directory", path=path, hint=_WHERE)
    folder = path if path.is_dir() else path.parent
    folder = folder.resolve()
    index, state = folder / "index.db", folder / "state.db"
    backups = sorted(found for found in folder.glob("state.db.pre-*.bak") if found.is_file())
    if path.is_file():
        # A file under another name is taken at its word: the reader says what it lacks.
        if path.name.startswith("index"):
            index = path
        elif path.name.endswith(".bak"):
            state, backups = folder / "state.db", [path]
        elif path.name != "index.db":
            state = path
    files = StoreFiles(
        folder.name,
        folder,
        index if index.is_file() else None,
        state if state.is_file() else None,
        tuple(backups),
    )
    if not (files.index or files.state or files.backups):
        raise AkmHarborError("holds no index.db and no state.db", path=path, hint=_WHERE)
    return files


def labels(folders: list[Path]) -> list[str]:
    """The shortest path endings that tell the folders apart."""
    parts = [folder.resolve().parts for folder in folders]
    depth = 1
    while depth < max(map(len, parts), default=1) and len({p[-depth:] for p in parts}) < len(set(parts)):
        depth += 1
    return ["/".join(part for part in p[-depth:] if part != "/") for p in parts]
