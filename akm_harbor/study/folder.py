"""The folder of one study's run: where everything is, what is known about it, and who may work in it."""

import contextlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.report.verdict import write_json
from akm_harbor.tables.layout import MANIFEST as DATASET_MANIFEST

_POLL_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class StudyFolder:
    """Places of one study's run.

    Attributes:
        root: the folder, absolute.
        job_name: the name of its one Harbor job.
    """

    root: Path
    job_name: str

    @property
    def manifest(self) -> Path:
        """What is known about the run: study.json."""
        return self.root / "study.json"

    @property
    def job_file(self) -> Path:
        """What Harbor runs."""
        return self.root / "job.yaml"

    @property
    def jobs(self) -> Path:
        """Harbor's jobs folder."""
        return self.root / "jobs"

    @property
    def job(self) -> Path:
        """Harbor's job directory."""
        return self.jobs / self.job_name

    @property
    def kept(self) -> Path:
        """Last readable copies of the job's own files."""
        return self.root / "kept"

    @property
    def log(self) -> Path:
        """What Harbor printed."""
        return self.root / "harbor.log"

    @property
    def requests(self) -> Path:
        """Requests to the scripted model."""
        return self.root / "requests.jsonl"

    @property
    def dataset(self) -> Path:
        """The collected dataset."""
        return self.root / "dataset"

    def read(self) -> dict[str, Any]:
        """The manifest; empty before the first run.

        Raises:
            AkmHarborError: it is there and no JSON object, or the root is a file or somebody else's folder.
        """
        if self.root.exists() and not self.root.is_dir():
            raise AkmHarborError("is no folder", path=self.root, hint="Choose another --out.")
        if (self.root / DATASET_MANIFEST).exists():
            raise AkmHarborError("is a dataset, no study's folder", path=self.root, hint="Choose another --out.")
        if not self.manifest.exists():
            return {}
        try:
            data = json.loads(self.manifest.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise AkmHarborError(f"cannot be read ({error})", path=self.manifest) from None
        if not isinstance(data, dict):
            raise AkmHarborError("is no JSON object", path=self.manifest)
        return data

    def write(self, manifest: dict[str, Any]) -> None:
        """Replace the manifest, whole or not at all."""
        write_json(self.manifest, manifest)

    @contextlib.contextmanager
    def held(self, patience: float = 20.0) -> Iterator[int]:
        """Hold the folder against every other run, and give the lock's file descriptor.

        A child that inherits the descriptor holds the folder too: after its parent was killed,
        Harbor may still be taking its trials down, and nobody may begin before that is done.

        Args:
            patience: seconds to wait for such a child.

        Raises:
            AkmHarborError: somebody else holds it.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise AkmHarborError(f"cannot be made ({error.strerror})", path=self.root) from None
        try:
            _take(lock, self.root, patience)
            yield lock
        finally:
            os.close(lock)


def _take(lock: int, root: Path, patience: float) -> None:
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise AkmHarborError(
                    "another run is working here", path=root, hint="Wait for it, or choose another --out."
                ) from None
            time.sleep(_POLL_SECONDS)
        else:
            return
