"""The evidence archive: a zip with fixed names that is the same for the same rows, opened as if by an enemy.

An archive may come from anyone. Only members of known names are read, none through a link, none that would
grow out of hand, and nothing is written outside a fresh folder.
"""

import hashlib
import re
import stat
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.json_toml import parse_json
from akm_harbor.tables.atomic import NO_ROOM, no_room, write_file

SCHEMA = "akm_harbor.ab.evidence/1"
CONTENTS, PAGE, VERDICT, README = "contents.json", "report.html", "verdict.json", "README.txt"
DATASET = "dataset"
DATASET_MANIFEST = f"{DATASET}/manifest.json"
REQUIRED = (CONTENTS, PAGE, VERDICT, DATASET_MANIFEST, f"{DATASET}/trials/part-0.parquet")

MEMBER = re.compile(
    r"contents\.json|report\.html|verdict\.json|README\.txt"
    r"|dataset/manifest\.json|dataset/[a-z][a-z_]{0,40}/part-[0-9]{1,4}\.parquet"
)
_EPOCH = (1980, 1, 1, 0, 0, 0)
_MOST_MEMBERS = 200
_LARGEST = {"json": 256 << 20, "html": 256 << 20, "txt": 1 << 20, "parquet": 1 << 30}
_LARGEST_SUM = 2 << 30
_STEEPEST, _STEEP_FROM = 250, 4 << 20
_ROWS, _COLUMNS = 50_000_000, 400
_BLOCK = 1 << 20
_AGAIN = "Get the archive again, and compare its sha256."


@dataclass(frozen=True, slots=True)
class Opened:
    """An archive unpacked into a folder.

    Attributes:
        folder: where its members lie, under their own names.
        contents: the parsed `contents.json`.
        digests: sha256 of every member as read.
        sha256: of the archive file itself.
    """

    folder: Path
    contents: dict[str, Any]
    digests: dict[str, str]
    sha256: str


def pack(target: Path, members: Mapping[str, bytes]) -> str:
    """Write an archive whole or not at all, and return its sha256.

    Members are sorted, dated 1980 and without owner, so that the same members give the same bytes (with the
    same zlib; Parquet is stored as it is, being compressed already).

    Raises:
        OSError: the place cannot be written.
    """
    import io

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name in sorted(members, key=lambda n: (n != README, n != CONTENTS, n)):
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.compress_type = zipfile.ZIP_STORED if name.endswith(".parquet") else zipfile.ZIP_DEFLATED
            archive.writestr(info, members[name], compresslevel=9)
    data = buffer.getvalue()
    write_file(target, data)
    return hashlib.sha256(data).hexdigest()


def unpack(archive: Path, folder: Path) -> Opened:
    """Unpack an archive into an empty folder, trusting nothing in it.

    Raises:
        AkmHarborError: not an archive of ours, damaged, of another version, or made to do harm.
    """
    try:
        sha256 = _digest(archive)
        with zipfile.ZipFile(archive) as opened:
            members = _checked(archive, opened.infolist())
            digests = {i.filename: _extract(archive, opened, i, folder / i.filename) for i in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise AkmHarborError(f"damaged, or not a zip file ({error})", path=archive, hint=_AGAIN) from error
    except OSError as error:
        if error.errno in NO_ROOM:
            raise no_room(folder) from error
        raise AkmHarborError(
            f"cannot be read ({error.strerror or error})", path=archive, hint="Check that the file may be read."
        ) from error
    contents = _contents(archive, folder)
    for name in digests:
        if name.endswith(".parquet"):
            _check_parquet(archive, folder / name, name)
    return Opened(folder, contents, digests, sha256)


def _digest(path: Path) -> str:
    if path.is_dir():
        raise AkmHarborError("a folder, not an archive", path=path, hint="Give the .zip that `ab export` wrote.")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _refuse(archive: Path, why: str) -> AkmHarborError:
    return AkmHarborError(f"refused: {why}", path=archive, hint="No archive that `ab export` wrote is like that.")


def _checked(archive: Path, infos: list[zipfile.ZipInfo]) -> list[zipfile.ZipInfo]:
    """The members, after every check that needs no reading.

    Raises:
        AkmHarborError: a member that no archive of ours has.
    """
    if len(infos) > _MOST_MEMBERS:
        raise _refuse(archive, f"it has {len(infos)} members")
    seen: set[str] = set()
    for info in infos:
        name = info.orig_filename
        if name != info.filename or not MEMBER.fullmatch(name):
            raise _refuse(archive, f"member {name[:200]!r} has no place in an evidence archive")
        if name in seen:
            raise _refuse(archive, f"member {name!r} is there twice")
        seen.add(name)
        if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
            raise _refuse(archive, f"member {name!r} is not a plain file but a link or a device")
        if info.flag_bits & 0x1:
            raise _refuse(archive, f"member {name!r} is encrypted")
        if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            raise _refuse(archive, f"member {name!r} is packed in an unusual way")
        if info.file_size > _LARGEST[name.rpartition(".")[2]]:
            raise _refuse(archive, f"member {name!r} would unpack to {info.file_size:,} bytes")
        if info.file_size > _STEEP_FROM and info.file_size > _STEEPEST * max(info.compress_size, 1):
            sizes = f"{info.compress_size:,} to {info.file_size:,} bytes"
            raise _refuse(archive, f"member {name!r} would grow from {sizes}")
    if sum(i.file_size for i in infos) > _LARGEST_SUM:
        raise _refuse(archive, f"it would unpack to {sum(i.file_size for i in infos):,} bytes")
    missing = [name for name in REQUIRED if name not in seen]
    if missing:
        raise AkmHarborError(
            f"not an evidence archive: it lacks {', '.join(missing)}",
            path=archive,
            hint="Make one with `akm-harbor ab export DATASET -b BASELINE -t TREATMENT -o FILE.zip`.",
        )
    return infos


def _extract(archive: Path, opened: zipfile.ZipFile, info: zipfile.ZipInfo, target: Path) -> str:
    """Write one member, never more of it than it announced, and return its sha256."""
    target.parent.mkdir(parents=True, exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with opened.open(info) as source, target.open("xb") as out:
        while block := source.read(_BLOCK):
            size += len(block)
            if size > info.file_size:
                raise _refuse(archive, f"member {info.filename!r} is larger than it says")
            digest.update(block)
            out.write(block)
    return digest.hexdigest()


def read_json(path: Path, archive: Path, name: str) -> dict[str, Any]:
    """Read a JSON object out of an unpacked archive.

    Raises:
        AkmHarborError: not JSON, or not an object.
    """
    try:
        value = parse_json(path.read_bytes(), parse_constant=_no_constant)
    except ValueError as error:
        raise AkmHarborError(f"{name} in it is not JSON ({error})", path=archive, hint=_AGAIN) from error
    if not isinstance(value, dict):
        raise AkmHarborError(f"{name} in it is not a JSON object", path=archive, hint=_AGAIN)
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _contents(archive: Path, folder: Path) -> dict[str, Any]:
    contents = read_json(folder / CONTENTS, archive, CONTENTS)
    schema = contents.get("schema")
    if schema != SCHEMA:
        raise AkmHarborError(
            f"an archive of format {schema!r}; this version reads {SCHEMA!r}",
            path=archive,
            hint="Install the akm-harbor that wrote it; README.txt in the archive names the version.",
        )
    members = contents.get("members")
    known = all(isinstance(contents.get(k), dict) for k in ("made_with", "comparison"))
    if not known or not isinstance(members, dict) or not all(isinstance(m, dict) for m in members.values()):
        raise AkmHarborError(f"{CONTENTS} in it lacks what it must hold", path=archive, hint=_AGAIN)
    return contents


def _check_parquet(archive: Path, file: Path, name: str) -> None:
    """Refuse a table whose few bytes announce more rows than anyone's memory holds."""
    import pyarrow as pa

    from akm_harbor.tables.parquet import parquet_file

    try:
        meta = parquet_file(file).metadata
        size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise AkmHarborError(f"{name} in it cannot be read as Parquet ({error})", path=archive, hint=_AGAIN) from error
    if meta.num_rows > _ROWS or meta.num_columns > _COLUMNS or size > _LARGEST_SUM:
        raise _refuse(archive, f"{name} holds {meta.num_rows:,} rows of {meta.num_columns} columns")
