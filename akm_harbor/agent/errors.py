"""Typed failures of the measured arms.

Each is a RuntimeError too: Harbor re-raises those from an agent's set-up as they
are and wraps everything else, and the trial's `exception_type` must stay readable.
"""

from akm_harbor.errors import AkmHarborError


class AgentError(AkmHarborError, RuntimeError):
    """Base of what an arm's agent raises itself."""


class ToolchainError(AgentError):
    """A toolchain can't be built, found, read or used."""

    remedy = "Build it anew with `akm-harbor toolchain build`; `akm-harbor toolchain show` tells what is there."


class ToolchainMissingError(ToolchainError):
    """No built toolchain fits."""


class ToolchainIncompleteError(ToolchainError):
    """The toolchain lacks akm or its plugin, and the arm needs them."""


class ConfigConflictError(AgentError):
    """The job's opencode_config would take away what the arm needs, or holds a secret."""


class BundleError(AgentError):
    """The bundle is missing, unreadable or unsafe."""

    remedy = "A bundle is a folder of plain files; give one of akm_harbor's, or mend this one."


class SelfCheckError(AgentError):
    """akm does not answer, or answers but has indexed nothing: the treatment is broken."""
