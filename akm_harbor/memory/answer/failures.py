"""Kinds of failure of a model call, and what each means for the call and for the run."""

UNAUTHORIZED, NOT_FOUND, QUOTA, RATE_LIMITED = "unauthorized", "not-found", "quota", "rate-limited"
TIMEOUT, CONNECTION, CUT_STREAM, SERVER_ERROR = "timeout", "connection", "cut-stream", "server-error"
BAD_REQUEST, CONTEXT_TOO_LONG, MALFORMED, CONTENT_FILTER = (
    "bad-request",
    "context-too-long",
    "malformed-response",
    "content-filter",
)
OTHER_MODEL, CAP_REACHED, STOPPED, DISK_FULL = "other-model", "cap-reached", "stopped", "disk-full"

FATAL = frozenset({UNAUTHORIZED, NOT_FOUND, QUOTA, DISK_FULL})
"""Another call would fail the same way: nothing more is sent."""
RETRIED = frozenset({RATE_LIMITED, TIMEOUT, CONNECTION, CUT_STREAM, SERVER_ERROR, MALFORMED})
"""May pass: tried again, a bounded number of times."""
PERHAPS_PAID = frozenset({TIMEOUT, CONNECTION, CUT_STREAM, MALFORMED})
"""The server may have worked, and charged, all the same: the cap counts the most it can have cost."""
NOT_SENT = frozenset({CAP_REACHED, STOPPED, DISK_FULL})


class CallError(Exception):
    """One attempt that failed.

    Attributes:
        kind: one of the names above.
        message: in a sentence, secrets taken out.
        retry_after: seconds the server asked to wait.
    """

    def __init__(self, kind: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.retry_after = retry_after
