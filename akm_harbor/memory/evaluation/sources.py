"""Read what is to be shown: studies (answers) and probes (retrieval at every k)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.answer.result import KIND as STUDY
from akm_harbor.memory.answer.result import StudyResult, read_study
from akm_harbor.memory.probe import KIND as PROBE
from akm_harbor.memory.results import Result, read_result
from akm_harbor.tables import read_manifest
from akm_harbor.tables.layout import MANIFEST


@dataclass(frozen=True, slots=True)
class Sources:
    """What was found at the paths given.

    Attributes:
        studies: results of `memory run`.
        probes: results of `memory probe`.
    """

    studies: tuple[StudyResult, ...]
    probes: tuple[Result, ...]


def gather(paths: Sequence[Path]) -> Sources:
    """Read datasets, or folders of datasets one level deep.

    Raises:
        AkmHarborError: a path that holds neither, or no study at all.
    """
    folders: list[Path] = []
    for path in paths:
        inner = sorted(p.parent for p in path.glob("*/manifest.json")) if path.is_dir() else []
        if not (path / MANIFEST).is_file() and not inner:
            raise AkmHarborError(
                "holds no memory study",
                path=path,
                hint="Make one with `akm-harbor memory run -c study.yaml -o DATASET`.",
            )
        folders += [path] if (path / MANIFEST).is_file() else inner
    studies: list[StudyResult] = []
    probes: list[Result] = []
    for folder in dict.fromkeys(folders):
        kind = read_manifest(folder).get("kind")
        if kind == STUDY:
            studies.append(read_study(folder))
        elif kind == PROBE:
            probes.append(read_result(folder))
        else:
            raise UsageError(
                f"{folder} is a dataset of kind {kind!r}", hint="Give results of `memory run` and `memory probe`."
            )
    empty = [study.path for study in studies if study.trials.empty]
    if empty:
        raise AkmHarborError(
            "holds no rows", path=empty[0], hint="The run ended before its first answer: run it again."
        )
    if not studies:
        raise AkmHarborError(
            "no study among the sources",
            path=", ".join(map(str, paths)),
            hint="Give at least one result of `akm-harbor memory run`; probes only add their retrieval to it.",
        )
    return Sources(tuple(studies), tuple(probes))
