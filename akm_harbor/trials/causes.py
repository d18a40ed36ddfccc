"""Whose fault an exception was: the classification, as data.

The type names are Harbor's, its environments' and LiteLLM's. A cause says who failed,
not whether a reward beside it counts: that is the error policy's decision.
"""

import re

CAUSES = ("sandbox", "provider", "harness", "budget", "refusal", "verifier", "cancelled", "unclassified")

_TYPES: dict[str, tuple[str, ...]] = {
    "sandbox": (
        "EnvironmentStartTimeoutError",
        "EnvironmentBuildTimeoutError",
        "SandboxBuildFailedError",
        "SandboxLikelyOutOfMemoryError",
        "MemoryLimitExceededError",
        "HealthcheckError",
        "DaytonaError",
        "DaytonaNotFoundError",
        "DaytonaRateLimitError",
        "DaytonaTimeoutError",
        "SandboxException",
        "TimeoutException",
        "NotFoundException",
        "SSHAccessError",
        "GKEExecStreamClosedError",
        "GKEPodNotFoundError",
        "RuntimeRequestError",
        "ImageBuilderError",
        "OutOfMemoryError",
    ),
    "provider": (
        "ApiError",
        "ApiRateLimitError",
        "ApiInternalServerError",
        "ApiOverloadedError",
        "ApiConnectionError",
        "ApiConnectionClosedError",
        "ApiResponseStalledError",
        "ApiUsageLimitError",
        "ApiProviderResourceNotFoundError",
        "UnknownApiError",
        "NetworkConnectionError",
        "RateLimitError",
        "InternalServerError",
        "ServiceUnavailableError",
        "APIConnectionError",
        "APIError",
        "APIResponseValidationError",
        "APIStatusError",
        "APITimeoutError",
        "BadGatewayError",
        "Timeout",
        "BadRequestError",
        "UnprocessableEntityError",
        "UnsupportedParamsError",
        "UnsupportedModelParametersError",
        "AgentAuthenticationError",
        "AuthenticationError",
        "PermissionDeniedError",
        "ModelNotFoundError",
        "NotFoundError",
        "BudgetExceededError",
    ),
    "harness": (
        "AgentSetupTimeoutError",
        "AddTestsDirError",
        "ServiceOperationsUnsupportedError",
        "VercelScopeError",
        "DspyImportError",
        "MissingExtraError",
        "RegradeError",
        "DeliveryError",
        "ToolchainError",
    ),
    "budget": (
        "AgentTimeoutError",
        "ContextWindowExceededError",
        "ContextLengthExceededError",
        "OutputTokenExceededError",
        "OutputLengthExceededError",
    ),
    "refusal": ("AgentSafetyRefusalError", "ContentPolicyViolationError"),
    "verifier": (
        "VerifierTimeoutError",
        "RewardFileNotFoundError",
        "RewardFileEmptyError",
        "VerifierOutputParseError",
        "DownloadVerifierDirError",
    ),
    "cancelled": ("CancelledError", "KeyboardInterrupt"),
}
CAUSE_OF_TYPE: dict[str, str] = {name: cause for cause, names in _TYPES.items() for name in names}

# What a bare type leaves open, the message may tell. It repeats the whole command line, and that the task's
# text, so only words a harness writes itself are looked for; first match wins.
_MESSAGES: dict[str, tuple[tuple[str, re.Pattern[str]], ...]] = {
    "NonZeroAgentExitCodeError": (
        (
            "provider",
            re.compile(r'"name": ?"(?:APIError|ProviderAuthError|AI_APICallError|ProviderModelNotFoundError)"'),
        ),
        ("provider", re.compile(r'"statusCode": ?(?:401|403|404|429|5\d\d)\b')),
        ("sandbox", re.compile(r"^[^\n]{0,40}\bexit(?: code)? 137\b")),
        ("budget", re.compile(r"^[^\n]{0,40}\bexit(?: code)? 124\b")),
    ),
    "RuntimeError": (
        ("sandbox", re.compile(r"^Docker compose command failed|^Command timed out after|^Failed to (?:start|build)")),
        ("sandbox", re.compile(r"sandbox|container", re.IGNORECASE)),
    ),
    "OSError": (("sandbox", re.compile(r"No space left|Too many open files|Cannot allocate memory")),),
    "ValueError": (
        # What Harbor makes of trials whose event loop is closed under them, by a second Ctrl-C.
        ("cancelled", re.compile(r"was created in a different Context$")),
        ("harness", re.compile(r"kwargs|not found in registry|network", re.IGNORECASE)),
    ),
}


def cause_of(exception_type: str | None, message: str | None = None) -> str | None:
    """The cause of an exception.

    Args:
        exception_type: its class name, as Harbor wrote it.
        message: its message, used only where the class alone does not tell.

    Returns:
        One of `CAUSES`; None when there was no exception. An agent that exits non-zero for
        no reason we know is `unclassified`: it may be the agent's own failure at the task.
    """
    if not exception_type:
        return None
    known = CAUSE_OF_TYPE.get(exception_type)
    if known is not None:
        return known
    for cause, pattern in _MESSAGES.get(exception_type, ()):
        if message and pattern.search(message[:20_000]):
            return cause
    return "unclassified"
