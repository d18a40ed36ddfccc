"""What can go wrong in the sandbox, each with its own type."""

from pathlib import Path

from akm_harbor.errors import AkmHarborError


class SandboxError(AkmHarborError):
    """The sandbox could not do its work."""


class SandboxUnavailableError(SandboxError):
    """This machine cannot run the sandbox: not Linux, no bubblewrap, or the kernel refuses."""


class SandboxStartError(SandboxError):
    """The kernel or bubblewrap refused to build a sandbox."""


class SandboxUnsupportedError(SandboxError):
    """The task asks for something the sandbox cannot honour (compose, allowlist, GPUs ...)."""


class SandboxTimeoutError(SandboxError, RuntimeError):
    """A command ran longer than it may; Harbor's own environments raise a RuntimeError here."""


class DockerfileError(SandboxUnsupportedError):
    """A Dockerfile that is wrong, or outside the subset the sandbox reads.

    Args:
        message: what is wrong with it.
        path: the Dockerfile.
        line: number of the line the instruction starts on, from 1.
        hint: what to do next.
    """

    def __init__(self, message: str, *, path: Path | str | None, line: int, hint: str | None = None) -> None:
        super().__init__(f"line {line}: {message}", path=path, hint=hint)
        self.line = line
