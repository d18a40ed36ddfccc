"""The one base error: what was wrong, where, and what to do about it."""

from pathlib import Path


class AkmHarborError(Exception):
    """A failure a person can act on.

    Args:
        message: what was wrong, one sentence.
        path: the file or folder it is about, if there is one.
        hint: what to do next, one sentence; by default the class's remedy.

    Attributes:
        remedy: what to do where nothing more particular is known.
        exit_code: what the command line exits with (0 ok, 1 failure, 2 usage,
            3 regression, 4 not comparable or not delivered).
    """

    exit_code = 1
    remedy: str | None = None

    def __init__(self, message: str, *, path: Path | str | None = None, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.hint = hint or self.remedy

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path is not None else ""
        then = f"\n  {self.hint}" if self.hint else ""
        return f"{where}{self.message}{then}"


class UsageError(AkmHarborError):
    """The command was asked for something that cannot be meant (exit code 2)."""

    exit_code = 2


class NotComparableError(AkmHarborError):
    """The arms cannot be compared, or the treatment was not delivered (exit code 4)."""

    exit_code = 4
