"""Read what the agent left in the workspace, trusting none of it."""

from __future__ import annotations

import stat
from pathlib import Path

ANSWER_LIMIT = 1_000_000


class WrongAnswerError(Exception):
    """The answer is wrong, and why."""


def read_answer(path: str | Path, limit: int = ANSWER_LIMIT) -> str:
    """The text of a file the agent wrote.

    Links, pipes and devices are refused: a link could point at the verifier's own files, and a
    pipe would hang it.

    Args:
        path: the file, as the task names it.
        limit: largest size read, bytes.

    Raises:
        WrongAnswerError: it is missing, not a regular file, too large or not UTF-8.
    """
    file = Path(path)
    try:
        mode = file.lstat()
    except OSError:
        raise WrongAnswerError(f"{path} is missing") from None
    if any(parent.is_symlink() for parent in file.parents):
        raise WrongAnswerError(f"{path} lies behind a link")
    if not stat.S_ISREG(mode.st_mode):
        raise WrongAnswerError(f"{path} is not a regular file")
    if mode.st_size > limit:
        raise WrongAnswerError(f"{path} is larger than {limit} bytes")
    try:
        data = file.read_bytes()
    except OSError as error:
        raise WrongAnswerError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise WrongAnswerError(f"{path} is not UTF-8 text") from None
