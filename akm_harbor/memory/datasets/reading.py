"""Read big JSON files record by record, in bounded memory, and say where they break."""

import codecs
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from akm_harbor.errors import AkmHarborError
from akm_harbor.surrogates import without_surrogates

_CHUNK = 4 << 20
_LARGEST_RECORD = 256 << 20
_SPACE = " \t\r\n"
_SLACK = 64  # a literal or number cut at the buffer's end fails this close to it


class DatasetError(AkmHarborError):
    """A benchmark file that cannot be used as a whole; `kind` is a short stable name."""

    kind = "dataset-unreadable"
    remedy = "Check that the file may be read."


class DatasetMissingError(DatasetError):
    """There is no such file."""

    kind = "dataset-missing"
    remedy = "`akm-harbor memory datasets` tells what each benchmark publishes and where."


class TruncatedError(DatasetError):
    """The file ends in the middle of a record."""

    kind = "truncated"
    remedy = "Download it again: its end is missing."


class InvalidJsonError(DatasetError):
    """The file is not JSON at some place."""

    kind = "invalid-json"
    remedy = "Download it again, and give it as it is published."


class WrongSchemaError(DatasetError):
    """The file is JSON, but not this benchmark."""

    kind = "wrong-schema"
    remedy = "Give the file as the benchmark publishes it; `akm-harbor memory datasets` names them."


class WrongDigestError(DatasetError):
    """The file is not the one that was asked for."""

    kind = "wrong-digest"


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, hex.

    Raises:
        DatasetMissingError: no such file.
        DatasetError: it cannot be read.
    """
    try:
        with path.open("rb") as handle:
            return hashlib.file_digest(handle, "sha256").hexdigest()
    except FileNotFoundError as error:
        raise DatasetMissingError("no such file", path=path, hint="Name the benchmark's file with --data.") from error
    except OSError as error:
        raise DatasetError(f"cannot be read ({error.strerror})", path=path) from error


def tree_sha256(root: Path, files: list[Path]) -> str:
    """One digest for several files: of their relative names and their own digests, sorted."""
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(root).as_posix()} {file_sha256(file)}\n".encode())
    return digest.hexdigest()


class _Window:
    """The undecoded rest of a file that is being read, as text."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._handle = path.open("rb")
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")()
        self.text = ""
        self.at = 0
        self.ended = False
        self._dropped = 0

    def close(self) -> None:
        self._handle.close()

    def fill(self) -> bool:
        """Append the next chunk; False at the end of the file.

        Raises:
            InvalidJsonError: bytes that are not UTF-8.
        """
        if self.ended:
            return False
        data = self._handle.read(max(_CHUNK, len(self.text) - self.at))
        try:
            more = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            raise InvalidJsonError(
                f"not UTF-8 near byte {self._handle.tell() - len(data) + error.start}", path=self._path
            ) from error
        self.ended = not data
        self._dropped += self.at
        self.text = self.text[self.at :] + more
        self.at = 0
        return not self.ended

    def skip_space(self) -> str:
        """Move to the next character that is not white space; empty at the end of the file."""
        while True:
            while self.at < len(self.text) and self.text[self.at] in _SPACE:
                self.at += 1
            if self.at < len(self.text):
                return self.text[self.at]
            if not self.fill():
                return ""

    def place(self, offset: int) -> str:
        return f"character {self._dropped + offset}"

    def record(self, record: int) -> dict[str, Any]:
        """Decode the JSON object at the current place, reading on as long as it is incomplete."""
        decoder = json.JSONDecoder()
        while True:
            try:
                value, end = decoder.raw_decode(self.text, self.at)
            except json.JSONDecodeError as error:
                cut = error.pos >= len(self.text) - _SLACK or error.msg.startswith("Unterminated string")
                if cut and len(self.text) - self.at <= _LARGEST_RECORD and self.fill():
                    continue
                if self.ended and _cut_off(error):
                    raise TruncatedError(
                        f"ends in the middle of record {record} (counted from 0), {error.msg} at "
                        f"{self.place(error.pos)}",
                        path=self._path,
                        hint="Fetch the file again; nothing was converted.",
                    ) from error
                raise InvalidJsonError(
                    f"record {record} is not JSON: {error.msg} at {self.place(error.pos)}", path=self._path
                ) from error
            except RecursionError as error:
                raise InvalidJsonError(f"record {record} is nested too deeply", path=self._path) from error
            except ValueError as error:  # a number of thousands of digits
                raise InvalidJsonError(f"record {record}: {error}", path=self._path) from error
            if not isinstance(value, dict):
                raise WrongSchemaError(
                    f"record {record} is {type(value).__name__}, an object was expected", path=self._path
                )
            escaped = any(self.text.find(mark, self.at, end) >= 0 for mark in ("\\ud", "\\uD"))
            self.at = end
            return without_surrogates(value) if escaped else value


def _cut_off(error: json.JSONDecodeError) -> bool:
    """Whether more text could have mended the error, at the end of a file."""
    rest = error.doc[error.pos :].strip()
    literals = ("true", "false", "null", "e+", "E+", "e-", "E-", ".", "-")
    return (
        not rest
        or error.msg.startswith(("Unterminated string", "Invalid \\uXXXX"))
        or any(literal.startswith(rest) for literal in literals)
    )


def iter_records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON array, or the lines of a JSONL file, one at a time.

    Memory is bounded by the largest record and one chunk, whatever the size of the file.

    Raises:
        DatasetMissingError: no such file.
        TruncatedError: the file ends too early.
        InvalidJsonError: it is not JSON somewhere, with the place.
        WrongSchemaError: not an array, or lines, of objects.
    """
    try:
        window = _Window(path)
    except FileNotFoundError as error:
        raise DatasetMissingError("no such file", path=path, hint="Name the benchmark's file with --data.") from error
    except OSError as error:
        raise DatasetError(f"cannot be read ({error.strerror})", path=path) from error
    try:
        first = window.skip_space()
        if first == "[":
            window.at += 1
            yield from _array(window, path)
        elif first == "{":
            yield from _lines(window)
        else:
            what = "is empty" if not first else f"begins with {first!r}"
            raise WrongSchemaError(f"{what}; a JSON array or JSON lines were expected", path=path)
    finally:
        window.close()


def _array(window: _Window, path: Path) -> Iterator[dict[str, Any]]:
    count = 0
    if window.skip_space() == "]":
        window.at += 1
    else:
        while True:
            if not window.skip_space():
                raise TruncatedError(f"ends after {count} records, before the array is closed", path=path)
            yield window.record(count)
            count += 1
            mark = window.skip_space()
            window.at += 1
            if mark == "]":
                break
            if not mark:
                raise TruncatedError(
                    f"ends after {count} records, before the array is closed",
                    path=path,
                    hint="Fetch the file again; nothing was converted.",
                )
            if mark != ",":
                place = window.place(window.at - 1)
                raise InvalidJsonError(f"{mark!r} at {place} where `,` or `]` was expected", path=path)
    if window.skip_space():
        raise InvalidJsonError(f"text after the array, at {window.place(window.at)}", path=path)


def _lines(window: _Window) -> Iterator[dict[str, Any]]:
    count = 0
    while window.skip_space():
        yield window.record(count)
        count += 1


def read_json(path: Path) -> Any:
    """Read one small JSON file whole.

    Raises:
        DatasetMissingError: no such file.
        TruncatedError: it ends too early.
        InvalidJsonError: it is not JSON.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as error:
        raise DatasetMissingError("no such file", path=path) from error
    except OSError as error:
        raise DatasetError(f"cannot be read ({error.strerror})", path=path) from error
    try:
        return without_surrogates(json.loads(data))
    except json.JSONDecodeError as error:
        if error.pos >= len(error.doc) - 1 or error.msg.startswith("Unterminated string"):
            raise TruncatedError(f"ends too early ({error.msg})", path=path, hint="Fetch the file again.") from error
        raise InvalidJsonError(f"{error.msg} at line {error.lineno}", path=path) from error
    except (ValueError, RecursionError) as error:  # no text, too deep, or a number of thousands of digits
        raise InvalidJsonError(str(error), path=path) from error
