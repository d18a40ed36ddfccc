"""The published files, pinned: find one, fetch one, check one."""

import hashlib
import tomllib
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from akm_harbor.errors import AkmHarborError, UsageError
from akm_harbor.memory.datasets.reading import DatasetError, WrongDigestError, file_sha256
from akm_harbor.tables.atomic import replaced_directory

DEMO = "demo-"
_CHUNK = 1 << 20
_TIMEOUT_S = 60
_DEMO_FOLDER = Path(__file__).with_name("demo")


@dataclass(frozen=True, slots=True)
class Source:
    """One published file, or one of ours (`demo-*`).

    Attributes:
        name: what a person types.
        benchmark: which reader it needs.
        variant: which file of the benchmark.
        licence: what its publisher says.
        revision: the pinned revision.
        url: where it can be fetched; None where only `--data` works.
        file: its file name.
        size: its bytes, None where unknown.
        sha256: its digest, None where unknown.
        path: where it lies in this package (demo data only).
    """

    name: str
    benchmark: str
    variant: str
    licence: str
    revision: str | None = None
    url: str | None = None
    file: str | None = None
    size: int | None = None
    sha256: str | None = None
    path: Path | None = None


@cache
def sources() -> Mapping[str, Source]:
    """Every known source, by name."""
    found = {}
    for name, entry in tomllib.loads(Path(__file__).with_name("sources.toml").read_text()).items():
        fields = {key: value for key, value in entry.items() if key != "bytes"}
        found[name] = Source(name=name, size=entry.get("bytes"), **fields)
    for path in sorted(_DEMO_FOLDER.iterdir()):
        benchmark = path.stem
        name = f"{DEMO}{benchmark}"
        found[name] = Source(name, benchmark, "demo", "Apache-2.0 (synthetic, ours)", path=path)
    return found


def find_source(name: str) -> Source:
    """The source of that name.

    Raises:
        UsageError: there is none.
    """
    source = sources().get(name)
    if source is None:
        raise UsageError(f"no dataset is named {name!r}", hint=f"Known: {', '.join(sources())}.")
    return source


def check_digest(source: Source, path: Path, found: str) -> None:
    """Refuse a file that is not the published one.

    Raises:
        WrongDigestError: the digests differ.
    """
    if source.sha256 is not None and found != source.sha256:
        raise WrongDigestError(
            f"is not the published {source.name} (sha256 {found[:12]}..., {source.sha256[:12]}... was expected)",
            path=path,
            hint="Fetch it again, or leave the dataset's name away to use the file as it is.",
        )


def fetch(source: Source, folder: Path, progress: Callable[[int, int | None], None] | None = None) -> Path:
    """Download a source into a folder of its own, check it, and return the file.

    A file that is already there and has the right digest is not fetched again.

    Args:
        source: what to fetch.
        folder: where datasets are kept.
        progress: called with bytes so far and the total where known.

    Raises:
        AkmHarborError: it has no address, or the network fails.
        WrongDigestError: what came is not the published file.
    """
    if source.url is None or source.file is None:
        raise AkmHarborError(
            f"{source.name} cannot be fetched by itself",
            hint=f"Get it from its publisher and name it: akm-harbor memory probe {source.name} --data PATH.",
        )
    home = folder / source.name
    target = home / source.file
    if target.is_file() and (source.sha256 is None or file_sha256(target) == source.sha256):
        return target
    with replaced_directory(home) as new:
        digest = _download(source, new / source.file, progress)
        check_digest(source, target, digest)
    return target


def _download(source: Source, path: Path, progress: Callable[[int, int | None], None] | None) -> str:
    assert source.url is not None
    digest = hashlib.sha256()
    done = 0
    try:
        with urllib.request.urlopen(source.url, timeout=_TIMEOUT_S) as response, path.open("wb") as out:  # noqa: S310
            length = response.headers.get("Content-Length")
            total = int(length) if length and length.isdigit() else source.size
            while chunk := response.read(_CHUNK):
                out.write(chunk)
                digest.update(chunk)
                done += len(chunk)
                if progress is not None:
                    progress(done, total)
    except OSError as error:
        raise DatasetError(
            f"{source.name} could not be fetched ({getattr(error, 'reason', None) or error})",
            path=source.url,
            hint=f"Without a network, get the file another way and name it with --data ({source.licence}).",
        ) from error
    if total is not None and done < total:
        raise DatasetError(
            f"{source.name} broke off after {done} of {total} bytes", path=source.url, hint="Fetch it again."
        )
    return digest.hexdigest()
